import SluiceCore
import SluiceReplica

extension ObjectType {
    /// The properties without the hidden key.
    fileprivate var ownProperties: [SluiceCore.Property] { properties.filter { $0.name != TableLayout.hiddenKey.name } }

    /// The name of the primary key; nil if the key is hidden.
    fileprivate var ownKey: String? {
        let name = primaryKey.map { properties[$0].name }
        return name == TableLayout.hiddenKey.name ? nil : name
    }
}

/// The differences that prevent a local file from being used with other classes, in the order of the classes.
struct SchemaDifferences {
    let texts: [String]

    /// Compares two schemas. New classes, classes that only the file has, and indexes are no differences.
    init(from old: SluiceCore.Schema, to new: SluiceCore.Schema) {
        texts = new.types.flatMap { type in old[type.name].map { SchemaDifferences.texts($0, type) } ?? [] }
    }

    private static func texts(_ old: ObjectType, _ new: ObjectType) -> [String] {
        if old.kind != new.kind { return ["Class '\(new.name)' has been changed from \(name(old.kind)) to \(name(new.kind))."] }
        var texts: [String] = []
        for property in old.ownProperties where new[property.name] == nil {
            texts.append("Property '\(new.name).\(property.name)' has been removed.")
        }
        for property in new.ownProperties {
            let path = "Property '\(new.name).\(property.name)'"
            guard let before = old[property.name] else {
                texts.append("\(path) has been added.")
                continue
            }
            if before.type != property.type || before.collection != property.collection {
                texts.append("\(path) has been changed from '\(name(before))' to '\(name(property))'.")
            } else if before.isOptional != property.isOptional {
                texts.append("\(path) has been made \(property.isOptional ? "optional" : "required").")
            }
        }
        let keys = (old.ownKey, new.ownKey)
        switch keys {
        case (let before?, let after?) where before != after:
            texts.append("Primary Key for class '\(new.name)' has changed from '\(before)' to '\(after)'.")
        case (nil, _?): texts.append("Primary Key for class '\(new.name)' has been added.")
        case (_?, nil): texts.append("Primary Key for class '\(new.name)' has been removed.")
        default: break
        }
        return texts
    }

    private static func name(_ kind: ObjectKind) -> String {
        switch kind {
        case .topLevel: "top-level"
        case .embedded: "embedded"
        case .asymmetric: "top-level asymmetric"
        }
    }

    /// The type in Realm's notation: `array<string?>`, `<Dog>`.
    private static func name(_ property: SluiceCore.Property) -> String {
        let element =
            switch property.type {
            case .link(let target), .embedded(let target): "<\(target)>"
            case .decimal: "decimal128"
            case .binary: "data"
            case .objectId: "object id"
            default: property.type.name
            }
        let isLink = element.hasPrefix("<")
        let value = element + (property.isOptional && !(isLink && property.collection != .none) ? "?" : "")
        let inside = isLink ? value : "<\(value)>"
        switch property.collection {
        case .none: return value
        case .list: return "array\(inside)"
        case .set: return "set\(inside)"
        case .dictionary: return "dictionary<string, \(value)>"
        }
    }
}
