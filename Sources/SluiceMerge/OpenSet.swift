import SluiceCore

/// A set with its clock while several edits are made to it: each takes O(1).
final class OpenSet {
    private var members: [ValueHash: Value] = [:]
    private var clocks: [ValueHash: Contents.Member] = [:]
    /// As it was found; nil once an edit has changed it.
    private var found: [Value]?
    /// What the clock had instead of members; nil once a member has a clock.
    private var foundContents: Contents?

    /// - Returns: nil if two members have one hash.
    init?(_ values: [Value], _ contents: Contents?) {
        members.reserveCapacity(values.count)
        for value in values { members[ValueHash(value)] = value }
        guard members.count == values.count else { return nil }
        found = values
        if case .members(let known)? = contents { clocks = known } else { foundContents = contents }
    }

    var current: Value { found.map { .list($0) } ?? .set(Array(members.values)) }

    var contents: Contents? { clocks.isEmpty ? foundContents : .members(clocks) }

    /// Notes when a member came or went.
    /// - Returns: false if that is older than what is known.
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
