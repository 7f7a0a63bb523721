extension Realm {
    /// `true` if the Realm shows one snapshot permanently.
    public var isFrozen: Bool { core.isFrozen }

    /// Returns a Realm that keeps showing the current snapshot. It can be read on any thread and cannot be written.
    ///
    /// It prevents the file from reusing the space of that snapshot, so release it soon. Traps in a write transaction.
    public func freeze() -> Realm { Realm(core: core.freeze()) }

    /// Returns the live Realm of the same file for the caller's thread or actor.
    public func thaw(_isolation: isolated (any Actor)? = #isolation) -> Realm { Realm(core: core.thaw(_isolation)) }

    /// Returns the object in a frozen Realm; the same as its `freeze()`.
    public func freeze<T: ObjectBase & ThreadConfined>(_ object: T) -> T { object.freeze() }

    /// Returns the live object of a frozen one; the same as its `thaw()`. Nil if it has been deleted.
    public func thaw<T: ObjectBase & ThreadConfined>(_ object: T, _isolation: isolated (any Actor)? = #isolation) -> T? {
        object.thaw()
    }

    /// Returns the collection in a frozen Realm; the same as its `freeze()`.
    public func freeze<Collection: RealmCollection>(_ collection: Collection) -> Collection { collection.freeze() }

    /// Releases the snapshot of the Realm and invalidates all objects and results obtained from it.
    /// An open write transaction is rolled back. The next use of the Realm shows the newest snapshot.
    public func invalidate() { core.invalidate() }
}
