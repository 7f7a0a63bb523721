import SluiceCore
import SluiceMerge
import SluiceReplica

/// An integer property that several devices may increment concurrently.
public protocol _Counter {
    static func _adding(_ amount: Int64, to value: Self) -> Self?
}

extension Int: _Counter {
    public static func _adding(_ amount: Int64, to value: Int) -> Int? { value &+ Int(amount) }
}

extension Int64: _Counter {
    public static func _adding(_ amount: Int64, to value: Int64) -> Int64? { value &+ amount }
}

extension Optional: _Counter where Wrapped: _Counter {
    public static func _adding(_ amount: Int64, to value: Wrapped?) -> Wrapped?? { value.map { Wrapped._adding(amount, to: $0) } }
}

extension ThreadConfined where Self: ObjectBase {
    /// Adds to an integer. A managed object requires a write transaction.
    ///
    /// Concurrent additions of several devices all count; of concurrent assignments the later one wins.
    /// The sum wraps around at 64 bits. Null stays null.
    ///
    /// ```swift
    /// try realm.write { article.increment(\.likes) }
    /// ```
    /// - Parameter amount: may be negative.
    public func increment<N: _Counter>(_ keyPath: ReferenceWritableKeyPath<Self, N>, by amount: Int = 1) {
        guard let row = _row, managingCore != nil else {
            if let sum = N._adding(Int64(amount), to: self[keyPath: keyPath]) { self[keyPath: keyPath] = sum }
            return
        }
        let name = _name(for: keyPath)
        guard let slot = model.slot(named: name), slot < model.storedCount else {
            throwRealmException("Invalid property name '\(name)' for class '\(model.name)'.")
        }
        row.add(Int64(amount), to: slot)
    }
}

extension _RowCache {
    /// Adds to an integer property, in a write transaction only. Null stays null.
    func add(_ amount: Int64, to slot: Int) {
        core.transactions.requireTransaction()
        guard case .int(let value)? = current(slot) else {
            if isInvalidated { throwRealmException(RealmMisuse.invalidated) }
            return
        }
        let path = place.map { $0.path + [.key(schema.properties[slot].column)] } ?? []
        // The row shows the sum at once; the upload carries the addition, so that concurrent ones merge.
        write(slot, _StoredValue(.int(value &+ amount)), by: ShownEdit(path: path, [.add(amount)]))
    }
}
