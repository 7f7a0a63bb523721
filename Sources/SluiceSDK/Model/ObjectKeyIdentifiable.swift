/// A default `id` for model classes and views that are to be `Identifiable`.
///
/// ```swift
/// class Task: Object, ObjectKeyIdentifiable { … }
/// ```
/// A class with a property `id` of its own keeps that.
public protocol ObjectKeyIdentifiable: Identifiable {
    /// The same for all objects that stand for one row of a Realm, frozen ones included, while the program runs. An object that no
    /// Realm manages has another than it has when it is added.
    var id: UInt64 { get }
}

extension ObjectKeyIdentifiable where Self: ObjectBase {
    public var id: UInt64 { identity }
}

extension ObjectKeyIdentifiable where Self: ProjectionObservable {
    /// That of the object behind the view.
    public var id: UInt64 { rootObject.identity }
}

extension ObjectBase {
    fileprivate var identity: UInt64 {
        var hasher = Hasher()
        hash(into: &hasher)
        // Embedded objects of one owner differ by where they are in it.
        if let place = _row?.place { hasher.combine(place.address) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}
