import SluiceCore

/// A set of the types that `@type` distinguishes. A value has one of them. A name may denote several.
package struct TypeMask: OptionSet, Hashable, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }

    static let null = TypeMask(.null)
    static let int = TypeMask(.int)
    static let bool = TypeMask(.bool)
    static let string = TypeMask(.string)
    static let binary = TypeMask(.binary)
    static let timestamp = TypeMask(.timestamp)
    static let float = TypeMask(.float)
    static let double = TypeMask(.double)
    static let decimal = TypeMask(.decimal)
    static let link = TypeMask(.link)
    static let objectId = TypeMask(.objectId)
    static let uuid = TypeMask(.uuid)
    static let dictionary = TypeMask(.dictionary)
    static let list = TypeMask(.list)

    init(of value: Value) { self.init(ValueCoding.tag(of: value)) }

    private init(_ tag: CellTag) { rawValue = 1 << Int64(tag.rawValue) }

    /// Creates the types that a name denotes, in any letter case. Returns nil for an unknown name.
    init?(name: String) {
        guard name.utf8.count <= 32, let mask = TypeMask.byName[name.lowercased()] else { return nil }
        self = mask
    }

    /// The first of the names that denote this set.
    var name: String { TypeMask.groups.first { $0.mask == self }?.names[0] ?? "\(rawValue)" }

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
