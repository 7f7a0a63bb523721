public import Foundation

/// Class methods that create and find objects, compatible with `RLMObject`. `Object` is the only conforming class.
public protocol SelfFindingObject {}

extension Object: SelfFindingObject {}

// Extensions of the protocol because: only there may a result have the type of the class that is called.
extension SelfFindingObject where Self: Object {
    // MARK: Making

    /// Creates an object in the default Realm. Traps if its primary key exists.
    /// - Throws: The errors of opening the Realm and of writing.
    @discardableResult
    public static func createInDefaultRealm(withValue value: Any) throws -> Self { try make(in: Realm(), value, .error) }

    /// Creates an object in a Realm, in the open write transaction or in a new one. Traps if its primary key exists.
    @discardableResult
    public static func create(in realm: Realm, withValue value: Any) throws -> Self { try make(in: realm, value, .error) }

    /// Creates an object in the default Realm, or sets the given properties of the object with its primary key.
    @discardableResult
    public static func createOrUpdateInDefaultRealm(withValue value: Any) throws -> Self { try make(in: Realm(), value, .all) }

    /// Creates an object in a Realm, or sets the given properties of the object with its primary key.
    @discardableResult
    public static func createOrUpdate(in realm: Realm, withValue value: Any) throws -> Self { try make(in: realm, value, .all) }

    /// Creates an object in the default Realm, or sets the given properties that differ in the object with its primary key.
    @discardableResult
    public static func createOrUpdateModifiedInDefaultRealm(withValue value: Any) throws -> Self { try make(in: Realm(), value, .modified) }

    /// Creates an object in a Realm, or sets the given properties that differ in the object with its primary key.
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

    /// The objects of the default Realm that match a predicate; `%@` and `$0` refer to arguments.
    public static func objects(where predicateFormat: String, _ args: Any...) throws -> Results<Self> {
        try allObjects().matching(predicateFormat, args)
    }

    /// The objects of the default Realm that match a predicate; all if it is nil.
    public static func objects(with predicate: NSPredicate?) throws -> Results<Self> { try objects(in: Realm(), with: predicate) }

    /// The objects of a Realm that match a predicate; `%@` and `$0` refer to arguments.
    public static func objects(in realm: Realm, where predicateFormat: String, _ args: Any...) -> Results<Self> {
        allObjects(in: realm).matching(predicateFormat, args)
    }

    /// The objects of a Realm that match a predicate; all if it is nil.
    public static func objects(in realm: Realm, with predicate: NSPredicate?) -> Results<Self> {
        let all = allObjects(in: realm)
        return predicate.map { all.filter($0) } ?? all
    }

    /// The object of the default Realm with a primary key; nil if there is none. A nil key is valid only for an optional key.
    public static func object(forPrimaryKey key: Any?) throws -> Self? { try object(in: Realm(), forPrimaryKey: key) }

    /// The object of a Realm with a primary key; nil if there is none.
    public static func object(in realm: Realm, forPrimaryKey key: Any?) -> Self? {
        realm.object(ofType: Self.self, forPrimaryKey: key)
    }
}

extension ThreadConfined where Self: Object {
    /// Calls the block after changes of the object, with the changes, or with `true` if it was deleted. It never passes an error.
    /// - Returns: A token. The notifications end when it is invalidated or released.
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
    /// `oldValue` under the name of `RLMPropertyChange`.
    public var previousValue: Any? { oldValue }
    /// `newValue` under the name of `RLMPropertyChange`.
    public var value: Any? { newValue }
}
