import SluiceCore
import Synchronization

/// The property declarations by methods of a class, in addition to its wrappers.
enum ClassDeclarations {
    /// The declarations of a class's wrappers, without its class methods.
    struct Declared {
        var primaryKey: String?
        var indexed: [String] = []
    }

    private static let declarations = Mutex<[ObjectIdentifier: Declared]>([:])
    /// The class whose prototype is being created in this task.
    @TaskLocal private static var prototypeClass: ObjectIdentifier?

    /// Creates the instance from which the schema of a class is discovered.
    static func prototype(of type: ObjectBase.Type) -> ObjectBase {
        $prototypeClass.withValue(ObjectIdentifier(type)) { type.init() }
    }

    /// Returns the declarations of a class's wrappers. It discovers the schema if necessary.
    static func declared(_ type: ObjectBase.Type) -> Declared {
        if let declared = declarations.withLock({ $0[ObjectIdentifier(type)] }) { return declared }
        _ = ModelSchema.of(type)
        return declarations.withLock { $0[ObjectIdentifier(type)] } ?? Declared()
    }

    /// Assigns `defaultPropertyValues` to a new object.
    static func begin(_ object: Object, with values: [String: Any]) {
        // The prototype has no schema yet and needs no values.
        guard prototypeClass != ObjectIdentifier(type(of: object)) else { return }
        ModelSchema.of(type(of: object)).assign(values, to: object)
        // These are defaults, not values that the app assigned.
        object.assigned = nil
    }

    /// Returns the properties with the declarations of the class's methods applied. Invalid declarations end the program.
    static func described(_ found: [ModelSchema.Property], by type: ObjectBase.Type) -> [ModelSchema.Property] {
        declarations.withLock {
            $0[ObjectIdentifier(type)] = Declared(
                primaryKey: found.first { $0.flags.contains(.primaryKey) }?.name,
                indexed: found.filter { $0.flags.contains(.indexed) }.map(\.name))
        }
        let ignored = Set(type.ignoredProperties())
        // An ignored property may be of any type, so its name is checked against all fields.
        let fields = DeclarationCheck.storedNames(of: type)
        for name in ignored where !found.contains(where: { $0.name == name }) && !fields.contains(name) {
            throwRealmException("Class '\(type.className())' names a property '\(name)' that it does not have.")
        }
        let kept = found.filter { !ignored.contains($0.name) }
        guard let type = type as? Object.Type else { return kept }
        let (key, indexed, required) = (type.primaryKey(), Set(type.indexedProperties()), Set(type.requiredProperties()))
        for name in indexed.union(required).union(key.map { [$0] } ?? []) where !found.contains(where: { $0.name == name }) {
            throwRealmException("Class '\(type.className())' names a property '\(name)' that it does not have.")
        }
        return kept.map { property in
            var property = property
            let canBeNil = [.none, .dictionary].contains(property.kind.collection)
            if required.contains(property.name), property.kind.target != nil, !property.kind.isComputed, canBeNil {
                throwRealmException(
                    "Object properties cannot be made required, but '+[\(type.className()) requiredProperties]' included '\(property.name)'"
                )
            }
            if property.name == key { property.flags.insert(.primaryKey) }
            if indexed.contains(property.name) { property.flags.insert(.indexed) }
            if required.contains(property.name), property.kind.isOptional, property.kind.target == nil {
                property.kind.isOptional = false
                property.isRequired = true
                property.absent = property.core.emptyValue
            }
            return property
        }
    }
}
