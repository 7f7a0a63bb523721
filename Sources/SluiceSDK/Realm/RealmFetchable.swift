/// A type that `Realm.objects(_:)` returns: an `Object` class or a `Projection` of one.
public protocol RealmFetchable: RealmCollectionValue {
    /// The class of the objects that are fetched.
    static var _fetched: ObjectBase.Type { get }
}

extension Object: RealmFetchable {
    public static var _fetched: ObjectBase.Type { self }
}
