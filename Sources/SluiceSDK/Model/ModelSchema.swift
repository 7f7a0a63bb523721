@_spi(Reflection) import Swift
import SluiceCore
import Synchronization

/// What is known of a model class: found once per class by looking at an instance.
// Sendable because: all is fixed after `init` but the prototype, which is used under `tracing` only.
package final class ModelSchema: @unchecked Sendable {
    struct Property {
        var name: String
        var kind: _PropertyKind
        var flags: PropertyFlags
        /// Where its wrapper lies in an instance, from the instance's address.
        var offset: Int
        var wrapper: any AnyPersisted.Type
    }

    let objectClass: ObjectBase.Type
    let name: String
    let properties: [Property]
    let primaryKeySlot: Int?
    private let slots: [String: Int]
    private let prototype: ObjectBase
    private let tracing = Mutex(0)

    private static let known = Mutex<[ObjectIdentifier: ModelSchema]>([:])

    /// The schema of a class.
    static func of(_ type: ObjectBase.Type) -> ModelSchema {
        if let schema = known.withLock({ $0[ObjectIdentifier(type)] }) { return schema }
        // Outside of the lock: it runs the class's own initialiser.
        let schema = ModelSchema(type)
        return known.withLock { known in
            if let first = known[ObjectIdentifier(type)] { return first }
            known[ObjectIdentifier(type)] = schema
            return schema
        }
    }

    private init(_ type: ObjectBase.Type) {
        objectClass = type
        name = type.className()
        prototype = type.init()
        let wrappers = ModelSchema.wrappers(of: prototype)
        var found: [Property] = []
        let base = UnsafeMutableRawPointer(Unmanaged.passUnretained(prototype).toOpaque())
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { label, offset, fieldType, _ in
            guard let wrapper = fieldType as? any AnyPersisted.Type else { return true }
            let name = String(String(cString: label).dropFirst())
            found.append(
                Property(name: name, kind: wrapper.kind, flags: wrappers[name] ?? [], offset: offset, wrapper: wrapper))
            return true
        }
        for (slot, property) in found.enumerated() { property.wrapper.bind(at: base + property.offset, slot: Int32(slot)) }
        properties = found
        primaryKeySlot = found.firstIndex { $0.flags.contains(.primaryKey) }
        slots = Dictionary(found.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        prototype._trace = _KeyPathTrace()
    }

    /// The flags of an instance's wrappers by property name.
    private static func wrappers(of object: ObjectBase) -> [String: PropertyFlags] {
        var flags: [String: PropertyFlags] = [:]
        var mirror: Mirror? = Mirror(reflecting: object)
        while let level = mirror {
            for child in level.children {
                guard let wrapper = child.value as? any AnyPersisted, let label = child.label else { continue }
                flags[String(label.dropFirst())] = wrapper.flags
            }
            mirror = level.superclassMirror
        }
        return flags
    }

    func slot(of name: String) -> Int? { slots[name] }

    /// The name of the property that a key path leads to; nil when it leads to none.
    func name(of keyPath: AnyKeyPath) -> String? {
        tracing.withLock { _ in
            prototype._trace?.slots = []
            _ = prototype[keyPath: keyPath]
            return prototype._trace?.slots.first.map { properties[Int($0)].name }
        }
    }

    // MARK: The core's schema

    /// Asymmetric and top-level classes as the core has them. The numbers of properties are the server's to allot.
    var objectType: ObjectType {
        let properties = properties.map { property in
            SluiceCore.Property(
                id: 0, name: property.name, type: property.kind.type, collection: property.kind.collection,
                isOptional: property.kind.isOptional)
        }
        let kind: ObjectKind = objectClass is AsymmetricObject.Type ? .asymmetric : .topLevel
        return ObjectType(
            name: name, kind: kind, properties: properties, primaryKey: primaryKeySlot.map { self.properties[$0].name })
    }

    /// The classes given and those that they link to, each once, in order.
    static func closure(of types: [ObjectBase.Type]) -> [ModelSchema] {
        var schemas: [ModelSchema] = []
        var waiting = types[...]
        while let type = waiting.popFirst() {
            let schema = ModelSchema.of(type)
            if schemas.contains(where: { $0 === schema }) { continue }
            schemas.append(schema)
            waiting.append(contentsOf: schema.properties.compactMap(\.kind.target))
        }
        return schemas
    }

    // MARK: Instances

    private func address(of object: ObjectBase) -> UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(Unmanaged.passUnretained(object).toOpaque())
    }

    /// Makes a new instance an accessor of a row.
    func bind(_ object: ObjectBase, to row: _RowCache) {
        withExtendedLifetime(object) {
            let base = address(of: object)
            for (slot, property) in properties.enumerated() { property.wrapper.bind(at: base + property.offset, slot: Int32(slot)) }
        }
        object._row = row
    }

    /// The values of an instance that no Realm manages, by slot. `owner` decides where linked objects go.
    func take(_ object: ObjectBase, owner: ObjectBase) -> [(value: Value, isGiven: Bool)] {
        withExtendedLifetime(object) {
            let base = address(of: object)
            return properties.map { property in
                let (stored, isGiven) = property.wrapper.take(at: base + property.offset, of: owner)
                return (stored.value, isGiven)
            }
        }
    }

    func primaryKey(of object: ObjectBase) -> Value {
        guard let slot = primaryKeySlot else { return .null }
        return value(of: object, slot: slot)
    }

    /// The value of a property of any instance. Fixes a default that makes itself up (an ObjectId) on first use.
    func value(of object: ObjectBase, slot: Int) -> Value {
        if let row = object._row {
            if row.generation != row.clock.generation { row.reload() }
            return row.values[slot].value
        }
        return withExtendedLifetime(object) {
            let address = address(of: object) + properties[slot].offset
            let (stored, isGiven) = properties[slot].wrapper.take(at: address, of: object)
            if !isGiven { _ = properties[slot].wrapper.put(stored.value.plain as Any, at: address, of: object) }
            return stored.value
        }
    }

    /// A new object with values that no Realm manages.
    func instance<T: ObjectBase>(_ value: Any, of type: T.Type) -> T {
        let object = T()
        assign(value, to: object)
        return object
    }

    /// Sets properties from a dictionary by name or an array in order. What the class does not have is refused.
    func assign(_ value: Any, to object: ObjectBase) {
        if let dictionary = value as? [String: Any] {
            for (name, value) in dictionary {
                guard let slot = slots[name] else {
                    throwRealmException("Invalid property name '\(name)' for class '\(self.name)'.")
                }
                put(value, slot, object)
            }
        } else if let array = value as? [Any] {
            guard array.count <= properties.count else {
                throwRealmException("Invalid array input: more values (\(array.count)) than properties (\(properties.count)).")
            }
            for (slot, value) in array.enumerated() { put(value, slot, object) }
        } else if let source = value as? ObjectBase, type(of: source) == type(of: object) {
            for slot in properties.indices { put(self.value(of: source, slot: slot).plain as Any, slot, object) }
        } else {
            throwRealmException("Invalid value '\(value)' to initialize object of type '\(name)': expected a dictionary or an array.")
        }
    }

    private func put(_ value: Any, _ slot: Int, _ object: ObjectBase) {
        let fits = withExtendedLifetime(object) {
            properties[slot].wrapper.put(value, at: address(of: object) + properties[slot].offset, of: object)
        }
        if !fits { throwRealmException("Invalid value '\(value)' for property '\(name).\(properties[slot].name)'.") }
    }
}
