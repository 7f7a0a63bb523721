import SluiceCore

/// One change of an object and when its changeset was committed on the device.
struct PendingChange {
    var time: HybridTime
    var change: ObjectChange
}

/// What apps see of an object that has pending changes.
enum PendingView {
    /// - Parameters:
    ///   - server: the server's row, nil when the object is not in the view.
    ///   - changes: in the order in which they were made.
    /// - Returns: nil when the object is not there.
    static func row(server: [String: Value]?, changes: [PendingChange], type: ObjectType) -> [String: Value]? {
        var row = server
        for pending in changes {
            let change = pending.change
            switch change.kind {
            case .delete: row = nil
            case .create:
                let existed = row != nil
                var merged = row ?? [:]
                for (name, value) in change.values where !(existed && change.defaults.contains(name)) { merged[name] = value }
                row = merged
            // Deletes win: a change of an object that the server has no more changes nothing.
            case .set: for (name, value) in change.values { row?[name] = value }
            }
            for (name, amount) in change.counters {
                if case .int(let value)?? = row.map({ $0[name] }) { row?[name] = .int(value &+ amount) }
            }
        }
        return row
    }
}
