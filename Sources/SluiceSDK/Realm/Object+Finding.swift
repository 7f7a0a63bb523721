public import Foundation

/// Lets a class make and find its objects itself, as `RLMObject` does. `Object` is its only conforming class.
public protocol SelfFindingObject {}

extension Object: SelfFindingObject {}

// Extensions of the protocol because: only there may a result be of the class that is asked.
extension SelfFindingObject where Self: Object {
    // MARK: Making

    /// Makes an object in the default Realm; a key that is there ends the program.
    /// - Throws: what opening the Realm and writing throw.
    @discardableResult
    public static func createInDefaultRealm(withValue value: Any) throws -> Self { try make(in: Realm(), value, .error) }

    /// Makes an object in a Realm, in its write transaction or in one of its own.
    @discardableResult
    public static func create(in realm: Realm, withValue value: Any) throws -> Self { try make(in: realm, value, .error) }

    /// Makes an object in the default Realm, or sets what is given of the one with its key.
    @discardableResult
    public static func createOrUpdateInDefaultRealm(withValue value: Any) throws -> Self { try make(in: Realm(), value, .all) }

    /// The same in a Realm.
    @discardableResult
    public static func createOrUpdate(in realm: Realm, withValue value: Any) throws -> Self { try make(in: realm, value, .all) }

    /// Makes an object in the default Realm, or sets what is given and differs of the one with its key.
    @discardableResult
    public static func createOrUpdateModifiedInDefaultRealm(withValue value: Any) throws -> Self { try make(in: Realm(), value, .modified) }

    /// The same in a Realm.
    @discardableResult
    public static func createOrUpdateModified(in realm: Realm, withValue value: Any) throws -> Self {
        try make(in: realm, value, .modified)
    }

    private static func make(in realm: Realm, _ value: Any, _ update: Realm.UpdatePolicy) throws -> Self {
        if realm.isInWriteTransaction { return realm.create(Self.self, value: value, update: update) }
        return try realm.write { realm.create(Self.self, value: value, update: update) }
    }

    // MARK: Finding

    /// All objects of the class in the default Realm.
    public static func allObjects() throws -> Results<Self> { try Realm().objects(Self.self) }

    /// All objects of the class in a Realm.
    public static func allObjects(in realm: Realm) -> Results<Self> { realm.objects(Self.self) }

    /// Those of the default Realm that match a predicate; `%@` and `$0` stand for arguments.
    public static func objects(where predicateFormat: String, _ args: Any...) throws -> Results<Self> {
        try allObjects().matching(predicateFormat, args)
    }

    /// Those of the default Realm that match a predicate; nil: all.
    public static func objects(with predicate: NSPredicate?) throws -> Results<Self> { try objects(in: Realm(), with: predicate) }

    /// Those of a Realm that match a predicate; `%@` and `$0` stand for arguments.
    public static func objects(in realm: Realm, where predicateFormat: String, _ args: Any...) -> Results<Self> {
        allObjects(in: realm).matching(predicateFormat, args)
    }

    /// Those of a Realm that match a predicate; nil: all.
    public static func objects(in realm: Realm, with predicate: NSPredicate?) -> Results<Self> {
        let all = allObjects(in: realm)
        return predicate.map { all.filter($0) } ?? all
    }

    /// The object of the default Realm with a key; nil when there is none. Only an optional key can be nil.
    public static func object(forPrimaryKey key: Any?) throws -> Self? { try object(in: Realm(), forPrimaryKey: key) }

    /// The object of a Realm with a key.
    public static func object(in realm: Realm, forPrimaryKey key: Any?) -> Self? {
        realm.object(ofType: Self.self, forPrimaryKey: key)
    }
}

extension ThreadConfined where Self: Object {
    /// Calls the block after changes of the object: with the changes, or with true when it was deleted. No error ever comes.
    /// - Returns: the token that keeps the notifications coming.
    public func addNotificationBlock(
        _ block: @escaping (_ isDeleted: Bool, _ changes: [PropertyChange]?, _ error: (any Error)?) -> Void
    ) -> NotificationToken {
        observe { (change: ObjectChange<Self>) in
            switch change {
            case .change(_, let changes): block(false, changes, nil)
            case .deleted: block(true, nil, nil)
            case .error(let error): block(false, nil, error)
            }
        }
    }
}

extension PropertyChange {
    /// `oldValue` by `RLMPropertyChange`'s name.
    public var previousValue: Any? { oldValue }
    /// `newValue` by `RLMPropertyChange`'s name.
    public var value: Any? { newValue }
}
