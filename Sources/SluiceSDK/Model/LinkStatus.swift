import SluiceCore

/// The state of a link. The property itself reads as nil in two of the three cases.
public enum LinkStatus: Hashable {
    /// The link is nil.
    case empty
    /// The target is on the device.
    case local
    /// The target is not on the device: no subscription includes it, or it has been deleted.
    case notLocal(primaryKey: AnyRealmValue)
}

extension ObjectBase {
    /// Distinguishes a link that is nil from one whose target is not on the device. An unmanaged object gives `empty`.
    /// - Parameter property: the name of a link to one object, or of a mixed property; `_name(for: \Dog.owner)` returns a key path's.
    ///   A property without stored links ends the program.
    public func linkStatus(of property: String) -> LinkStatus {
        guard let link = links(of: property).first else { return .empty }
        return isLocal(link) ? .local : .notLocal(primaryKey: AnyRealmValue(scalar: link.key))
    }

    /// Returns the primary keys of linked objects that are not on the device. They stay stored, but the collection does not show them.
    /// The order is that of the collection; a map's is that of its keys.
    /// - Parameter property: the name of a collection of links or of mixed values, or of a mixed property.
    ///   A property without stored links ends the program.
    public func primaryKeysNotLocal(in property: String) -> [AnyRealmValue] {
        links(of: property).filter { !isLocal($0) }.map { AnyRealmValue(scalar: $0.key) }
    }

    private func isLocal(_ link: (type: String, key: Value)) -> Bool {
        guard let core = _row?.core, let type = core.classes.type(named: link.type) else { return false }
        return core.reading.contains(type, link.key)
    }

    private func links(of name: String) -> [(type: String, key: Value)] {
        guard let slot = model.slot(of: name), model.properties[slot].origin == nil else { notLinked(name) }
        switch model.properties[slot].core.type {
        case .link(let target): return _row?.current(slot)?.links(to: target) ?? []
        case .mixed: return _row?.current(slot)?.links(to: nil) ?? []
        default: notLinked(name)
        }
    }

    private func notLinked(_ name: String) -> Never { throwRealmException("Property '\(model.name).\(name)' is no link that is stored.") }
}

extension Value {
    /// Collects the links in a value.
    /// - Parameter target: the class of all keys in the value; nil: links carry their class.
    fileprivate func links(to target: String?) -> [(type: String, key: Value)] {
        switch self {
        case .null: []
        case .link(let type, let key): [(target ?? type, key)]
        case .list(let elements): elements.flatMap { $0.links(to: target) }
        case .dictionary(let members): members.sorted { $0.key < $1.key }.flatMap { $0.value.links(to: target) }
        default: target.map { [($0, self)] } ?? []
        }
    }
}
