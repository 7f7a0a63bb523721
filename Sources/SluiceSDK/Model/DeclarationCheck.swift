@_spi(Reflection) import Swift
import SluiceCore
import Synchronization

/// The check of a class for stored properties without `@Persisted`, which never reach the file.
enum DeclarationCheck {
    private struct Field {
        var name: String
        /// The declared type. A collection or an inverse is never optional with `@Persisted`, so it is shown without.
        var type: Any.Type
        /// Nil for a type that `@Persisted` does not accept.
        var kind: _PropertyKind?
        /// `true` for a type with raw values, such as an enumeration that older apps store as a `RealmEnum`.
        var hasRawValue: Bool

        /// `true` for a collection or an inverse.
        var isCollection: Bool { kind.map { $0.collection != .none || $0.isComputed } ?? false }
        /// Name and type, as a warning shows them.
        var text: String { "\(name): \(type)\(kind == nil ? " (a type that @Persisted does not accept)" : "")" }

        /// - Parameter storage: the type of the stored field.
        init(label: String, storage: Any.Type) {
            (name, type) = (label, storage)
            if label.hasPrefix(DeclarationCheck.lazyPrefix) {
                name = String(label.dropFirst(DeclarationCheck.lazyPrefix.count))
                // The storage of a lazy property is nil before its first use.
                type = (storage as? any AnyOptional.Type)?.wrappedType ?? storage
            }
            var inner = type
            while let optional = inner as? any AnyOptional.Type { inner = optional.wrappedType }
            hasRawValue = inner is any RawRepresentable.Type
            kind = (type as? any _Persistable.Type)?._kind
            // An optional collection is no persistable type.
            if kind == nil, let persistable = inner as? any _Persistable.Type { (type, kind) = (inner, persistable._kind) }
        }
    }

    /// The compiler's prefix of the storage of a lazy property.
    private static let lazyPrefix = "$__lazy_storage_$_"

    /// The classes that have been warned of. The schema of a class may be discovered by two threads at once.
    private static let warned = Mutex<Set<ObjectIdentifier>>([])

    /// Rejects collections, inverse links and classes without any persisted property, which older apps declare without `@Persisted`.
    /// A rejection ends the program. The base of a class with persisted properties may have none.
    ///
    /// Other properties without it belong to the app, as in RealmSwift. A warning names them once, at any log level.
    /// - Parameter object: an instance, which knows the other ends of its inverse links.
    static func rejectOldDeclarations(in object: ObjectBase) {
        let type = Swift.type(of: object)
        let ignored = Set(type.ignoredProperties())
        let inherited = inheritedOffsets(of: type)
        var isStored = false
        var own: [Field] = []
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { label, offset, fieldType, _ in
            if fieldType is any AnyPersisted.Type {
                isStored = true
            } else if !inherited.contains(offset) {
                own.append(Field(label: String(cString: label), storage: fieldType))
            }
            return true
        }
        own.removeAll { field in
            // Another wrapper's storage has the property's name after an underscore.
            ignored.contains(field.name) || field.kind == nil && ignored.contains(String(field.name.drop { $0 == "_" }))
        }
        if let field = own.first(where: \.isCollection) { reject(field, in: object) }
        if !isStored, let field = own.first(where: { $0.kind != nil }), !KnownClasses.hasStoringSubclass(type) {
            reject(field, in: object)
        }
        // Beside stored properties, one of another type is the app's own. A class that stores nothing is probably a mistake.
        warn(of: own.filter { !isStored || $0.kind != nil || $0.hasRawValue }, type)
    }

    /// Warns of properties that are not stored, once for each class.
    private static func warn(of fields: [Field], _ type: ObjectBase.Type) {
        guard !fields.isEmpty, warned.withLock({ $0.insert(ObjectIdentifier(type)).inserted }) else { return }
        let names = fields.map(\.text).joined(separator: ", ")
        Logger.warn(
            Category.sdk,
            "Class '\(type.className())' does not store \(names). Declare each with @Persisted, or name it in ignoredProperties().")
    }

    private static func reject(_ field: Field, in object: ObjectBase) -> Never {
        let line =
            if field.kind?.isComputed == true {
                "@Persisted(originProperty: \"\(origin(of: field.name, in: object) ?? "…")\") var \(field.name): \(field.type)"
            } else {
                "@Persisted var \(field.name): \(field.type)"
            }
        throwRealmException(
            "Property '\(Swift.type(of: object).className()).\(field.name)' is declared without @Persisted, so it would not be stored. "
                + "Write: \(line)")
    }

    /// Returns the other class's property of an inverse link.
    private static func origin(of name: String, in object: ObjectBase) -> String? {
        var mirror: Mirror? = Mirror(reflecting: object)
        while let level = mirror {
            for child in level.children where child.label == name { return (child.value as? any AnyLinkingObjects)?.originProperty }
            mirror = level.superclassMirror
        }
        return nil
    }

    /// Returns the offsets of the fields of the SDK's own classes. An app may use their names.
    private static func inheritedOffsets(of type: ObjectBase.Type) -> Set<Int> {
        let base: ObjectBase.Type =
            switch type {
            case is Object.Type: Object.self
            case is EmbeddedObject.Type: EmbeddedObject.self
            default: AsymmetricObject.self
            }
        var offsets: Set<Int> = []
        _ = _forEachField(of: base, options: _EachFieldOptions(rawValue: 1)) { _, offset, _, _ in
            offsets.insert(offset)
            return true
        }
        return offsets
    }

    /// `true` if a class or one of its superclasses has a property with `@Persisted`.
    static func hasPersisted(_ type: ObjectBase.Type) -> Bool {
        var isFound = false
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { _, _, fieldType, _ in
            if fieldType is any AnyPersisted.Type { isFound = true }
            return true
        }
        return isFound
    }

    /// Returns the names of all stored fields of a class, with and without leading underscores. A lazy property has its own name.
    static func storedNames(of type: ObjectBase.Type) -> Set<String> {
        var names: Set<String> = []
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { label, _, _, _ in
            var name = String(cString: label)
            if name.hasPrefix(lazyPrefix) { name.removeFirst(lazyPrefix.count) }
            names.formUnion([name, String(name.drop { $0 == "_" })])
            return true
        }
        return names
    }
}

/// RealmSwift's older declaration of an optional number or Boolean. The compiler rejects it and shows the replacement.
@available(*, unavailable, message: "Declare '@Persisted var name: Value?' instead of 'let name = RealmOptional<Value>()'.")
public final class RealmOptional<Value> {
    public var value: Value?
    public init(_ value: Value? = nil) { self.value = value }
}

/// RealmSwift's older declaration of an optional or mixed value. The compiler rejects it and shows the replacement.
@available(*, unavailable, message: "Declare '@Persisted var name: Value' instead of 'let name = RealmProperty<Value>()'.")
public final class RealmProperty<Value> {
    // The initializer of older apps, so that the compiler shows the message above instead of a missing argument.
    public init() {}
    public var value: Value {
        get { throwRealmException("A property is declared as RealmProperty. Write: @Persisted var name: \(Value.self)") }
        set { throwRealmException("A property is declared as RealmProperty. Write: @Persisted var name: \(Value.self)") }
    }
}
