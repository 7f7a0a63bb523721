import SluiceCore
import SluiceValues

@testable import SluiceRealm

/// The changes between two values of a place.
extension RealmEmitter {
    mutating func change(_ cursor: RealmCursor, from old: Value, to new: Value) throws(SluiceError) {
        if old == new { return }
        switch (cursor.place.collection, old, new) {
        case (.list, _, _): try changeList(cursor, from: old.elements, to: new.elements)
        case (.set, _, _): try changeSet(cursor, from: old.elements, to: new.elements)
        case (.dictionary, _, _): try changeEntries(cursor, from: old.entries, to: new.entries)
        case (.none, .dictionary, .dictionary) where cursor.place.embedded != nil:
            try changeFields(cursor, from: old.entries, to: new.entries)
        case (.none, .list(let old), .list(let new)) where cursor.place.isMixed: try changeList(cursor, from: old, to: new)
        case (.none, .dictionary(let old), .dictionary(let new)) where cursor.place.isMixed:
            try changeEntries(cursor, from: old, to: new)
        default: try set(cursor, to: new)
        }
    }

    private mutating func changeFields(_ cursor: RealmCursor, from old: [String: Value], to new: [String: Value]) throws(SluiceError) {
        for field in try fieldTypes(cursor) {
            guard let value = new[field.name] else { continue }
            try change(cursor.field(field), from: old[field.name] ?? field.emptyValue, to: value)
        }
    }

    private mutating func changeEntries(_ cursor: RealmCursor, from old: [String: Value], to new: [String: Value]) throws(SluiceError) {
        // Keys are equal if their bytes are. A dictionary of Swift also finds those that only look the same.
        let (before, after) = (old.byBytes, new.byBytes)
        for (key, _) in old.inByteOrder where after[RealmText(key)] == nil {
            instructions.append(.update(path(cursor.entered(.key(key))), .erased))
        }
        for (key, value) in new.inByteOrder {
            let entry = cursor.entered(.key(key))
            if let known = before[RealmText(key)] { try change(entry, from: known, to: value) } else { try set(entry, to: value) }
        }
    }

    private mutating func changeSet(_ cursor: RealmCursor, from old: [Value], to new: [Value]) throws(SluiceError) {
        let (before, after) = (Set(old), Set(new))
        let member = cursor.entered(.index(0))
        for value in old where !after.contains(value) { instructions.append(.setErase(path(cursor), try payload(value, member))) }
        for value in new where !before.contains(value) { instructions.append(.setInsert(path(cursor), try payload(value, member))) }
    }

    // MARK: Lists

    private mutating func changeList(_ cursor: RealmCursor, from old: [Value], to new: [Value]) throws(SluiceError) {
        var (index, size) = (0, old.count)
        for step in ListDifference.steps(from: old, to: new) {
            switch step {
            case .keep(let count): index += count
            case .replace(let before, let after):
                try changeElement(cursor, at: index, from: before, to: after, size: size)
                index += 1
            case .move(let from, let to):
                instructions.append(.arrayMove(path(cursor), from: index + from, to: index + to, priorSize: size))
                index += abs(to - from) + 1
            case .erase:
                instructions.append(.arrayErase(path(cursor), at: index, priorSize: size))
                size -= 1
            case .insert(let value):
                try insert(value, cursor, at: index, priorSize: size)
                (index, size) = (index + 1, size + 1)
            }
        }
    }

    /// Writes the change of an element. Containers of one kind keep their identity and change inside.
    private mutating func changeElement(
        _ list: RealmCursor, at index: Int, from old: Value, to new: Value, size: Int
    ) throws(SluiceError) {
        let element = list.entered(.index(index))
        switch (old, new) {
        case (.dictionary, .dictionary), (.list, .list): return try change(element, from: old, to: new)
        default: break
        }
        instructions.append(.arrayUpdate(path(list), at: index, try payload(new, element), priorSize: size))
        try fillInside(element, with: new)
    }
}

