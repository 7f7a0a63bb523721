/// What `Realm.objects(_:)` gives: `Object` classes, and `Projection`s of them.
public protocol RealmFetchable: RealmCollectionValue {
    /// The class whose objects are fetched.
    static var _fetched: ObjectBase.Type { get }
}

extension Object: RealmFetchable {
    public static var _fetched: ObjectBase.Type { self }
}
