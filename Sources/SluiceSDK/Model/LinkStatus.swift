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

extension Object {
    /// Tells a link that is nil from one whose object is not on the device.
    /// - Parameter property: the name of a link to one object; `_name(for: \Dog.owner)` gives that of a key path.
    public func linkStatus(of property: String) -> LinkStatus {
        let (targets, isLocal) = linked(by: property)
        guard let key = targets.first else { return .empty }
        return isLocal(key) ? .local : .notLocal(primaryKey: AnyRealmValue(scalar: key))
    }

    /// The primary keys of what a list or a set links to and that is not on the device. They stay stored and are not shown.
    /// - Parameter property: the name of a list or set of links.
    public func primaryKeysNotLocal(in property: String) -> [AnyRealmValue] {
        let (targets, isLocal) = linked(by: property)
        return targets.filter { !isLocal($0) }.map { AnyRealmValue(scalar: $0) }
    }

    private func linked(by name: String) -> (targets: [Value], isLocal: (Value) -> Bool) {
        guard let slot = model.slot(of: name), case .link(let target) = model.properties[slot].core.type,
            model.properties[slot].origin == nil
        else {
            throwRealmException("Property '\(model.name).\(name)' is no link that is stored.")
        }
        guard let row = _row, let stored = row.core.row(row.type, row.key), let type = row.core.type(named: target) else {
            return ([], { _ in true })
        }
        let keys: [Value] =
            switch stored[slot] {
            case .list(let keys)?: keys
            case let key?: [key]
            case nil: []
            }
        let core = row.core
        return (keys.filter { !$0.isNull }.map { if case .link(_, let key) = $0 { key } else { $0 } }, { core.contains(type, $0) })
    }
}
