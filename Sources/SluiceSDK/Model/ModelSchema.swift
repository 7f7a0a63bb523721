@_spi(Reflection) import Swift
import SluiceCore
import SluiceReplica
import Synchronization

/// The schema of a model class, discovered once per class from an instance.
package final class ModelSchema: @unchecked Sendable {  // Sendable because: constant after `init`; the prototype only under `tracing`.
    struct Property {
        /// The name in the class.
        var name: String
        /// The name in the file and on the server.
        var column: String
        var kind: _PropertyKind
        var flags: _PropertyFlags
        /// The byte offset of the wrapper in an instance.
        var offset: Int
        var wrapper: any AnyPersisted.Type
        /// The other class's property, for inverse links.
        var origin: String?
        /// The value shown by an object that has none for the property.
        var absent: Value
        /// `true` for a property that is optional in the class and must not be null in the file.
        var isRequired = false

        var core: SluiceCore.Property {
            SluiceCore.Property(
                id: 0, name: column, type: kind.type, collection: kind.collection, isOptional: kind.isOptional)
        }
    }

    private struct Wrapper {
        var offset: Int
        var type: any AnyPersisted.Type
        var hasPlace: Bool
        var isRequired: Bool
    }

    let objectClass: ObjectBase.Type
    let name: String
    /// The stored properties in the order of the core's schema, then the computed ones.
    let properties: [Property]
    let storedCount: Int
    let primaryKeySlot: Int?
    /// `true` if instances have no fields except persisted properties, so that a row determines an instance.
    let isPlain: Bool
    /// The wrappers by slot, without names: counting their references would dominate the cost of creating objects.
    private let wrappers: [Wrapper]
    private let slots: [String: Int]
    private let columns: [String: Int]
    private let prototype: ObjectBase
    private let tracing = Mutex(0)

    private static let known = Mutex<[ObjectIdentifier: ModelSchema]>([:])

    /// Returns the schema of a class. The first call creates an instance and reflects on it.
    static func of(_ type: ObjectBase.Type) -> ModelSchema {
        if let schema = known.withLock({ $0[ObjectIdentifier(type)] }) { return schema }
        // Not under the lock: this runs the class's own initializer, which may ask for schemas.
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
        prototype = ClassDeclarations.prototype(of: type)
        let found = ClassDeclarations.described(ModelSchema.properties(of: prototype), by: type)
        // Stored properties first: a slot is also the index of the column in a row.
        let all = found.filter { !$0.kind.isComputed } + found.filter { $0.kind.isComputed }
        let base = UnsafeMutableRawPointer(Unmanaged.passUnretained(prototype).toOpaque())
        // The prototype's wrappers must know their slots, so that a key path read from it records them.
        for (slot, property) in all.enumerated() {
            let wrapped = (base + property.offset).assumingMemoryBound(to: _Wrapped.self)
            wrapped.pointee.slot = Int32(slot)
            wrapped.pointee.held = .unset
        }
        properties = all
        wrappers = all.map { Wrapper(offset: $0.offset, type: $0.wrapper, hasPlace: $0.wrapper.hasPlace, isRequired: $0.isRequired) }
        storedCount = found.filter { !$0.kind.isComputed }.count
        isPlain = ModelSchema.fieldCount(of: type) == ModelSchema.fieldCount(of: ObjectBase.self) + all.count
        primaryKeySlot = all.firstIndex { $0.flags.contains(.primaryKey) }
        slots = Dictionary(all.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        columns = Dictionary(all.enumerated().map { ($1.column, $0) }, uniquingKeysWith: { first, _ in first })
        prototype._trace = _KeyPathTrace()
        check()
    }

    /// Creates the schema of a class that only a file has. Its objects are read-only `DynamicObject`s.
    init(old type: ObjectType) {
        objectClass = DynamicObject.self
        name = type.name
        prototype = DynamicObject()
        let isKeyless = type.primaryKey.map { type.properties[$0].name } == TableLayout.hiddenKey.name
        // The hidden key is the last property.
        properties = type.properties.dropLast(isKeyless ? 1 : 0).map { property in
            Property(
                name: property.name, column: property.name, kind: FileClass.kind(of: property), flags: [], offset: 0,
                wrapper: FileClass.reader(of: property), origin: nil, absent: property.emptyValue)
        }
        wrappers = []
        isPlain = false
        storedCount = properties.count
        primaryKeySlot = isKeyless ? nil : type.primaryKey
        slots = Dictionary(properties.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        columns = slots
    }

    private static func properties(of object: ObjectBase) -> [Property] {
        let type = Swift.type(of: object)
        DeclarationCheck.rejectOldDeclarations(in: object)
        let wrappers = wrappers(of: object)
        let mapping = type.propertiesMapping()
        var found: [Property] = []
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { label, offset, fieldType, _ in
            guard let wrapper = fieldType as? any AnyPersisted.Type else { return true }
            // The label of a wrapper's storage is the property's name after an underscore.
            let name = String(String(cString: label).dropFirst())
            var property = Property(
                name: name, column: mapping[name] ?? name, kind: wrapper.kind, flags: wrappers[name]?.flags ?? [], offset: offset,
                wrapper: wrapper, origin: wrappers[name]?.origin, absent: .null)
            property.absent = property.kind.isComputed ? .null : property.core.emptyValue
            found.append(property)
            return true
        }
        return found
    }

    /// Returns the number of stored fields of a class, including those of its superclasses.
    private static func fieldCount(of type: ObjectBase.Type) -> Int {
        var count = 0
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { _, _, _, _ in
            count += 1
            return true
        }
        return count
    }

    /// `true` if an optional property of the class must not be null.
    func isRequired(_ slot: Int) -> Bool { wrappers[slot].isRequired }

    /// Ends the program because of a null in a required property.
    func refuseNull(_ slot: Int) -> Never {
        throwRealmException("Invalid null value for the required property '\(name).\(properties[slot].name)'.")
    }

    /// Returns the wrappers of an instance by property name.
    private static func wrappers(of object: ObjectBase) -> [String: any AnyPersisted] {
        var wrappers: [String: any AnyPersisted] = [:]
        var mirror: Mirror? = Mirror(reflecting: object)
        while let level = mirror {
            for child in level.children {
                guard let wrapper = child.value as? any AnyPersisted, let label = child.label else { continue }
                wrappers[String(label.dropFirst())] = wrapper
            }
            mirror = level.superclassMirror
        }
        return wrappers
    }

    private static let keyTypes: [SluiceCore.PropertyType] = [.string, .int, .objectId, .uuid]

    /// Ends the program for a class that is invalid by itself: duplicate columns or an unsuitable primary key.
    private func check() {
        if Set(properties.map(\.column)).count != properties.count {
            throwRealmException("Two properties of '\(name)' have the same name in the file.")
        }
        if properties.filter({ $0.flags.contains(.primaryKey) }).count > 1 {
            throwRealmException("Properties of '\(name)' are both declared as primary key; only one can be.")
        }
        if let key = primaryKeySlot.map({ properties[$0] }), !ModelSchema.keyTypes.contains(key.kind.type) || key.kind.collection != .none {
            throwRealmException(
                "Property '\(key.name)' cannot be made the primary key of '\(name)' because it is not a 'string', 'int', 'objectId', "
                    + "or 'uuid' property.")
        }
        guard objectClass is EmbeddedObject.Type else { return }
        if primaryKeySlot != nil { throwRealmException("Embedded class '\(name)' cannot have a primary key.") }
    }

    func slot(of name: String) -> Int? { slots[name] }

    /// Returns the slot of a property by its name in the class, else by its name in the file.
    func slot(named name: String) -> Int? { slots[name] ?? columns[name] }

    /// Returns the name in the file of a key path's first property; nil if the key path has none.
    func name(of keyPath: AnyKeyPath) -> String? { trace(keyPath).first.map { properties[Int($0)].column } }

    /// Returns the slots along a key path. Each belongs to the class that the previous one leads to.
    func trace(_ keyPath: AnyKeyPath) -> [Int32] { trace { $0[keyPath: keyPath] } }

    /// Returns the slots that a closure reads from an instance.
    func trace(_ read: (ObjectBase) -> Any?) -> [Int32] {
        tracing.withLock { _ in
            prototype._trace?.slots = []
            (read(prototype) as? any TracedValues)?.touch()
            return prototype._trace?.slots ?? []
        }
    }

    /// Creates an instance that records the properties that are read.
    func traced(_ trace: _KeyPathTrace) -> ObjectBase {
        let object = objectClass.init()
        for slot in wrappers.indices { withWrapped(object, slot) { ($0.slot, $0.held) = (Int32(slot), .unset) } }
        object._trace = trace
        return object
    }

    // MARK: The core's schema

    /// `true` if objects have a key that exists in a local file only.
    var hasHiddenKey: Bool { primaryKeySlot == nil && objectClass is Object.Type }

    /// Ends the program if a class without a primary key is searched by key.
    func requirePrimaryKey() { if primaryKeySlot == nil { throwRealmException("'\(name)' does not have a primary key defined") } }

    /// Returns the class for the core's schema. The server assigns the numbers of properties.
    /// - Parameter isSynced: `false` adds a hidden key to a class without a primary key.
    func objectType(isSynced: Bool) -> ObjectType {
        let kind: ObjectKind =
            switch objectClass {
            case is AsymmetricObject.Type: .asymmetric
            case is EmbeddedObject.Type: .embedded
            default: .topLevel
            }
        let own = properties.prefix(storedCount).map(\.core)
        if hasHiddenKey && !isSynced {
            return ObjectType(
                name: name, kind: kind, properties: own + [TableLayout.hiddenKey], primaryKey: TableLayout.hiddenKey.name)
        }
        return ObjectType(name: name, kind: kind, properties: own, primaryKey: primaryKeySlot.map { properties[$0].column })
    }

    /// Returns the given classes and all that they link to or embed, each once, in breadth-first order. Invalid inverses end the program.
    static func closure(of types: [ObjectBase.Type]) -> [ModelSchema] {
        var schemas: [ModelSchema] = []
        var waiting = types[...]
        while let type = waiting.popFirst() {
            let schema = ModelSchema.of(type)
            if schemas.contains(where: { $0 === schema }) { continue }
            schemas.append(schema)
            waiting.append(contentsOf: schema.properties.compactMap(\.kind.target))
        }
        for schema in schemas { schema.checkOrigins() }
        return schemas
    }

    private func checkOrigins() {
        for property in properties where property.kind.isComputed {
            guard let origin = property.origin, let target = property.kind.target else {
                throwRealmException("Property '\(name).\(property.name)' of type LinkingObjects has no origin property name.")
            }
            let source = ModelSchema.of(target)
            if target is EmbeddedObject.Type, !(objectClass is EmbeddedObject.Type) {
                throwRealmException(
                    "Property '\(name).\(property.name)' is the inverse of links from the embedded class '\(source.name)', which is not supported"
                )
            }
            guard let slot = source.slot(of: origin) else {
                throwRealmException(
                    "Property '\(source.name).\(origin)' declared as origin of linking objects property '\(name).\(property.name)' does not exist"
                )
            }
            guard source.properties[slot].kind.target == objectClass, !source.properties[slot].kind.isComputed else {
                throwRealmException(
                    "Property '\(source.name).\(origin)' declared as origin of linking objects property '\(name).\(property.name)' "
                        + "links to a different class or is no link")
            }
        }
    }

    // MARK: Instances

    /// Runs the body with the wrapper of a property of an instance.
    private func withWrapped<R>(_ object: ObjectBase, _ slot: Int, _ body: (inout _Wrapped) -> R) -> R {
        withExtendedLifetime(object) {
            let base = UnsafeMutableRawPointer(Unmanaged.passUnretained(object).toOpaque())
            return body(&(base + wrappers[slot].offset).assumingMemoryBound(to: _Wrapped.self).pointee)
        }
    }

    /// Makes an instance an accessor of a row.
    /// - Parameter attaching: makes the collections and embedded objects in its wrappers accessors too.
    func bind(_ object: ObjectBase, to row: _RowCache, attaching: Bool) {
        object._row = row
        // An instance of another class, such as `DynamicObject`, reads by slot.
        guard type(of: object) == objectClass else { return }
        let managed = _HeldValue.managed(Unmanaged.passUnretained(row))
        for slot in wrappers.indices {
            let before = withWrapped(object, slot) { $0.become(slot: Int32(slot), managed) }
            guard attaching, let before else { continue }
            switch before {
            case .object: wrappers[slot].type.attach(before, to: object, slot: slot)
            // Null invalidates the accessors of the place's previous value.
            case .scalar(.null) where wrappers[slot].hasPlace: wrappers[slot].type.attach(before, to: object, slot: slot)
            case .scalar, .unset, .managed: break
            }
        }
    }

    /// Returns the value of a property of an unmanaged instance, and `false` if it is only the type's default.
    /// A null in a required property ends the program. `owner` decides where linked objects go.
    func take(_ object: ObjectBase, slot: Int, owner: ObjectBase) -> (value: _StoredValue, isGiven: Bool) {
        let held = withWrapped(object, slot) { $0.held }
        switch held {
        case .scalar(.null) where wrappers[slot].isRequired: refuseNull(slot)
        case .unset where wrappers[slot].isRequired: refuseNull(slot)
        case .scalar(let value): return (value, true)
        case .object: return (wrappers[slot].type.stored(held, in: owner), true)
        case .unset, .managed: return (wrappers[slot].type.stored(.unset, in: owner), false)
        }
    }

    /// Returns the content of an unmanaged instance's wrapper. A default is stored, so that a generated one, such as an ObjectId, stays.
    private func held(_ object: ObjectBase, slot: Int) -> _HeldValue {
        let held = withWrapped(object, slot) { $0.held }
        guard case .unset = held else { return held }
        let fallback = wrappers[slot].type.fallback()
        withWrapped(object, slot) { $0.held = fallback }
        return fallback
    }

    func primaryKey(of object: ObjectBase) -> Value {
        if let row = object._row { return row.key }
        guard let slot = primaryKeySlot else { return .null }
        let held = held(object, slot: slot)
        if case .scalar(let value) = held { return value.value }
        return wrappers[slot].type.stored(held, in: object).value
    }

    /// Returns the value of a property of any instance, as dynamic access shows it; nil for null.
    func untyped(of object: ObjectBase, slot: Int) -> Any? {
        if object._row != nil { return properties[slot].wrapper.read(of: object, slot: slot) }
        return wrappers[slot].type.untyped(held(object, slot: slot))
    }

    /// Creates an unmanaged object with values; see `assign`.
    func instance<T: ObjectBase>(_ value: Any, of type: T.Type) -> T {
        // Not `T()`: the class may be known at run time only.
        let object = type.init()
        assign(value, to: object)
        return object
    }

    /// Sets properties from a dictionary by name, an array in order, or another object, whose unknown properties are skipped.
    /// Unknown names and excess values of the others end the program.
    func assign(_ value: Any, to object: ObjectBase) {
        // From now on `put` records the slots, so that an update changes these properties alone.
        object.assigned = object.assigned ?? []
        if let dictionary = value as? [String: Any] {
            for (name, value) in dictionary {
                guard let slot = slots[name], slot < storedCount else {
                    throwRealmException("Invalid property name '\(name)' for class '\(self.name)'.")
                }
                put(value, slot, object)
            }
        } else if let array = value as? [Any] {
            guard array.count <= storedCount else {
                throwRealmException("Invalid array input: more values (\(array.count)) than properties (\(storedCount)).")
            }
            for (slot, value) in array.enumerated() { put(value, slot, object) }
        } else if let source = value as? ObjectBase {
            let schema = source.model
            for (slot, property) in properties.prefix(storedCount).enumerated() {
                guard let other = schema.slot(of: property.name) else { continue }
                put(schema.untyped(of: source, slot: other) as Any, slot, object)
            }
        } else {
            throwRealmException("Invalid value '\(value)' to initialize object of type '\(name)': expected a dictionary or an array.")
        }
    }

    /// Sets a property of any instance. A value that does not fit ends the program.
    func put(_ value: Any, _ slot: Int, _ object: ObjectBase) {
        let fits: Bool
        if object._row != nil {
            fits = properties[slot].wrapper.write(value, to: object, slot: slot)
        } else {
            let held = properties[slot].wrapper.hold(value)
            if let held { withWrapped(object, slot) { $0.held = held } }
            fits = held != nil
            object.assigned?.insert(slot)
        }
        if fits { return }
        throwRealmException("Invalid value '\(value)' of type '\(type(of: value))' for property '\(name).\(properties[slot].name)'.")
    }
}
