import SluiceCore

/// Where a link leads. The property itself reads as nil in two of the three cases.
public enum LinkStatus: Hashable {
    /// Nowhere: it is nil.
    case empty
    /// To an object that is on the device.
    case local
    /// To an object that is not on the device: no subscription brings it, or it is gone.
    case notLocal(primaryKey: AnyRealmValue)
}

extension ObjectBase {
    /// Tells a link that is nil from one whose object is not on the device.
    /// - Parameter property: the name of a link to one object, or of a mixed property; `_name(for: \Dog.owner)` gives that of a key path.
    public func linkStatus(of property: String) -> LinkStatus {
        guard let link = links(of: property).first else { return .empty }
        return isLocal(link) ? .local : .notLocal(primaryKey: AnyRealmValue(scalar: link.key))
    }

    /// The primary keys of what a list, a set or a map links to and that is not on the device, those of a map in the order of its keys. They
    /// stay stored and are not shown.
    /// - Parameter property: the name of a collection of links or of mixed values, or of a mixed property.
    public func primaryKeysNotLocal(in property: String) -> [AnyRealmValue] {
        links(of: property).filter { !isLocal($0) }.map { AnyRealmValue(scalar: $0.key) }
    }

    private func isLocal(_ link: (type: String, key: Value)) -> Bool {
        guard let core = _row?.core, let type = core.type(named: link.type) else { return false }
        return core.contains(type, link.key)
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
    /// - Parameter target: the class that every value is a key of; nil: links say it themselves.
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
