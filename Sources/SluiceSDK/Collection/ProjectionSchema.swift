import Synchronization

/// A view of an object that can be observed; conformed to by `Projection`.
public protocol ProjectionObservable: AnyObject, ThreadConfined {
    /// The class of the object that it is a view of.
    associatedtype Root: ObjectBase
    /// The object that it is a view of.
    var rootObject: Root { get }
    /// A view of an object.
    init(projecting object: Root)
}

/// A `Projected` property of any type.
protocol AnyProjected {
    var projectedKeyPath: AnyKeyPath { get }
}

/// What stands for values that are read when they are asked for: reading them leaves a trace of the key path that gives them.
protocol TracedValues {
    func touch()
}

/// The properties of a view class: found once per class by looking at an instance.
struct ProjectionSchema: Sendable {
    // Sendable because: key paths and texts do not change.
    struct Property: @unchecked Sendable {
        /// As the view has it.
        let name: String
        let keyPath: AnyKeyPath
        /// The properties that it shows, from the object on: "address.city"; several when the object computes it from them.
        let paths: [String]

        /// What the property shows of an object; nil when that is nil.
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

    /// The properties that key paths name, by their names in the view or by what they show; nil or none: all.
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

/// An optional of any type.
private protocol OptionalValue {
    var unwrapped: Any? { get }
}

extension Optional: OptionalValue {
    fileprivate var unwrapped: Any? {
        guard let self else { return nil }
        return (self as? any OptionalValue).map(\.unwrapped) ?? self
    }
}

/// A key path over the properties of a view, as the text that leads there from its object.
public func _name<P: ProjectionObservable>(for keyPath: PartialKeyPath<P>) -> String {
    let model = ModelSchema.of(P.Root.self)
    let slots = model.trace { root in (root as? P.Root).map { P(projecting: $0)[keyPath: keyPath] } }
    guard let text = model.texts(of: slots).first else { throwRealmException("The key path \(keyPath) leads to no @Projected property.") }
    return text
}
