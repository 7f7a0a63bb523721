import SluiceCore
import SluiceValues

/// The kind of a value in a document.
enum ValueKind: String, Hashable, CaseIterable {
    case null, bool, long, double, decimal, string, date, objectId, uuid, binData, object, array
    /// A DBRef, which only a mixed value can hold.
    case link
    /// A value that no property can hold, such as a regular expression.
    case unfit

    init(_ json: JSON) {
        switch json {
        case .null: self = .null
        case .bool: self = .bool
        case .int: self = .long
        case .double: self = .double
        case .string: self = .string
        case .array: self = .array
        case .object(let members): self = Self.kind(of: json, members.first?.key ?? "")
        }
    }

    private static func kind(of json: JSON, _ key: String) -> ValueKind {
        switch ExtendedForm(json) {
        case .int: return .long
        case .double: return .double
        case .decimal: return .decimal
        case .binary: return .binData
        case .timestamp: return .date
        case .objectId: return .objectId
        case .uuid: return .uuid
        case .link: return .link
        case nil: break
        }
        switch key {
        case "$undefined": return .null
        case "$symbol": return .string
        default: return key.hasPrefix("$") ? .unfit : .object
        }
    }
}

/// The number of fields that may still be counted by name, in all objects of all collections together.
final class CounterBudget {
    private var left: Int

    init(_ count: Int = 100_000) { left = count }

    /// Takes one field from the budget.
    ///
    /// - Returns: `false` if nothing is left.
    func take() -> Bool {
        left -= left > 0 ? 1 : 0
        return left > 0
    }
}

/// Counts the kinds of a field's values over documents.
///
/// Memory is bounded. An object counts at most `ObjectCounter.mostFields` fields by name, and all objects together those of the budget.
/// Values below `deepest` are not looked into.
final class FieldCounter {
    /// The levels of objects and lists that are looked into.
    static let deepest = 8

    private(set) var counts: [ValueKind: Int] = [:]
    /// The key of the first document with a value of a kind.
    private(set) var examples: [ValueKind: String] = [:]
    private(set) var object: ObjectCounter?
    private(set) var elements: FieldCounter?
    private let depth: Int
    private let budget: CounterBudget

    init(depth: Int = 0, budget: CounterBudget = CounterBudget(.max)) {
        self.depth = depth
        self.budget = budget
    }

    /// The number of values, without null.
    var total: Int { counts.reduce(0) { $0 + ($1.key == .null ? 0 : $1.value) } }

    /// - Parameter key: The primary key of the document, for messages.
    func add(_ json: JSON, key: @autoclosure () -> String) {
        let kind = ValueKind(json)
        if counts[kind, default: 0] == 0 { examples[kind] = key() }
        counts[kind, default: 0] += 1
        guard depth < Self.deepest else { return }
        switch json {
        case .array(let values):
            let counter = elements ?? FieldCounter(depth: depth + 1, budget: budget)
            elements = counter
            for value in values { counter.add(value, key: key()) }
        case .object(let members) where kind == .object:
            let counter = object ?? ObjectCounter(depth: depth + 1, budget: budget)
            object = counter
            counter.add(members, key: key())
        default: break
        }
    }

    /// Adds the counts of another field.
    func merge(_ other: FieldCounter) {
        for (kind, count) in other.counts {
            counts[kind, default: 0] += count
            if examples[kind] == nil { examples[kind] = other.examples[kind] }
        }
        if let inner = other.elements {
            let counter = elements ?? FieldCounter(depth: depth + 1, budget: budget)
            elements = counter
            counter.merge(inner)
        }
        if let inner = other.object {
            let counter = object ?? ObjectCounter(depth: depth + 1, budget: budget)
            object = counter
            counter.merge(inner)
        }
    }
}

/// Counts the fields of an object over documents.
final class ObjectCounter {
    /// The most fields that are counted by name. An object with more is a dictionary.
    static let mostFields = 200

    private(set) var count = 0
    /// The names in order of appearance.
    private(set) var names: [String] = []
    private(set) var fields: [String: FieldCounter] = [:]
    /// The values of all further fields.
    private(set) var others: FieldCounter?
    private let depth: Int
    private let limit: Int
    private let budget: CounterBudget

    init(depth: Int, limit: Int = ObjectCounter.mostFields, budget: CounterBudget) {
        self.depth = depth
        self.limit = limit
        self.budget = budget
    }

    func add(_ members: [JSON.Member], key: @autoclosure () -> String) {
        count += 1
        for member in members { counter(member.key).add(member.value, key: key()) }
    }

    func merge(_ other: ObjectCounter) {
        count += other.count
        for name in other.names { if let field = other.fields[name] { counter(name).merge(field) } }
        if let rest = other.others {
            let counter = others ?? FieldCounter(depth: depth, budget: budget)
            others = counter
            counter.merge(rest)
        }
    }

    private func counter(_ name: String) -> FieldCounter {
        if let known = fields[name] { return known }
        guard names.count < limit, budget.take() else {
            let counter = others ?? FieldCounter(depth: depth, budget: budget)
            others = counter
            return counter
        }
        let counter = FieldCounter(depth: depth, budget: budget)
        names.append(name)
        fields[name] = counter
        return counter
    }

    /// The counts of all values together.
    var values: FieldCounter {
        let all = FieldCounter(depth: depth)
        for name in names { if let field = fields[name] { all.merge(field) } }
        if let others { all.merge(others) }
        return all
    }
}
