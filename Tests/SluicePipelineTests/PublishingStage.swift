import Logging
import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluicePipeline

/// A replication slot, a log, and publishers between them. Every step is noted, may fail once, and is held against what has to be
/// true of it then.
struct PublishingStage: Sendable {
    enum Step: String, CaseIterable, Sendable { case append, progress, confirm, remember }

    /// A step fails, the first time it is done so often, with or without having taken effect.
    struct Fault: Hashable, Sendable {
        var step: Step
        var number: Int
        var isBefore: Bool
    }

    /// One transaction of orders; or none, only that the slot has come so far.
    struct Write: Sendable {
        var end: LSN
        var keys: [String]
        var isDeletion = false

        static func rows(_ end: UInt64, _ keys: [String]) -> Write { Write(end: LSN(rawValue: end), keys: keys) }
        static func deletions(_ end: UInt64, _ keys: [String]) -> Write { Write(end: LSN(rawValue: end), keys: keys, isDeletion: true) }
        static func nothing(_ end: UInt64) -> Write { Write(end: LSN(rawValue: end), keys: []) }

        /// Of the commit record, which lies before the end.
        var lsn: LSN { LSN(rawValue: end.rawValue - 1) }
        func position(_ index: Int) -> Position { Position(lsn: lsn, ordinal: UInt32(index)) }
    }

    static let partitions = (0..<3).map { LogPartition("app.Order", $0) }
    private static let progress = LogPartition("app.progress", 0)

    private let time = PassingTime()
    private let book: Book
    private let log: WatchedLog
    let slot: Slot

    /// - Parameter refused: keys whose records the log refuses for good.
    init(
        _ writes: [Write], faults: [Fault] = [], refused: Set<String> = [],
        log inner: any MessageLog = EmbeddedLog(environment: PassingTime())
    ) async throws {
        _ = try await inner.prepare([TopicSpec(name: "app.Order", partitions: 3), TopicSpec(name: "app.progress", partitions: 1)])
        book = Book(faults, refused: refused)
        slot = Slot(book, inner, writes)
        log = WatchedLog(inner: inner, book: book, slot: slot)
    }

    /// The steps that were begun, in their order.
    var story: [String] { book.story }
    /// The keys of the rows that the publishers reported as refused, in their order.
    var reported: [String] { book.state.withLock(\.reported) }
    /// The time that passed in pauses, milliseconds.
    var paused: UInt64 { time.monotonicNanoseconds() / 1_000_000 }
    var hasFailed: Bool { book.state.withLock(\.faults.isEmpty) }

    func publisher() -> Publisher {
        let authority = OrderAuthority()
        let layout = Partitioning(schema: authority.current(), topics: Topics(app: "app"), partitions: ["Order": 3])
        return Publisher(
            ports: Publisher.Ports(source: slot, deletions: Memory(book: book), log: log), authority: authority,
            layouts: FixedLayout(layout: layout), topics: Topics(app: "app"), environment: time,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            catchUp: { _ in },
            report: { [book] report in
                guard case .refused(let rows, _) = report else { return }
                book.state.withLock { $0.reported += rows.map(\.key) }
            })
    }

    /// Runs a publisher until everything is confirmed, or it has done so many steps.
    func publish(steps: Int? = nil) async throws {
        book.stop(after: steps)
        let publisher = publisher()
        let running = Task { try await publisher.run() }  // Unstructured because: it is cancelled and awaited below.
        while !slot.isThrough, !book.isStopped, !Task.isCancelled { await Task.yield() }
        running.cancel()
        try await running.value
        book.stop(after: nil)
    }

    // MARK: What the log has

    struct Content {
        var records: [LogPartition: [(offset: Int64, bytes: [UInt8])]] = [:]
        var progress: [ProgressRecord] = []

        init(of log: any MessageLog) async throws {
            let fetch = try await log.withReader { reader in
                try await reader.assign(
                    Dictionary(uniqueKeysWithValues: (partitions + [PublishingStage.progress]).map { ($0, Int64(0)) }))
                return try await reader.next(LogFetch(), milliseconds: 0)
            }
            for entry in fetch.entries {
                let bytes = Array(fetch.arena[entry.value])
                if entry.partition == PublishingStage.progress {
                    progress.append(try bytes.withUnsafeBytes { try ProgressCodec.decode($0) })
                } else {
                    records[entry.partition, default: []].append((entry.offset, bytes))
                }
            }
        }

