import SluiceValues

/// Equality by bytes for the syntax tree's parts that hold text. Swift's strings are equal if they are canonically equivalent. The language
/// distinguishes an "é" of one code point from one of two.
extension Literal: Hashable {
    package static func == (lhs: Literal, rhs: Literal) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null), (.nan, .nan): true
        case (.bool(let l), .bool(let r)): l == r
        case (.int(let l), .int(let r)): l == r
        case (.real(let l), .real(let r)), (.float(let l), .float(let r)): l == r
        case (.infinity(let l), .infinity(let r)): l == r
        case (.string(let l), .string(let r)): l.hasSameBytes(as: r)
        case (.bytes(let l), .bytes(let r)), (.binary(let l), .binary(let r)): l == r
        case (.timestamp(let l), .timestamp(let r)): l == r
        case (.objectId(let l), .objectId(let r)): l == r
        case (.uuid(let l), .uuid(let r)): l == r
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .nan: hasher.combine(1)
        case .bool(let value): hasher.combine(value)
        case .int(let value): hasher.combine(value)
        case .real(let text), .float(let text), .string(let text): text.hashBytes(into: &hasher)
        case .infinity(let negative): hasher.combine(negative)
        case .bytes(let value), .binary(let value): hasher.combine(value)
        case .timestamp(let value): hasher.combine(value)
        case .objectId(let value): hasher.combine(value)
        case .uuid(let value): hasher.combine(value)
        }
    }
}

extension PathStep.Kind: Hashable {
    package static func == (lhs: PathStep.Kind, rhs: PathStep.Kind) -> Bool {
        switch (lhs, rhs) {
        case (.name(let l), .name(let r)), (.key(let l), .key(let r)): l.hasSameBytes(as: r)
        case (.argument(let l), .argument(let r)), (.keyArgument(let l), .keyArgument(let r)): l == r
        case (.index(let l), .index(let r)): l == r
        case (.first, .first), (.last, .last), (.every, .every), (.backlinks, .backlinks), (.keys, .keys), (.values, .values): true
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .name(let text), .key(let text): text.hashBytes(into: &hasher)
        case .argument(let number), .keyArgument(let number): hasher.combine(number)
        case .index(let index): hasher.combine(index)
        case .first: hasher.combine(0)
        case .last: hasher.combine(1)
        case .every: hasher.combine(2)
        case .backlinks: hasher.combine(3)
        case .keys: hasher.combine(4)
        case .values: hasher.combine(5)
        }
    }
}
