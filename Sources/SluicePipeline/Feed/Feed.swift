package import Logging
import SluiceCore
import SluiceWire

/// Reads the partitions that this gateway's sessions need, and hands their changes on once the watermark has passed them.
///
/// The cost follows the interest of the sessions, not the total write rate: partitions are assigned while somebody holds
/// a lease on them. Memory is bounded by `Limits.feedBytes`; beyond it a partition's records are thrown away and its
/// sessions resynchronise.
package actor Feed {
    private let log: any MessageLog
    private let topics: Topics
    private let fanout: Fanout
    private let logger: Logger
    private var state = FeedState()
    private var reader: (any LogReader)?
    private var leases: [LogPartition: Int] = [:]
    private var headers = ChangeHeaderReader()

    package init(log: any MessageLog, topics: Topics, fanout: Fanout, logger: Logger) {
        self.log = log
        self.topics = topics
        self.fanout = fanout
        self.logger = logger
    }

    private var progressPartition: LogPartition { LogPartition(topics.progress, 0) }

    /// Starts at the newest progress record, which is the first watermark, and reads until the task is cancelled.
    package func run() async throws { try await log.withReader { try await read($0) } }

    private func read(_ reader: any LogReader) async throws {
        let end = try await log.ends(of: [progressPartition])[progressPartition] ?? 0
        try await reader.assign([progressPartition: max(end - 1, 0)])
        let wanted = Array(leases.keys)
        let ends = try await log.ends(of: wanted)
        for partition in wanted { state.assign(partition, from: ends[partition] ?? 0) }
        try await reader.assign(state.assigned)
        self.reader = reader
        defer { self.reader = nil }
        var fetch = LogFetch()
        while !Task.isCancelled {
            fetch = try await reader.next(fetch, milliseconds: 1_000)
            take(fetch)
            while let batch = state.release() { await fanout.deliver(batch) }
        }
    }

    private func take(_ fetch: LogFetch) {
        for gap in fetch.gaps {
            logger.warning("The log lost records of a partition.", metadata: ["partition": "\(gap)", "code": "702"])
            state.gap(gap)
        }
        for entry in fetch.entries {
            let bytes = fetch.arena[entry.value]
            if entry.partition == progressPartition {
                guard let progress = try? bytes.withUnsafeBytes({ try ProgressCodec.decode($0) }) else {
                    logger.error("A progress record is malformed.", metadata: ["offset": "\(entry.offset)"])
                    continue
                }
                state.progress(ProgressRecord(progress))
                continue
            }
            take(bytes, entry)
        }
    }

    private func take(_ bytes: ArraySlice<UInt8>, _ entry: LogFetch.Entry) {
        guard let header = headers.read(bytes) else {
            logger.error("A change record is malformed.", metadata: ["partition": "\(entry.partition)", "offset": "\(entry.offset)"])
            state.gap(entry.partition)
            return
        }
        state.record(
            entry.partition, offset: entry.offset, position: header.position, previous: header.previous, xid: header.xid,
            bytes: bytes)
    }

    /// Makes sure that the partitions are read from now on at the latest, and stay so until `release`.
    package func require(_ partitions: [LogPartition]) async throws {
        let new = partitions.filter { leases[$0] == nil }
        for partition in partitions { leases[partition, default: 0] += 1 }
        guard !new.isEmpty else { return }
        do {
            let ends = try await log.ends(of: new)
            var positions: [LogPartition: Int64] = [:]
            for partition in new where state.assigned[partition] == nil {
                positions[partition] = ends[partition] ?? 0
                state.assign(partition, from: ends[partition] ?? 0)
            }
            try await reader?.assign(positions)
        } catch {
            await release(partitions)
            throw error
        }
    }

    package func release(_ partitions: [LogPartition]) async {
        var idle: [LogPartition] = []
        for partition in partitions {
            guard let count = leases[partition] else { continue }
            leases[partition] = count > 1 ? count - 1 : nil
            if count == 1 { idle.append(partition) }
        }
        guard !idle.isEmpty else { return }
        for partition in idle { state.unassign(partition) }
        try? await reader?.unassign(idle)
    }
}
