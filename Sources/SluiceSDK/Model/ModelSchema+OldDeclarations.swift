@_spi(Reflection) import Swift
import SluiceCore

/// Stored properties without `@Persisted`, which never reach the file.
extension ModelSchema {
    private struct Field {
        var name: String
        var type: any _Persistable.Type
    }

    /// Rejects collections, inverse links and classes without any persisted property, which older apps declare without `@Persisted`.
    /// A rejection ends the program.
    ///
    /// Other properties without it belong to the app, as in RealmSwift; a warning in the log names them.
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

    /// Returns the names of all stored fields of a class, with and without leading underscores.
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
