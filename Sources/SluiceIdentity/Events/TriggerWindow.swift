package import SluiceCore
package import SluicePorts

/// A database trigger's window of a partition: the records behind the cursor that have been read, with the progress of their calls.
///
/// Pure. The cursor moves only over records whose calls have ended or that need none. Calls of an object run one after another, unless the
/// trigger is unordered; those of different objects run at the same time.
package struct TriggerWindow: Sendable {
    /// The maximum number of records in a window, and their size in bytes at which reading pauses.
    package static let bound = (records: 256, bytes: 1 << 20)

    /// A record by its place in the partition.
    package struct Place: Hashable, Sendable {
        package var offset: Int64
        package var position: Position
        /// The position of the record before; nil for the first one since the replication slot exists.
        package var previous: Position?
        /// `true` for the second record of a row whose partition key has changed.
        package var isArrival: Bool

        package init(offset: Int64, position: Position, previous: Position?, isArrival: Bool = false) {
            self.offset = offset
            self.position = position
            self.previous = previous
            self.isArrival = isArrival
        }
    }

    /// The meaning of a record by its place.
    package enum Verdict: Hashable, Sendable {
        /// The window or its cursor has passed the record.
        case known
        case next
        /// Records between `after` and this one are missing.
        case gap(after: Position)
    }

    /// A call that is to be made.
    package struct Job: Hashable, Sendable {
        package var offset: Int64
        package var call: FunctionCall
        /// The number of attempts that have failed.
        package var failed: Int
    }

    private enum State: Hashable {
        case waiting(until: UInt64)
        case running
        case done
    }

    private struct Entry {
        var place: Place
        var key: String
        var call: FunctionCall?
        var byteCount: Int
        var state: State
        var failed = 0
    }

    package private(set) var cursor: TriggerCursor
    private let isUnordered: Bool
    private var entries: [Entry] = []
    /// The position of the last record that was read.
    private var last: Position
    private var byteCount = 0

    package init(_ cursor: TriggerCursor, isUnordered: Bool = false) {
        self.cursor = cursor
        self.isUnordered = isUnordered
        last = cursor.position
    }

    /// The offset after the last record that was read.
    package var nextOffset: Int64 { entries.last.map { $0.place.offset + 1 } ?? cursor.offset }
    /// `true` if no further record fits. One always fits.
    package var isFull: Bool { entries.count >= Self.bound.records || byteCount >= Self.bound.bytes }
    /// `true` if reading may go on after a pause.
    package var hasRoom: Bool { entries.count <= Self.bound.records / 2 && byteCount <= Self.bound.bytes / 2 }
    /// `true` while a call is under way.
    package var isCalling: Bool { entries.contains { $0.state == .running } }

    /// Returns the meaning of the next record that was read.
    package func verdict(on place: Place) -> Verdict {
        // The two records of a row that stays in its partition have one position, and the second one follows the first.
        let isSecond = place.isArrival && place.position == last && place.previous == last
        guard place.position > last || isSecond else { return .known }
        if let previous = place.previous, previous > last { return .gap(after: last) }
        return .next
    }

    /// Adds a record.
    ///
    /// - Parameters:
    ///   - key: The object's primary key.
    ///   - call: The call for the record; nil for none.
    ///   - byteCount: The size of the record.
    package mutating func add(_ place: Place, key: String, call: FunctionCall?, byteCount: Int) {
        last = max(last, place.position)
        entries.append(
            Entry(place: place, key: key, call: call, byteCount: byteCount, state: call == nil ? .done : .waiting(until: 0)))
        self.byteCount += byteCount
        advance()
    }

    /// Returns the calls that may begin now, at most `limit`, and marks them as running.
    ///
    /// - Parameter now: Monotonic nanoseconds.
    package mutating func start(_ limit: Int, now: UInt64) -> [Job] {
        var jobs: [Job] = []
        var busy: Set<String> = []
        for index in entries.indices where jobs.count < limit {
            let entry = entries[index]
            guard entry.state != .done, let call = entry.call else { continue }
            // The first unfinished call of an object blocks its later ones.
            guard busy.insert(entry.key).inserted || isUnordered, case .waiting(let until) = entry.state, until <= now else { continue }
            entries[index].state = .running
            jobs.append(Job(offset: entry.place.offset, call: call, failed: entry.failed))
        }
        return jobs
    }

    /// Ends a call: it was successful, or it is given up.
    package mutating func finish(_ offset: Int64) {
        guard let index = index(of: offset) else { return }
        entries[index].state = .done
        advance()
    }

    /// Lets a call wait for its next attempt.
    ///
    /// - Parameters:
    ///   - failed: The number of attempts that have failed.
    ///   - until: The time of the next attempt, in monotonic nanoseconds.
    package mutating func postpone(_ offset: Int64, failed: Int, until: UInt64) {
        guard let index = index(of: offset) else { return }
        entries[index].failed = failed
        entries[index].state = .waiting(until: until)
    }

    private func index(of offset: Int64) -> Int? { entries.firstIndex { $0.place.offset == offset } }

    private mutating func advance() {
        let done = entries.prefix { $0.state == .done }
        guard let newest = done.last?.place else { return }
        (cursor.position, cursor.offset) = (newest.position, newest.offset + 1)
        byteCount -= done.reduce(0) { $0 + $1.byteCount }
        entries.removeFirst(done.count)
    }
}
