import SluiceCore

/// A set of the types that `@type` tells apart. A value has one of them; a name may mean several.
package struct TypeMask: OptionSet, Hashable, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }

    static let null = TypeMask(rawValue: 1)
    static let int = TypeMask(rawValue: 2)
    static let bool = TypeMask(rawValue: 4)
    static let string = TypeMask(rawValue: 8)
    static let binary = TypeMask(rawValue: 16)
    static let timestamp = TypeMask(rawValue: 32)
    static let float = TypeMask(rawValue: 64)
    static let double = TypeMask(rawValue: 128)
    static let decimal = TypeMask(rawValue: 256)
    static let link = TypeMask(rawValue: 512)
    static let objectId = TypeMask(rawValue: 1_024)
    static let uuid = TypeMask(rawValue: 2_048)
    static let dictionary = TypeMask(rawValue: 4_096)
    static let list = TypeMask(rawValue: 8_192)

    init(of value: Value) {
        self =
            switch value {
            case .null: .null
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
            case .list: .list
            case .dictionary: .dictionary
            case .link: .link
            }
    }

    /// The types that a name means, in any letter case; nil for a name that means none.
    init?(name: String) {
        guard name.utf8.count <= 32, let mask = TypeMask.byName[name.lowercased()] else { return nil }
        self = mask
    }

    static let names: [String] = groups.flatMap(\.names).sorted()

    private static let groups: [(mask: TypeMask, names: [String])] = [
        (.null, ["null"]), (.int, ["int", "integer", "int16", "int32", "int64", "short", "long", "byte", "char"]),
        (.bool, ["bool", "boolean"]), (.string, ["string"]), (.binary, ["binary", "data", "bytearray", "byte[]", "bindata"]),
        (.timestamp, ["date", "datetimeoffset", "timestamp"]), (.float, ["float"]), (.double, ["double"]),
        (.decimal, ["decimal128", "decimal"]), ([.int, .float, .double, .decimal], ["numeric"]), (.link, ["objectlink", "link"]),
        (.objectId, ["objectid"]), (.uuid, ["uuid", "guid"]), (.dictionary, ["object", "dictionary"]), (.list, ["array", "list"]),
        ([.list, .dictionary], ["collection"]),
    ]

    private static let byName: [String: TypeMask] = Dictionary(
        groups.flatMap { group in group.names.map { ($0, group.mask) } }, uniquingKeysWith: { first, _ in first })
}