extension Value {
    /// The elements of a list or set. None for any other value.
    fileprivate var elements: [Value] { if case .list(let elements) = self { elements } else { [] } }
    /// The entries of a dictionary or embedded object. None for any other value.
    fileprivate var entries: [String: Value] { if case .dictionary(let entries) = self { entries } else { [:] } }
}

extension Dictionary<String, Value> {
    fileprivate var byBytes: [RealmText: Value] {
        Dictionary<RealmText, Value>(map { (RealmText($0.key), $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}

/// The steps that turn a list into another one, from its start to its end.
enum ListDifference {
    enum Step: Equatable {
        /// Elements that stay.
        case keep(Int)
        case replace(Value, Value)
        /// Moves one of the next elements among them. Both indices count from the current one.
        case move(from: Int, to: Int)
        case erase
        case insert(Value)
    }

    /// The most cells of the table of common subsequences. Larger differences replace element by element.
    private static let mostCells = 1 << 18

    /// Returns the steps. Where elements are removed and inserted at one place, they are replaced instead.
    ///
    /// O(n + m), and at most `mostCells` comparisons of the parts that differ.
    static func steps(from old: [Value], to new: [Value]) -> [Step] {
        let shorter = min(old.count, new.count)
        let prefix = (0..<shorter).first { old[$0] != new[$0] } ?? shorter
        let suffix = (0..<shorter - prefix).first { old[old.count - 1 - $0] != new[new.count - 1 - $0] } ?? shorter - prefix
        var steps: [Step] = prefix > 0 ? [.keep(prefix)] : []
        let (before, after) = (Array(old[prefix..<old.count - suffix]), Array(new[prefix..<new.count - suffix]))
        if let move = move(before, after) { steps.append(move) } else { steps += middle(before, after) }
        return steps
    }

    /// Returns the move of a single element from one end to the other, if that is the whole difference.
    private static func move(_ old: [Value], _ new: [Value]) -> Step? {
        guard old.count == new.count, old.count > 1 else { return nil }
        let last = old.count - 1
        if old[0] == new[last], old[1...].elementsEqual(new[..<last]) { return .move(from: 0, to: last) }
        if old[last] == new[0], old[..<last].elementsEqual(new[1...]) { return .move(from: last, to: 0) }
        return nil
    }

    private static func middle(_ old: [Value], _ new: [Value]) -> [Step] {
        var steps: [Step] = []
        var (from, to) = (0, 0)
        for match in matches(old, new) + [(old.count, new.count)] {
            let replaced = min(match.0 - from, match.1 - to)
            for offset in 0..<replaced { steps.append(.replace(old[from + offset], new[to + offset])) }
            steps += Array(repeating: .erase, count: match.0 - from - replaced)
            steps += new[to + replaced..<match.1].map { .insert($0) }
            if match.0 < old.count { steps.append(.keep(1)) }
            (from, to) = (match.0 + 1, match.1 + 1)
        }
        return steps
    }

    /// Returns the indices of a longest common subsequence. Empty if the table for it would be too large.
    private static func matches(_ old: [Value], _ new: [Value]) -> [(Int, Int)] {
        guard !old.isEmpty, !new.isEmpty, old.count <= mostCells / new.count else { return [] }
        let width = new.count + 1
        var lengths = [Int32](repeating: 0, count: (old.count + 1) * width)
        for i in old.indices.reversed() {
            for j in new.indices.reversed() {
                let cell = i * width + j
                lengths[cell] = old[i] == new[j] ? lengths[cell + width + 1] + 1 : max(lengths[cell + width], lengths[cell + 1])
            }
        }
        var (i, j) = (0, 0)
        var matches: [(Int, Int)] = []
        while i < old.count, j < new.count {
            let cell = i * width + j
            if old[i] == new[j] {
                matches.append((i, j))
                (i, j) = (i + 1, j + 1)
            } else if lengths[cell + width] >= lengths[cell + 1] {
                i += 1
            } else {
                j += 1
            }
        }
        return matches
    }
}
