package import Logging
package import SluiceCore
package import SluicePorts

/// Reads the partitions that this gateway's sessions need, and delivers their changes once the watermark has passed them.
///
/// The cost follows the interest of the sessions, not the total write rate. A partition is read while a session holds a lease and for
/// `linger` seconds longer, for sessions that return. Waiting records are bounded by `Limits.feedBytes`. Beyond it a partition's records
/// are discarded and its sessions resynchronise. Delivered records are kept within `Limits.recentBytes`.
package actor Feed {
    private let log: any MessageLog
    private let topics: Topics
    private let fanout: Fanout
    private let environment: any Environment
    private let logger: Logger
    private let linger: UInt64
    private var state = FeedState()
    private var reader: (any LogReader)?
    /// The number of leases of each partition that is read.
    private var leases: [LogPartition: Int] = [:]
    /// The partitions without a lease, and the time until which they are read, in monotonic nanoseconds.
    private var idle: [LogPartition: UInt64] = [:]
    /// Serializes changes of the assignment: the reader suspends, and an assignment must not overtake a release.
    private let changes = AsyncSerialQueue()
    /// The time and error of the last failure of the log.
    private var failure: (time: UInt64, error: SluiceError)?
    private var headers = ChangeHeaderReader()

    /// - Parameter linger: The time that a partition is read after its last lease, in seconds.
    package init(
        log: any MessageLog, topics: Topics, fanout: Fanout, environment: any Environment, logger: Logger,
        linger: UInt64 = Limits.feedLingerSeconds
    ) {
        self.log = log
        self.topics = topics
        self.fanout = fanout
        self.environment = environment
        self.logger = logger
        self.linger = linger * 1_000_000_000
    }

    /// The LSN after which no change is missing in the log; nil if unknown.
    var completeSince: LSN? { state.completeSince }

    /// Returns the delivered records of the partitions after a position, each partition in order; nil if memory no longer has all of
    /// them.
    func recent(_ partitions: [LogPartition], after lsn: LSN) -> [[PendingRecord]]? {
        state.recent.records(of: partitions, after: lsn)
    }

    /// Returns the announced ends of partitions, as far as the feed has read them.
    func promised(of partitions: [LogPartition]) -> [LogPartition: Int64] { state.promised(of: partitions) }

    /// The size of the records that wait for the watermark, in bytes.
    package var bytes: Int { state.waitingBytes }

    private var progressPartition: LogPartition { LogPartition(topics.progress, 0) }

    /// Reads until the task is cancelled. Starts with the newest progress records, the last of which sets the first watermark.
    /// - Throws: the first error of the reader.
    package func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.readLog() }
            group.addTask { try await self.leaveIdle() }
            group.addTask { try await self.watchStalls() }
            defer { group.cancelAll() }
            // None of the three ends by itself, so the first result is an error or the cancellation.
            try await group.next()
        }
    }

    private func readLog() async throws { try await log.withReader { try await read($0) } }

    private func read(_ reader: any LogReader) async throws {
        // As one of `changes`: no session may assign partitions before the reader is ready.
        try await changes.run { try await self.begin(reader) }
        // A session must not assign partitions to a reader that has ended.
        defer { self.reader = nil }
        var fetch = LogFetch()
        while !Task.isCancelled {
            fetch = try await reader.next(fetch, milliseconds: 1_000)
            // The order matters: moves of the reader come before the release, so that no step counts a lost record as read.
            take(fetch)
            try await rewind()
            let mark = fanout.pace.mark
            while let batch = state.release() { await fanout.deliver(batch) }
            await fanout.pace.caughtUp(since: mark)
        }
    }

    private func begin(_ reader: any LogReader) async throws {
        let range = try await log.ranges(of: [progressPartition])[progressPartition] ?? 0..<0
        // Earlier progress records name the partitions that the newest one omits.
        try await reader.assign([progressPartition: LogPromise.start(in: range)])
        let wanted = Array(leases.keys) + Array(idle.keys)
        // Take the announced ends before the actual ones: both grow, and the reverse order would show false losses.
        let (promised, known) = (state.promised(of: wanted), state.assigned)
        let places = try await places(of: wanted)
        for (partition, place) in places {
            // The partition was truncated below the records read. The reader cannot detect that, as it begins before the end.
            if let consumed = known[partition], consumed > place.end { note(gap: partition) }
        }
        assign(places, promised)
        // Partitions that were read before continue at their offset.
        try await reader.assign(state.assigned.merging(places.mapValues(\.start)) { min($0, $1) })
        self.reader = reader
    }

    /// Returns the start and end of reading for each partition. Reading starts one record before the end, which identifies the
    /// predecessor of the next.
    private func places(of partitions: [LogPartition]) async throws -> [LogPartition: (start: Int64, end: Int64)] {
        let ranges = try await log.ranges(of: partitions)
        return Dictionary(
            partitions.map { partition in
                let range = ranges[partition] ?? 0..<0
                return (partition, (max(range.lowerBound, range.upperBound - 1), range.upperBound))
            }, uniquingKeysWith: { first, _ in first })
    }

    private func assign(_ places: [LogPartition: (start: Int64, end: Int64)], _ promised: [LogPartition: Int64]) {
        for (partition, place) in places {
            state.assign(partition, from: place.end)
            guard place.end < promised[partition] ?? 0 else { continue }
            warn(of: partition)
            state.cut(partition)
        }
    }

    private func take(_ fetch: LogFetch) {
        for gap in fetch.gaps { note(gap: gap) }
        for entry in fetch.entries {
            let bytes = fetch.arena[entry.value]
            if entry.partition == progressPartition {
                guard let progress = try? bytes.withUnsafeBytes({ try ProgressCodec.decode($0) }) else {
                    logger.error("A progress record is malformed.", metadata: ["offset": "\(entry.offset)"])
                    continue
                }
                // At the start, the known progress may be old, and a loss concerns no session.
                if !state.progress(progress), !state.assigned.isEmpty {
                    logger.warning(
                        "Commits are missing in the log: all sessions start again.",
                        metadata: ["code": "\(ErrorCode.logGap.rawValue)"])
                }
                continue
            }
            take(bytes, entry)
        }
    }

    private func note(gap partition: LogPartition) {
        warn(of: partition)
        state.gap(partition)
    }

    private func warn(of partition: LogPartition) {
        logger.warning(
            "The log lost records of a partition. Its sessions start again.",
            metadata: ["partition": "\(partition)", "code": "\(ErrorCode.logGap.rawValue)"])
    }

    /// Adds one change record. A malformed one breaks its partition, because its change is unknown.
    private func take(_ bytes: ArraySlice<UInt8>, _ entry: LogFetch.Entry) {
        guard let header = headers.read(bytes) else {
            logger.error("A change record is malformed.", metadata: ["partition": "\(entry.partition)", "offset": "\(entry.offset)"])
            state.cut(entry.partition)
            return
        }
        state.record(
            entry.partition, offset: entry.offset, position: header.position, previous: header.previous, xid: header.xid,
            bytes: bytes)
    }

    // MARK: Losses

    /// The time that the watermark waits for a partition before the feed checks its end, in nanoseconds.
    private static let stallPatience: UInt64 = 2_000_000_000

    /// Moves the reader in partitions with reassigned offsets.
    private func rewind() async throws {
        let rewound = state.takeRewound()
        guard !rewound.isEmpty else { return }
        for partition in rewound.keys { warn(of: partition) }
        try await changes.run { try await self.move(rewound) }
    }

    /// Assigns the partitions that are still read. Runs only inside `changes`, because a partition may be released meanwhile.
    private func move(_ partitions: [LogPartition: Int64]) async throws {
        let assigned = state.assigned
        try await reader?.assign(partitions.filter { assigned[$0.key] != nil })
    }

    /// Compares partitions with their announced ends while they delay the watermark.
    /// Lost records never arrive, and a reader at the end of its partition cannot detect that.
    private func watchStalls() async throws {
        var stall: (lsn: LSN, since: UInt64)?
        while true {
            try await environment.sleep(nanoseconds: Self.stallPatience / 2)
            guard let awaited = state.awaited else {
                stall = nil
                continue
            }
            let now = environment.monotonicNanoseconds()
            // The watermark has moved since the last check, so the wait starts anew.
            guard let begun = stall, begun.lsn == awaited.lsn else {
                stall = (awaited.lsn, now)
                continue
            }
            guard now - begun.since >= Self.stallPatience else { continue }
            stall = (awaited.lsn, now)
            // An unreachable log gives no evidence about its partitions.
            guard let ranges = try? await log.ranges(of: Array(awaited.ends.keys)) else { continue }
            for (partition, end) in awaited.ends {
                // The log has fewer records than announced, or has expired all of them.
                guard let range = ranges[partition], range.upperBound < end || range.lowerBound >= end else { continue }
                warn(of: partition)
                state.cut(partition)
            }
        }
    }

    // MARK: Leases

    /// Acquires leases: the partitions are read once this returns, until `release`.
    /// - Throws: `logUnreachable` if the log does not answer.
    package func require(_ partitions: [LogPartition]) async throws {
        // A partition with a lease is read already, so this needs no suspension.
        if partitions.allSatisfy({ leases[$0] != nil }) { return hold(partitions) }
        // Before the wait for `changes`: a failure after this time is an answer to this request, too.
        let asked = environment.monotonicNanoseconds()
        try await changes.run { try await self.assign(partitions, asked: asked) }
    }

    /// Releases one lease of each partition. The last release starts the `linger` time.
    package func release(_ partitions: [LogPartition]) async {
        // Other leases remain, so the assignment does not change and the call need not queue.
        if partitions.allSatisfy({ leases[$0, default: 0] > 1 }) {
            for partition in partitions { leases[partition, default: 1] -= 1 }
            return
        }
        // The body cannot fail.
        try? await changes.run { await self.unassign(partitions) }
    }

    private func hold(_ partitions: [LogPartition]) {
        for partition in partitions { leases[partition, default: 0] += 1 }
    }

    /// Assigns the partitions that are not read yet. Runs only inside `changes`. A lease exists only once its partition is read.
    /// - Parameter asked: The time of the request. If the log has failed since, the call fails at once, because each queued request would
    ///   otherwise wait for a deadline of its own.
    private func assign(_ partitions: [LogPartition], asked: UInt64) async throws {
        let new = partitions.filter { leases[$0] == nil && idle[$0] == nil }
        if !new.isEmpty {
            if let failure, failure.time > asked { throw failure.error }
            do {
                try await begin(new)
            } catch let error as SluiceError where error.code == .logUnreachable {
                failure = (environment.monotonicNanoseconds(), error)
                throw error
            }
        }
        // A lingering partition is still read; its lease revives it without any request to the log.
        for partition in partitions { idle[partition] = nil }
        hold(partitions)
    }

    private func begin(_ partitions: [LogPartition]) async throws {
        state.expect(partitions)
        defer { state.unexpect(partitions) }
        // Read the announced ends before the actual ones: both grow meanwhile.
        let promised = state.promised(of: partitions)
        let places = try await places(of: partitions)
        assign(places, promised)
        do {
            // Without a reader, the next one begins with the partitions of the state.
            try await reader?.assign(places.mapValues(\.start))
        } catch {
            // The assignment may be partial, so none of the partitions counts as read.
            await stop(partitions)
            throw error
        }
    }

    /// Removes leases. Runs only inside `changes`.
    private func unassign(_ partitions: [LogPartition]) async {
        for partition in partitions {
            guard let count = leases[partition] else { continue }
            leases[partition] = count > 1 ? count - 1 : nil
            if count == 1 { idle[partition] = environment.monotonicNanoseconds() + linger }
        }
        await stopIdle()
    }

    /// Stops partitions whose linger time has passed. Checks every quarter of it, at least once a second apart.
    private func leaveIdle() async throws {
        while true {
            try await environment.sleep(nanoseconds: max(linger / 4, 1_000_000_000))
            if !idle.isEmpty { try await changes.run { await self.stopIdle() } }
        }
    }

    /// Stops the partitions past their linger time. Runs only inside `changes`.
    private func stopIdle() async {
        let now = environment.monotonicNanoseconds()
        let over = idle.filter { $0.value <= now }.map(\.key)
        for partition in over { idle[partition] = nil }
        if !over.isEmpty { await stop(over) }
    }

    private func stop(_ partitions: [LogPartition]) async {
        // The state first: it ignores what the reader still delivers. If the reader keeps a partition, that costs reading only.
        for partition in partitions { state.unassign(partition) }
        try? await reader?.unassign(partitions)
    }
}
