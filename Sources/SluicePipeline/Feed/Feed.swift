package import Logging
package import SluiceCore
import SluiceWire

/// Reads the partitions that this gateway's sessions need, and hands their changes on once the watermark has passed them.
///
/// The cost follows the interest of the sessions, not the total write rate: partitions are assigned while somebody holds
/// a lease on them, and a minute longer, for sessions that come back. Memory is bounded by `Limits.feedBytes` for what waits; beyond
/// it a partition's records are thrown away and its sessions resynchronise; and by `Limits.recentBytes` for what was handed on.
package actor Feed {
    private let log: any MessageLog
    private let topics: Topics
    private let fanout: Fanout
    private let environment: any Environment
    private let logger: Logger
    private let linger: UInt64
    private var state = FeedState()
    private var reader: (any LogReader)?
    /// How many sessions need each partition that is read.
    private var leases: [LogPartition: Int] = [:]
    /// Those that nobody needs any more, and until when they are read; monotonic nanoseconds.
    private var idle: [LogPartition: UInt64] = [:]
    /// One change of what is read after another: the reader takes its time, and an assignment must not overtake a release.
    private let changes = OneAfterAnother()
    /// When the log was last found to be away.
    private var failure: (time: UInt64, error: SluiceError)?
    private var headers = ChangeHeaderReader()

    /// - Parameter linger: seconds that a partition is read longer than anybody needs it.
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

    /// Nothing after this is missing in the log; nil when that is not known.
    var completeSince: LSN? { state.completeSince }

    /// What was handed on of the partitions behind a position, of each in its order; nil when that is not all in memory.
    func recent(_ partitions: [LogPartition], after lsn: LSN) -> [[PendingRecord]]? {
        state.recent.records(of: partitions, after: lsn)
    }

    /// The ends that progress records promise of partitions, as far as the feed has read them.
    func promised(of partitions: [LogPartition]) -> [LogPartition: Int64] { state.promised(of: partitions) }

    /// Of records that have been read and are not yet below the watermark.
    package var bytes: Int { state.waitingBytes }

    private var progressPartition: LogPartition { LogPartition(topics.progress, 0) }

    /// Starts with the newest progress records, the last of which is the first watermark, and reads until the task is cancelled.
    package func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.readLog() }
            group.addTask { try await self.leaveIdle() }
            group.addTask { try await self.watchStalls() }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func readLog() async throws { try await log.withReader { try await read($0) } }

    private func read(_ reader: any LogReader) async throws {
        try await changes.run { try await self.begin(reader) }
        defer { self.reader = nil }
        var fetch = LogFetch()
        while !Task.isCancelled {
            fetch = try await reader.next(fetch, milliseconds: 1_000)
            take(fetch)
            try await rewind()
            while let batch = state.release() { await fanout.deliver(batch) }
        }
    }

    private func begin(_ reader: any LogReader) async throws {
        let range = try await log.ranges(of: [progressPartition])[progressPartition] ?? 0..<0
        // Those before the newest name the partitions that it does not.
        try await reader.assign([progressPartition: LogPromise.start(in: range)])
        let wanted = Array(leases.keys) + Array(idle.keys)
        let (promised, known) = (state.promised(of: wanted), state.assigned)
        let places = try await places(of: wanted)
        for (partition, place) in places {
            // What was read of it is gone; the reader does not meet that, as it begins before the end.
            if let consumed = known[partition], consumed > place.end { note(gap: partition) }
        }
        assign(places, promised)
        // Those that were read before go on where they were.
        try await reader.assign(state.assigned.merging(places.mapValues(\.start)) { min($0, $1) })
        self.reader = reader
    }

    /// Where reading begins of partitions: with the record before the end, which says what the next one follows on.
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
                // At the start it may be of long ago.
                if !state.progress(ProgressRecord(progress)), !state.assigned.isEmpty {
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

    /// Nanoseconds that the watermark waits for a partition before its end is asked for.
    private static let stallPatience: UInt64 = 2_000_000_000

    /// Moves the reader in partitions whose offsets were given out again.
    private func rewind() async throws {
        let rewound = state.takeRewound()
        guard !rewound.isEmpty else { return }
        for partition in rewound.keys { warn(of: partition) }
        try await changes.run { try await self.move(rewound) }
    }

    /// Only as one of `changes`: a partition may have been taken away meanwhile.
    private func move(_ partitions: [LogPartition: Int64]) async throws {
        let assigned = state.assigned
        try await reader?.assign(partitions.filter { assigned[$0.key] != nil })
    }

    /// Compares partitions with what was promised of them while the watermark waits for them. Records that are lost never come, and a
    /// reader at the end of its partition does not notice.
    private func watchStalls() async throws {
        var stall: (lsn: LSN, since: UInt64)?
        while true {
            try await environment.sleep(nanoseconds: Self.stallPatience / 2)
            guard let awaited = state.awaited else {
                stall = nil
                continue
            }
            let now = environment.monotonicNanoseconds()
            guard let begun = stall, begun.lsn == awaited.lsn else {
                stall = (awaited.lsn, now)
                continue
            }
            guard now - begun.since >= Self.stallPatience else { continue }
            stall = (awaited.lsn, now)
            // A log that is away says nothing of its partitions.
            guard let ranges = try? await log.ranges(of: Array(awaited.ends.keys)) else { continue }
            for (partition, end) in awaited.ends {
                guard let range = ranges[partition], range.upperBound < end || range.lowerBound >= end else { continue }
                warn(of: partition)
                state.cut(partition)
            }
        }
    }

    // MARK: Leases

    /// Makes sure that the partitions are read from now on at the latest, and stay so until `release`.
    package func require(_ partitions: [LogPartition]) async throws {
        // What has a lease is read, and stays so: nobody has to wait.
        if partitions.allSatisfy({ leases[$0] != nil }) { return hold(partitions) }
        let asked = environment.monotonicNanoseconds()
        try await changes.run { try await self.assign(partitions, asked: asked) }
    }

    package func release(_ partitions: [LogPartition]) async {
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

    /// Only as one of `changes`. A lease is there only once its partition is read.
    /// - Parameter asked: when whoever needs them began to wait. A log that failed since is not asked again for them: it would take
    ///   its deadline from each who waits, one after another.
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
        for partition in partitions { idle[partition] = nil }
        hold(partitions)
    }

    private func begin(_ partitions: [LogPartition]) async throws {
        state.expect(partitions)
        defer { state.unexpect(partitions) }
        // Before the ends are asked for: they grow meanwhile, and so does what is promised of them.
        let promised = state.promised(of: partitions)
        let places = try await places(of: partitions)
        assign(places, promised)
        do {
            try await reader?.assign(places.mapValues(\.start))
        } catch {
            await stop(partitions)
            throw error
        }
    }

    /// Only as one of `changes`.
    private func unassign(_ partitions: [LogPartition]) async {
        for partition in partitions {
            guard let count = leases[partition] else { continue }
            leases[partition] = count > 1 ? count - 1 : nil
            if count == 1 { idle[partition] = environment.monotonicNanoseconds() + linger }
        }
        await stopIdle()
    }

    /// Looks now and then for partitions that nobody came back for.
    private func leaveIdle() async throws {
        while true {
            try await environment.sleep(nanoseconds: max(linger / 4, 1_000_000_000))
            if !idle.isEmpty { try await changes.run { await self.stopIdle() } }
        }
    }

    /// Only as one of `changes`.
    private func stopIdle() async {
        let now = environment.monotonicNanoseconds()
        let over = idle.filter { $0.value <= now }.map(\.key)
        for partition in over { idle[partition] = nil }
        if !over.isEmpty { await stop(over) }
    }

    private func stop(_ partitions: [LogPartition]) async {
        for partition in partitions { state.unassign(partition) }
        try? await reader?.unassign(partitions)
    }
}
