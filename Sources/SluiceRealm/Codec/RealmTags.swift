import SluiceCore

/// The numbers of instructions in changesets.
enum RealmInstructionTag: Int64 {
    case addTable = 0
    case eraseTable = 1
    case createObject = 2
    case eraseObject = 3
    case update = 4
    case addInteger = 5
    case addColumn = 6
    case eraseColumn = 7
    case arrayInsert = 8
    case arrayMove = 9
    case arrayErase = 10
    case clear = 11
    case setInsert = 12
    case setErase = 13
    /// A string for later reference by its index. It may stand between any two instructions.
    case internString = 63
}

/// The numbers of types, for payloads, keys and columns.
enum RealmTypeTag: Int64 {
    case set = -6
    case list = -5
    case erased = -4
    case dictionary = -3
    case object = -2
    case globalKey = -1
    /// A null payload, or a mixed column.
    case null = 0
    case int = 1
    case bool = 2
    case string = 3
    case binary = 4
    case timestamp = 5
    case float = 6
    case double = 7
    case decimal = 8
    case link = 9
    case objectId = 10
    case uuid = 11

    /// The tag of a column's type. An embedded object has that of a link.
    init(column type: PropertyType) {
        self =
            switch type {
            case .bool: .bool
            case .int: .int
            case .float: .float
            case .double: .double
            case .decimal: .decimal
            case .string: .string
            case .binary: .binary
            case .timestamp: .timestamp
            case .objectId: .objectId
            case .uuid: .uuid
            case .mixed: .null
            case .link, .embedded: .link
            }
    }

    /// The type of a column with this tag. Nil for a link, which needs a target, and for tags that no column has.
    var columnType: PropertyType? {
        switch self {
        case .null: .mixed
        case .int: .int
        case .bool: .bool
        case .string: .string
        case .binary: .binary
        case .timestamp: .timestamp
        case .float: .float
        case .double: .double
        case .decimal: .decimal
        case .objectId: .objectId
        case .uuid: .uuid
        case .set, .list, .erased, .dictionary, .object, .globalKey, .link: nil
        }
    }
}

extension Edit.Container {
    var realmTag: RealmTypeTag {
        switch self {
        case .list: .list
        case .set: .set
        case .dictionary: .dictionary
        case .object: .object
        }
    }
}

extension CollectionKind {
    /// The protocol's number, which differs from the raw value for sets and dictionaries.
    var realmNumber: Int64 {
        switch self {
        case .none: 0
        case .list: 1
        case .dictionary: 2
        case .set: 3
        }
    }

    init?(realmNumber: Int64) {
        guard let kind = CollectionKind.allCases.first(where: { $0.realmNumber == realmNumber }) else { return nil }
        self = kind
    }
}

extension ObjectKind {
    var realmNumber: Int64 {
        switch self {
        case .topLevel: 0
        case .embedded: 1
        case .asymmetric: 2
        }
    }

    init?(realmNumber: Int64) {
        guard let kind = ObjectKind.allCases.first(where: { $0.realmNumber == realmNumber }) else { return nil }
        self = kind
    }
}
