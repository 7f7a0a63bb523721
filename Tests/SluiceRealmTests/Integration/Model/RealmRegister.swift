import SluiceCore

@testable import SluiceRealm

/// A single value: of a property, of a dictionary's key, or the presence of a set's member.
///
/// Stamps are compared between concurrent writes alone. A writer that has seen a value replaces it, whatever the clocks say.
///
/// Memory: an older write is dropped once no file can lose against it alone, so usually two remain. Additions are kept up to
/// `RealmIntegrationBounds.additions`, and only while a file may not have seen them. Beyond the bound, the oldest
/// are forgotten: a file that has not seen them needs a reset.
struct RealmRegister: Hashable, Sendable {
    private struct Write: Hashable, Sendable {
        var version: UInt64
        var stamp: RealmStamp
        var isDefault: Bool

        /// `true` if this write wins. A default loses against every explicit write.
        func beats(_ other: Write) -> Bool { isDefault == other.isDefault ? stamp > other.stamp : other.isDefault }
    }

    private struct Addition: Hashable, Sendable {
        var version: UInt64
        var stamp: RealmStamp
        var amount: Int64
    }

    /// Nil for a key or member that is absent.
    private(set) var value: Value?
    private(set) var forgotten = RealmForgottenHistory()
    /// The accepted writes that can still win, in the order of their versions.
    private var writes: [Write] = []
    private var additions: [Addition] = []

    init(_ value: Value? = nil) { self.value = value }

    /// Sets the value, unless a concurrent write wins. Later additions of others stay on top of an integer.
    /// - Returns: The value for recipients and `true` if it was accepted.
    mutating func set(_ new: Value?, isDefault: Bool = false, by writer: RealmWriter) -> (value: Value?, isAccepted: Bool) {
        let write = Write(version: writer.version, stamp: writer.stamp, isDefault: isDefault)
        if loses(write, writer) { return (new, false) }
        value = raised(new, write, writer)
        // A write is useless if a later one of its file beats it, or if later ones of two files do.
        let known = writes
        writes.removeAll { old in
            guard write.beats(old) else { return false }
            if write.stamp.file == old.stamp.file { return true }
            return known.contains { $0.version > old.version && $0.stamp.file != write.stamp.file && $0.beats(old) }
        }
        writes.append(write)
        return (value, true)
    }

    /// Adds to an integer, unless a concurrent set wins. Null and values of other types are unchanged.
    /// - Returns: `true` if the addition was accepted.
    mutating func add(_ amount: Int64, by writer: RealmWriter) -> Bool {
        let write = Write(version: writer.version, stamp: writer.stamp, isDefault: false)
        if loses(write, writer) { return false }
        switch value {
        // Without a value, the property has the type's zero.
        case nil: value = .int(amount)
        case .int(let number): value = .int(number &+ amount)
        default: break
        }
        additions.append(Addition(version: writer.version, stamp: writer.stamp, amount: amount))
        return true
    }

    private func loses(_ write: Write, _ writer: RealmWriter) -> Bool {
        writes.contains { other in
            writer.isConcurrent(other.version, by: other.stamp.file) && other.beats(write) && !isBeaten(other.version, other, writer)
        }
    }

    /// `true` if an earlier write of the writer has already beaten the other one. The client then discarded the other one.
    private func isBeaten(_ version: UInt64, _ other: Write, _ writer: RealmWriter) -> Bool {
        writes.contains { $0.stamp.file == writer.file && $0.version > version && $0.beats(other) }
    }

    private func raised(_ new: Value?, _ write: Write, _ writer: RealmWriter) -> Value? {
        guard case .int(let number)? = new else { return new }
        let later = additions.filter { addition in
            guard writer.isConcurrent(addition.version, by: addition.stamp.file) else { return false }
            let other = Write(version: addition.version, stamp: addition.stamp, isDefault: false)
            return other.beats(write) && !isBeaten(addition.version, other, writer)
        }
        return .int(later.reduce(number) { $0 &+ $1.amount })
    }

    /// Drops the history that every file has seen.
    mutating func prune(seenByAll horizon: UInt64, _ bounds: RealmIntegrationBounds) {
        forgotten.prune(seenByAll: horizon)
        writes.removeAll { $0.version <= horizon }
        additions.removeAll { $0.version <= horizon }
        let excess = additions.count - bounds.additions
        if excess > 0 {
            for addition in additions[..<excess] { forgotten.add(addition.version, by: addition.stamp.file) }
            additions.removeFirst(excess)
        }
    }
}

/// The keys of a dictionary or the members of a set. Each is a register.
///
/// A Clear removes everything, concurrent changes too, whatever the times. If changes were concurrent, all holders receive the content
/// anew, and that counts as a Clear by the server.
///
/// Memory: a register for each key of the object's life, and one number for each Clear until all files have seen it.
struct RealmKeyedValues: Hashable, Sendable {
    enum Slot: Hashable, Sendable {
        case key(String)
        case member(Value)
    }

    private struct Change: Hashable, Sendable {
        var version: UInt64
        var file: UInt64
    }

    let kind: CollectionKind
    private(set) var entries: [Slot: RealmRegister] = [:]
    private var clears: [Change] = []
    private var changes: [Change] = []

    init(_ kind: CollectionKind) { self.kind = kind }

    mutating func set(_ slot: Slot, _ value: Value?, by writer: RealmWriter) -> Bool {
        // The client has discarded a pending change when it received the Clear.
        if clears.contains(where: { writer.isConcurrent($0.version, by: $0.file) }) { return false }
        changes.append(Change(version: writer.version, file: writer.file))
        return entries[slot, default: RealmRegister()].set(value, by: writer).isAccepted
    }

    /// - Returns: `true` if there were concurrent changes: all holders need the content.
    mutating func clear(by writer: RealmWriter) -> Bool {
        let isConflict = (changes + clears).contains { writer.isConcurrent($0.version, by: $0.file) }
        entries = [:]
        clears.append(Change(version: writer.version, file: isConflict ? RealmIntegration.server : writer.file))
        return isConflict
    }

    mutating func prune(seenByAll horizon: UInt64, _ bounds: RealmIntegrationBounds) {
        clears.removeAll { $0.version <= horizon }
        changes.removeAll { $0.version <= horizon }
        // Of one file's changes, the latest decides for every base.
        var latest: [UInt64: UInt64] = [:]
        for change in changes { latest[change.file] = change.version }
        changes.removeAll { latest[$0.file] != $0.version }
        for slot in entries.keys { entries[slot]?.prune(seenByAll: horizon, bounds) }
        // An absent key without history is like one that never was.
        entries = entries.filter { $0.value.value != nil || !$0.value.isForgotten }
    }
}

extension RealmRegister {
    /// `true` if no history is kept.
    var isForgotten: Bool { self == RealmRegister(value) || (writes.isEmpty && additions.isEmpty) }
}
