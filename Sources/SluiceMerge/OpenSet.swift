import SluiceCore

/// A set with its clock, indexed for several edits. Each takes O(1).
final class OpenSet {
    private var members: [ValueHash: Value] = [:]
    private var clocks: [ValueHash: Contents.Member] = [:]
    /// The members at the opening. `nil` after an edit that changed them.
    private var found: [Value]?
    /// The contents that the clock had instead of members' clocks.
    private var foundContents: Contents?

    /// - Returns: `nil` if two members have one hash.
    init?(_ values: [Value], _ contents: Contents?) {
        members.reserveCapacity(values.count)
        for value in values { members[ValueHash(value)] = value }
        guard members.count == values.count else { return nil }
        found = values
        if case .members(let known)? = contents { clocks = known } else { foundContents = contents }
    }

    var current: Value { found.map { .list($0) } ?? .set(Array(members.values)) }

    var contents: Contents? { clocks.isEmpty ? foundContents : .members(clocks) }

    /// Records the time of an insertion or removal.
    /// - Returns: `false` if a later one is recorded.
    func note(_ member: Value, by writer: WriteContext) -> Bool {
        let hash = ValueHash(member)
        if let last = clocks[hash], writer.stamp < last.stamp { return false }
        clocks[hash] = Contents.Member(stamp: writer.stamp, lsn: writer.now)
        return true
    }

    func insert(_ member: Value) -> Merge.Outcome {
        let hash = ValueHash(member)
        if members[hash] != nil { return .same }
        members[hash] = member
        found = nil
        return .changed
    }

    func erase(_ member: Value) -> Merge.Outcome {
        guard members.removeValue(forKey: ValueHash(member)) != nil else { return .same }
        found = nil
        return .changed
    }
}
