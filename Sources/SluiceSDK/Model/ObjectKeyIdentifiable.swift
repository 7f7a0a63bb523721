/// A default `id` for model classes and views that are `Identifiable`.
///
/// ```swift
/// class Task: Object, ObjectKeyIdentifiable { … }
/// ```
/// A class with its own property `id` keeps it.
public protocol ObjectKeyIdentifiable: Identifiable {
    /// An id that is equal for all objects of one row of a Realm, including frozen ones, until the program ends.
    /// An unmanaged object gets another id when it is added.
    var id: UInt64 { get }
}

extension ObjectKeyIdentifiable where Self: ObjectBase {
    public var id: UInt64 { identity }
}

extension ObjectKeyIdentifiable where Self: ProjectionObservable {
    /// The id of the object behind the view.
    public var id: UInt64 { rootObject.identity }
}

extension ObjectBase {
    fileprivate var identity: UInt64 {
        var hasher = Hasher()
        hash(into: &hasher)
        // Embedded objects of one owner differ by their place in it.
        if let place = _row?.place { hasher.combine(place.address) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}
