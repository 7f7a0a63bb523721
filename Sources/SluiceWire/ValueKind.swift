package import SluiceCore

/// The kind of a value: its field in the `Value` message.
package enum ValueKind: UInt32, Sendable, CaseIterable {
    case null = 1
    case bool = 2
    case int = 3
    case float = 4
    case double = 5
    case decimal = 6
    case string = 7
    case binary = 8
    case timestamp = 9
    case objectId = 10
    case uuid = 11
    case list = 12
    case dictionary = 13
    case link = 14

    var wireType: WireType {
        switch self {
        case .null, .bool, .int: .varint
        case .float: .fixed32
        case .double: .fixed64
        default: .lengthDelimited
        }
    }
}

/// A set of value kinds, such as those that a property accepts.
package struct ValueKinds: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }
    package init(_ kinds: ValueKind...) { rawValue = kinds.reduce(1 << ValueKind.null.rawValue) { $0 | 1 << UInt16($1.rawValue) } }

    package static let any = ValueKinds(rawValue: .max)

    package func contains(_ kind: ValueKind) -> Bool { rawValue >> UInt16(kind.rawValue) & 1 == 1 }

    /// The kinds that a value of this type, or an element of a collection of it, may have. Always includes null: optionality is a rule of
    /// the schema, not of the format.
    package init(of type: PropertyType) {
        self =
            switch type {
            case .bool: ValueKinds(.bool)
            case .int: ValueKinds(.int)
            case .float: ValueKinds(.float)
            case .double: ValueKinds(.double)
            case .decimal: ValueKinds(.decimal)
            case .string: ValueKinds(.string)
            case .binary: ValueKinds(.binary)
            case .timestamp: ValueKinds(.timestamp)
            case .objectId: ValueKinds(.objectId)
            case .uuid: ValueKinds(.uuid)
            case .mixed: .any
            case .link: ValueKinds(.int, .string, .objectId, .uuid)
            case .embedded: ValueKinds(.dictionary)
            }
    }
}

/// The kinds that a property accepts: for the value itself, and for its elements if it is a collection.
package struct ValueShape: Hashable, Sendable {
    package var value: ValueKinds
    package var elements: ValueKinds

    package init(of property: Property) {
        let kinds = ValueKinds(of: property.type)
        switch property.collection {
        case .none:
            value = kinds
            elements = .any
        case .list, .set:
            value = ValueKinds(.list)
            elements = kinds
        case .dictionary:
            value = ValueKinds(.dictionary)
            elements = kinds
        }
    }

    private init(value: ValueKinds, elements: ValueKinds) {
        self.value = value
        self.elements = elements
    }

    package static let any = ValueShape(value: .any, elements: .any)
}
