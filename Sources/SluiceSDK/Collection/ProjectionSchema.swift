import Synchronization

/// An observable view of an object. `Projection` conforms to it.
public protocol ProjectionObservable: AnyObject, ThreadConfined {
    /// The class of the object behind the projection.
    associatedtype Root: ObjectBase
    /// The object behind the projection.
    var rootObject: Root { get }
    /// Creates a projection of an object.
    init(projecting object: Root)
}

/// A `Projected` property of any type.
protocol AnyProjected {
    var projectedKeyPath: AnyKeyPath { get }
}

/// A value that reads its elements lazily. `touch` reads them, so that a key path trace records the properties behind it.
protocol TracedValues {
    func touch()
}

/// The properties of a projection class, found once per class by reflection on an instance.
struct ProjectionSchema: Sendable {
    struct Property: @unchecked Sendable {  // Sendable because: key paths and strings are immutable.
        /// The name in the projection.
        let name: String
        let keyPath: AnyKeyPath
        /// The object's properties that the value depends on, such as "address.city". A computed property has several.
        let paths: [String]

        /// The value for an object; nil if it is nil at any optional level.
        func value(of root: ObjectBase) -> Any? { root[keyPath: keyPath].flatMap { ($0 as? any OptionalValue)?.unwrapped ?? $0 } }
    }

    let properties: [Property]

    private static let known = Mutex<[ObjectIdentifier: ProjectionSchema]>([:])

    static func of<P: ProjectionObservable>(_ projection: P) -> ProjectionSchema {
        let id = ObjectIdentifier(type(of: projection))
        if let schema = known.withLock({ $0[id] }) { return schema }
        let schema = ProjectionSchema(projection)
        known.withLock { $0[id] = schema }
        return schema
    }

    private init<P: ProjectionObservable>(_ projection: P) {
        let model = ModelSchema.of(P.Root.self)
        // Superclasses are visited last, but their properties come first.
        var levels: [[Property]] = []
        var mirror: Mirror? = Mirror(reflecting: projection)
        while let level = mirror {
            levels.append(
                level.children.compactMap { child in
                    guard let projected = child.value as? any AnyProjected, let label = child.label else { return nil }
                    let keyPath = projected.projectedKeyPath
                    return Property(name: String(label.dropFirst()), keyPath: keyPath, paths: model.texts(of: model.trace(keyPath)))
                })
            mirror = level.superclassMirror
        }
        properties = levels.reversed().flatMap(\.self)
    }

    /// The properties that key paths name, by projection name or by path. If `keyPaths` is nil or empty, all.
    /// Traps if a key path names no property.
    func properties<P: ProjectionObservable>(_ keyPaths: [String]?, of type: P.Type) -> [Property] {
        guard let keyPaths, !keyPaths.isEmpty else { return properties }
        for keyPath in keyPaths where !properties.contains(where: { $0.isNamed(keyPath) }) {
            throwRealmException("Invalid property name: property '\(keyPath)' not found in object of type '\(type)'")
        }
        return properties.filter { property in keyPaths.contains { property.isNamed($0) } }
    }
}

extension ProjectionSchema.Property {
    fileprivate func isNamed(_ keyPath: String) -> Bool { name == keyPath || paths.contains(keyPath) }
}

/// An optional of any type. `unwrapped` is nil if any nested level is nil.
private protocol OptionalValue {
    var unwrapped: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var unwrapped: Any? {
        guard let self else { return nil }
        return (self as? any OptionalValue).map(\.unwrapped) ?? self
    }
}

/// The path from a projection's object to the property that a Swift key path names. Traps if it reads no `@Projected` property.
public func _name<P: ProjectionObservable>(for keyPath: PartialKeyPath<P>) -> String {
    let model = ModelSchema.of(P.Root.self)
    let slots = model.trace { root in (root as? P.Root).map { P(projecting: $0)[keyPath: keyPath] } }
    guard let text = model.texts(of: slots).first else { throwRealmException("The key path \(keyPath) leads to no @Projected property.") }
    return text
}
