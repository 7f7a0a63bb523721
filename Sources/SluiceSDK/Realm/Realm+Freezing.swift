extension Realm {
    /// Whether the Realm shows one state for ever.
    public var isFrozen: Bool { core.isFrozen }

    /// A Realm that goes on showing what this one shows now. It may be read from any thread and cannot be written.
    ///
    /// It keeps the file from letting that state go; do not keep it for long.
    public func freeze() -> Realm { Realm(core: core.freeze()) }

    /// The live Realm on the same file, for where it is called.
    public func thaw(_isolation: isolated (any Actor)? = #isolation) -> Realm { Realm(core: core.thaw(_isolation)) }

    /// The object in a frozen Realm; the same as its `freeze()`.
    public func freeze<T: ObjectBase & ThreadConfined>(_ object: T) -> T { object.freeze() }

    /// The live object of a frozen one; the same as its `thaw()`.
    public func thaw<T: ObjectBase & ThreadConfined>(_ object: T, _isolation: isolated (any Actor)? = #isolation) -> T? {
        object.thaw()
    }

    /// The collection in a frozen Realm; the same as its `freeze()`.
    public func freeze<Collection: RealmCollection>(_ collection: Collection) -> Collection { collection.freeze() }

    /// Lets the state go that the Realm shows, and with it all objects and results that were got from it: they are invalidated.
    /// An open write transaction is cancelled. The Realm itself can be used again; it then shows the newest state.
    public func invalidate() { core.invalidate() }
}
