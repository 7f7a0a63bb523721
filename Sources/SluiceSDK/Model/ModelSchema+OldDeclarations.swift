@_spi(Reflection) import Swift
import SluiceCore

/// Stored properties without `@Persisted`: nothing of them reaches the file.
extension ModelSchema {
    private struct Field {
        var name: String
        var type: any _Persistable.Type
    }

    /// Refuses collections, inverse links, and classes without any stored property, which older apps declare without `@Persisted`.
    ///
    /// Other properties without it are the app's own, as in RealmSwift; a warning in the log names them.
    /// - Parameter object: an instance, which knows the other ends of its inverse links.
    static func refuseOldDeclarations(in object: ObjectBase) {
        let type = Swift.type(of: object)
        let ignored = Set((type as? Object.Type)?.ignoredProperties() ?? [])
        let inherited = inheritedOffsets(of: type)
        var isStored = false
        var own: [Field] = []
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { label, offset, fieldType, _ in
            let name = String(cString: label)
            if fieldType is any AnyPersisted.Type {
                isStored = true
            } else if let fieldType = fieldType as? any _Persistable.Type, !name.hasPrefix("_"), !name.hasPrefix("$"),
                !ignored.contains(name), !inherited.contains(offset)
            {
                own.append(Field(name: name, type: fieldType))
            }
            return true
        }
        for field in own {
            guard isStored, field.type._kind.collection == .none, !field.type._kind.isComputed else {
                refuse(field, in: object)
            }
            Logger.log(.warn, Category.sdk) {
                "Property '\(type.className()).\(field.name)' is not stored. Declare it with @Persisted, or name it in ignoredProperties()."
            }
        }
    }

    private static func refuse(_ field: Field, in object: ObjectBase) -> Never {
        let line =
            if field.type._kind.isComputed {
                "@Persisted(originProperty: \"\(origin(of: field.name, in: object) ?? "…")\") var \(field.name): \(field.type)"
            } else {
                "@Persisted var \(field.name): \(field.type)"
            }
        throwRealmException(
            "Property '\(Swift.type(of: object).className()).\(field.name)' is declared without @Persisted, so it would not be stored. "
                + "Write: \(line)")
    }

    /// The property of the other class that an inverse link is of.
    private static func origin(of name: String, in object: ObjectBase) -> String? {
        var mirror: Mirror? = Mirror(reflecting: object)
        while let level = mirror {
            for child in level.children where child.label == name { return (child.value as? any AnyLinkingObjects)?.originProperty }
            mirror = level.superclassMirror
        }
        return nil
    }

    /// The offsets of the stored properties that the SDK's own classes declare; an app may use their names.
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

    /// The names of all stored properties of a class, those of wrappers without their underscore.
    static func storedNames(of type: ObjectBase.Type) -> Set<String> {
        var names: Set<String> = []
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { label, _, _, _ in
            let name = String(cString: label)
            names.formUnion([name, String(name.drop { $0 == "_" })])
            return true
        }
        return names
    }
}