        /// What a gateway makes of it that reads from the beginning.
        func read() -> (positions: [Position], resync: Set<LogPartition>, isMissing: Bool) {
            var feed = FeedState()
            for partition in partitions { feed.assign(partition, from: 0) }
            for (partition, records) in records {
                for record in records {
                    guard let header = ChangeHeaderReader().read(record.bytes[...]) else { continue }
                    feed.record(
                        partition, offset: record.offset, position: header.position, previous: header.previous, xid: header.xid,
                        bytes: record.bytes[...])
                }
            }
            let follows = progress.map { feed.progress($0) }
            let batch = feed.release()
            return (batch?.records.map(\.position) ?? [], batch?.resync ?? [], follows.contains(false))
        }
    }

    func content() async throws -> Content { try await Content(of: log.inner) }

    /// Expects that whoever reads the log has each change once, in its order, and hears of nothing that is missing.
    func expectWhole(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let content = try await content()
        let read = content.read()
        // Whatever failed, no record is appended again.
        let stored = content.records.values.joined().compactMap { ChangeHeaderReader().read($0.bytes[...])?.position }
        #expect(stored.count == Set(stored).count, sourceLocation: sourceLocation)
        let positions = slot.writes.flatMap { write in write.keys.indices.map { write.position($0) } }
        #expect(read.positions == positions, sourceLocation: sourceLocation)
        #expect(read.resync.isEmpty && !read.isMissing, sourceLocation: sourceLocation)
        #expect(slot.confirmed == slot.writes.last?.end && content.progress.last?.lsn == slot.confirmed, sourceLocation: sourceLocation)
        // Nothing is missing since the first publisher began.
        #expect(content.progress.allSatisfy { $0.completeSince == Slot.start }, sourceLocation: sourceLocation)
    }

