package import SluiceCore

/// One instruction of a changeset in Realm's sync protocol.
///
/// List indices are those of the list as its writer saw it directly before the instruction. Prior sizes count its elements at that time.
package enum RealmInstruction: Hashable, Sendable {
    case addTable(RealmTable)
    /// The name of the class. The gateway neither sends nor accepts it.
    case eraseTable(String)
    case addColumn(RealmColumn)
    /// The gateway neither sends nor accepts it.
    case eraseColumn(table: String, name: String)
    case createObject(ObjectKey)
    case eraseObject(ObjectKey)
    /// Writes a property, an embedded object's field or a dictionary's key. The path does not end in an index.
    case update(RealmPath, RealmPayload, isDefault: Bool = false)
    case addInteger(RealmPath, Int64)
    /// Replaces an element of the list at the path.
    case arrayUpdate(RealmPath, at: Int, RealmPayload, priorSize: Int)
    case arrayInsert(RealmPath, at: Int, RealmPayload, priorSize: Int)
    /// Moves an element so that it has the index `to` afterwards.
    case arrayMove(RealmPath, from: Int, to: Int, priorSize: Int)
    case arrayErase(RealmPath, at: Int, priorSize: Int)
    /// Empties a collection. `.none` is the form of protocols before 13 for a collection of a known kind.
    case clear(RealmPath, CollectionKind)
    case setInsert(RealmPath, RealmPayload)
    case setErase(RealmPath, RealmPayload)
}

/// The declaration of a class.
package struct RealmTable: Hashable, Sendable {
    package var name: String
    package var kind: ObjectKind
    /// The primary key. Nil for embedded classes only.
    package var key: Key?

    package struct Key: Hashable, Sendable {
        package var name: String
        /// `.int`, `.string`, `.objectId` or `.uuid`.
        package var type: PropertyType
        package var isNullable: Bool

        package init(_ name: String, _ type: PropertyType, isNullable: Bool = false) {
            self.name = name
            self.type = type
            self.isNullable = isNullable
        }
    }

    package init(_ name: String, _ kind: ObjectKind = .topLevel, key: Key?) {
        self.name = name
        self.kind = kind
        self.key = key
    }
}

/// The declaration of a property. The primary key has none: it is part of its class's declaration.
package struct RealmColumn: Hashable, Sendable {
    package var table: String
    package var name: String
    /// The type of the value or of the elements. An embedded object is written as a link to its class, so the decoder returns `.link`.
    package var type: PropertyType
    package var isNullable: Bool
    package var collection: CollectionKind

    package init(_ table: String, _ name: String, _ type: PropertyType, isNullable: Bool = false, _ collection: CollectionKind = .none) {
        self.table = table
        self.name = name
        self.type = type
        self.isNullable = isNullable
        self.collection = collection
    }
}

/// A place in an object. Embedded objects have no identity: their path begins at the top-level object.
package struct RealmPath: Hashable, Sendable {
    package var object: ObjectKey
    package var field: String
    /// The steps from the property's value to the place. Empty for the value itself.
    package var steps: [RealmStep]

    package init(_ object: ObjectKey, _ field: String, _ steps: [RealmStep] = []) {
        self.object = object
        self.field = field
        self.steps = steps
    }
}

package enum RealmStep: Hashable, Sendable {
    /// An index of a list.
    case index(Int)
    /// A key of a dictionary, or a field of an embedded object.
    case key(String)
}

/// The value that an instruction writes.
package enum RealmPayload: Hashable, Sendable {
    /// Null, a scalar, or a link with the class of its target. Lists and dictionaries are not permitted.
    case value(Value)
    /// An embedded object without fields (`.object`), or a collection in a mixed value.
    case container(Edit.Container)
    /// The removal of a dictionary's key.
    case erased
}

extension RealmInstruction {
    /// The place that the instruction changes. Nil for objects and declarations.
    package var path: RealmPath? {
        switch self {
        case .update(let path, _, _), .addInteger(let path, _), .arrayUpdate(let path, _, _, _), .arrayInsert(let path, _, _, _),
            .arrayMove(let path, _, _, _), .arrayErase(let path, _, _), .clear(let path, _), .setInsert(let path, _),
            .setErase(let path, _):
            path
        case .addTable, .eraseTable, .addColumn, .eraseColumn, .createObject, .eraseObject: nil
        }
    }

    /// The object that the instruction changes. Nil for declarations.
    package var object: ObjectKey? {
        switch self {
        case .createObject(let object), .eraseObject(let object): object
        default: path?.object
        }
    }
}