    /// Expects that the log has each change that it does not refuse exactly once, and that readers of the others' partitions resynchronise.
    func expectAllButRefused(seed: UInt64, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let content = try await content()
        let refused = book.refused
        var wanted: [Position: String] = [:]
        for write in slot.writes { for (index, key) in write.keys.enumerated() { wanted[write.position(index)] = key } }
        var counts: [Position: Int] = [:]
        for record in content.records.values.joined() {
            guard let header = ChangeHeaderReader().read(record.bytes[...]) else { continue }
            counts[header.position, default: 0] += 1
        }
        for (position, key) in wanted {
            let count = counts[position] ?? 0
            // A stand-in is the head of a refused record.
            #expect(
                refused.contains(key) ? count <= 1 : count == 1, "seed \(seed): \(key) is there \(count) times",
                sourceLocation: sourceLocation)
        }
        let read = content.read()
        #expect(
            read.resync.isEmpty == refused.isDisjoint(with: wanted.values), "seed \(seed): \(read.resync)", sourceLocation: sourceLocation)
        #expect(!read.isMissing && slot.confirmed == slot.writes.last?.end, "seed \(seed)", sourceLocation: sourceLocation)
        #expect(Set(reported) == refused.intersection(wanted.values), "seed \(seed): \(reported)", sourceLocation: sourceLocation)
    }

    // MARK: The parts

    /// Notes the steps, and has them fail.
    final class Book: Sendable {
        struct State {
            var faults: Set<Fault>
            var story: [String] = []
            var counts: [Step: Int] = [:]
            var left: Int?
            var reported: [String] = []
        }

        let state: Mutex<State>
        let refused: Set<String>

        init(_ faults: [Fault], refused: Set<String> = []) {
            self.refused = refused
            state = Mutex(State(faults: Set(faults)))
        }

        var story: [String] { state.withLock(\.story) }
        var isStopped: Bool { state.withLock { $0.left == 0 } }

        /// After so many steps whoever does the next one waits until it is cancelled.
        func stop(after steps: Int?) { state.withLock { $0.left = steps } }

        func perform<R>(_ step: Step, _ what: String, _ body: () async throws -> R) async throws -> R {
            if isStopped { try await untilCancelled() }
            let number = state.withLock { state in
                state.story.append("\(step) \(what)")
                state.counts[step, default: 0] += 1
                return state.counts[step] ?? 0
            }
            try fail(Fault(step: step, number: number, isBefore: true))
            let result = try await body()
            try fail(Fault(step: step, number: number, isBefore: false))
            state.withLock { if let left = $0.left { $0.left = left - 1 } }
            return result
        }

        private func fail(_ fault: Fault) throws {
            guard state.withLock({ $0.faults.remove(fault) }) != nil else { return }
            throw SluiceError(.logUnreachable, "The step \(fault) fails.")
        }
    }

    struct Memory: ExternalDeleteStore {
        let book: Book

        func remember(_ deletions: [ExternalDelete]) async throws {
            let keys = deletions.map { String(decoding: PartitionKey.text(of: $0.key ?? .null), as: UTF8.self) }
            try await book.perform(.remember, keys.joined(separator: " ")) {}
        }
    }

    /// Gives everything from the confirmed position on to whoever opens it, two rows at a time.
    final class Slot: ChangeSource {
        static let start = LSN(rawValue: 10)
        private static let piece = 2

        struct State {
            var writes: [Write]
            var confirmed = Slot.start
            /// The transaction that is read next, and how many of its rows have been.
            var next = (write: 0, row: 0)
            var isForgetful = false
            /// The latest time of a client's write in the database.
            var writeTime = HybridTime.zero
            /// What a slot that was made anew has left out.
            var gap: ClosedRange<LSN>?
            var openings = 0
            /// The reads before a table changes; nil if none does.
            var readsToChange: Int?
        }

        let state: Mutex<State>
        private let book: Book
        private let log: any MessageLog

        init(_ book: Book, _ log: any MessageLog, _ writes: [Write]) {
            self.book = book
            self.log = log
            state = Mutex(State(writes: writes))
        }

        var writes: [Write] { state.withLock(\.writes) }
        var confirmed: LSN { state.withLock(\.confirmed) }
        var isThrough: Bool { state.withLock { $0.confirmed == $0.writes.last?.end } }

        func write(_ writes: [Write]) { state.withLock { $0.writes += writes } }
        func makeAnew(at lsn: UInt64) {
            state.withLock { state in
                state.gap = state.confirmed...LSN(rawValue: lsn)
                state.confirmed = LSN(rawValue: lsn)
            }
        }
        /// The log has lost records that were committed in between.
        func lose(_ lsns: ClosedRange<UInt64>) {
            state.withLock { $0.gap = LSN(rawValue: lsns.lowerBound)...LSN(rawValue: lsns.upperBound) }
        }

        /// The database is as it was before the log's last transaction.
        func forget() { state.withLock { $0.isForgetful = true } }

        func open(_ schema: Schema) async throws -> LSN {
            state.withLock { state in
                state.openings += 1
                state.next = (state.writes.firstIndex { $0.end > state.confirmed } ?? state.writes.count, 0)
                return state.confirmed
            }
        }

        func next(_ batch: consuming CaptureBatch, milliseconds: Int) async throws -> CaptureBatch {
            var batch = batch
            batch.removeAll()
            let isEmpty = state.withLock { state in
                state.readsToChange = state.readsToChange.map { $0 - 1 }
                batch.isOutdated = state.readsToChange == -1
                if batch.isOutdated { return false }
                guard state.next.write < state.writes.count else { return true }
                let write = state.writes[state.next.write]
                Self.fill(&batch, write, from: state.next.row)
                state.next.row += Self.piece
                if state.next.row >= write.keys.count { state.next = (state.next.write + 1, 0) }
                return false
            }
            if isEmpty { try await untilCancelled() }
            return batch
        }

        private static func fill(_ batch: inout CaptureBatch, _ write: Write, from row: Int) {
            let rows = row..<min(row + piece, write.keys.count)
            let isLast = rows.upperBound == write.keys.count
            if isLast { batch.reached = write.end }
            guard !write.keys.isEmpty else { return }
            for index in rows {
                let image = batch.rows.append(Row([.string(write.keys[index]), .int(1)]))
                batch.changes.append(
                    CapturedChange(
                        position: write.position(index), type: 0, operation: write.isDeletion ? .delete : .insert,
                        before: write.isDeletion ? image : nil, after: write.isDeletion ? nil : image))
            }
            batch.transactions.append(
                CapturedTransaction(
                    xid: UInt32(write.end.rawValue), lsn: write.lsn, commitTime: 1, origin: nil, changes: batch.changes.indices,
                    end: isLast ? write.end : nil))
        }

        func confirm(_ lsn: LSN) async throws {
            try await book.perform(.confirm, "\(lsn.rawValue)") {
                // PostgreSQL may forget it now: the log has it, and says so.
                let content = try await Content(of: log)
                expect(lsn, in: content)
                #expect(content.progress.contains { $0.lsn >= lsn }, "\(lsn) is confirmed and not promised")
                state.withLock { $0.confirmed = max($0.confirmed, lsn) }
            }
        }

        /// Expects that everything that was committed up to `lsn` is in the log.
        func expect(_ lsn: LSN, in content: Content) {
            let positions = Set(content.records.values.joined().compactMap { ChangeHeaderReader().read($0.bytes[...])?.position })
            let (writes, gap) = state.withLock { ($0.writes, $0.gap) }
            for write in writes where write.end <= lsn && gap?.contains(write.end) != true {
                for index in write.keys.indices where !book.refused.contains(write.keys[index]) {
                    #expect(positions.contains(write.position(index)), "\(write) is not in the log when \(lsn) is promised or confirmed")
                }
            }
        }

        func hasSeen(_ witness: HistoryAnchor) async throws -> Bool? { state.withLock { !$0.isForgetful } }
        func latestWriteTime() async throws -> HybridTime { state.withLock(\.writeTime) }
        func close() async {}
    }

    /// A log that is written by one who may fail.
    struct WatchedLog: MessageLog {
        let inner: any MessageLog
        let book: Book
        let slot: Slot

        func append(_ batch: LogBatch) async throws -> [LogPartition: Int64] {
            guard batch.topics == [PublishingStage.progress.topic], let entry = batch.entries.first else {
                let keys = batch.entries.map { String(decoding: batch.arena[$0.key], as: UTF8.self) }
                return try await book.perform(.append, keys.joined(separator: " ")) { try await inner.append(batch) }
            }
            let progress = try batch.arena[entry.value].withUnsafeBytes { try ProgressCodec.decode($0) }
            return try await book.perform(.progress, "\(progress.lsn.rawValue)") {
                let content = try await Content(of: inner)
                slot.expect(progress.lsn, in: content)
                for (partition, end) in progress.grown {
                    let last = content.records[partition]?.last?.offset
                    #expect(last ?? -1 == end - 1, "\(partition) is promised up to \(end)")
                }
                return try await inner.append(batch)
            }
        }

        /// Refuses the records of some keys, and appends the others.
        func offer(_ batch: LogBatch) async throws -> LogOutcome {
            var outcome = LogOutcome()
            var others = batch
            others.entries.removeAll()
            for (index, entry) in batch.entries.enumerated() {
                let key = String(decoding: batch.arena[entry.key], as: UTF8.self)
                if book.refused.contains(key) {
                    outcome.refused[index] = SluiceError(.logRecordTooLarge, "The record of \(key) is too large.")
                } else {
                    others.entries.append(entry)
                }
            }
            if others.isEmpty { return outcome }
            do {
                outcome.ends = try await append(others)
            } catch let error as SluiceError where !outcome.refused.isEmpty {
                outcome.failure = error
            }
            return outcome
        }

        func prepare(_ topics: [TopicSpec]) async throws -> [Int32] { try await inner.prepare(topics) }
        func place(_ batch: LogBatch) async throws -> [Int64] { try await inner.place(batch) }
        func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] { try await inner.ends(of: partitions) }
        func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>] {
            try await inner.ranges(of: partitions)
        }
        func makeReader() async throws -> any LogReader { try await inner.makeReader() }
    }
}
