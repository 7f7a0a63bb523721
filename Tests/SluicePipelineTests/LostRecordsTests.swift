import Logging
import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluicePipeline

/// A log that lost the last records of partitions, while its progress records are whole.
@Suite(.timeLimit(.minutes(2))) struct `A log that lost acknowledged records` {
    private final class Stage: Sendable {
        let log = CutLog()
        let feed: Feed
        let fanout: Fanout
        let resume: LogResume
        private let publisher = Mutex(PublisherState(last: [:], start: LSN(rawValue: 1)))

        init() async throws {
            let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let time = SystemEnvironment()
            fanout = Fanout(authority: OrderAuthority(), frames: PlainFrames(), environment: time, logger: quiet)
            feed = Feed(log: log, topics: Topics(app: "app"), fanout: fanout, environment: time, logger: quiet)
            resume = LogResume(log: log, feed: feed, environment: time, logger: quiet)
            _ = try await log.prepare([
                TopicSpec(name: "app.Order", partitions: LoggedTable.partitions), TopicSpec(name: "app.progress", partitions: 1),
            ])
        }

        /// Appends the table's records from `start` on, then the promise of all of them.
        func append(_ table: LoggedTable, from start: Int = 0) async throws {
            var batch = LogBatch(topics: ["app.Order"])
            for record in table.records[start...] { batch.append(topic: 0, partition: record.partition, key: [], value: record.bytes) }
            let ends = try await log.append(batch)
            try await promise(table.lsn, ends)
        }

        func promise(_ lsn: UInt64, _ ends: [LogPartition: Int64] = [:]) async throws {
            let progress = publisher.withLock { state in
                state.appended(ends)
                state.passed(LSN(rawValue: lsn))
                return state.takeProgress()
            }
            guard let progress else { return }
            var batch = LogBatch(topics: ["app.progress"])
            batch.append(topic: 0, partition: 0, key: [], value: ProgressCodec.encode(progress))
            _ = try await log.append(batch)
        }

        /// Runs the feed meanwhile.
        func run<R>(_ body: () async throws -> R) async throws -> R {
            let running = Task { [feed] in try await feed.run() }  // Unstructured because: it is cancelled below, whatever the body does.
            defer { running.cancel() }
            return try await body()
        }

        func tail(_ view: View, after lsn: LSN) async throws -> LogTail? {
            try await resume.tail(of: view, after: lsn, client: .server, schema: LoggedTable.schema)
        }
    }

    /// A client that comes back is told everything, or that the log does not say.
    private static func expect(_ stage: Stage, _ table: LoggedTable, _ view: View, _ remark: String) async throws {
        for state in table.states {
            guard let tail = try await stage.tail(view, after: state.lsn) else { continue }
            let rows = try LoggedTable.told(tail, LoggedTable.shown(state.rows, view))
            #expect(rows == LoggedTable.shown(table.rows, view), "\(remark), after \(state.lsn)")
        }
        await stage.resume.close()
    }

    @Test(arguments: seeds(6)) func `tells a client that comes back nothing wrong, whenever the gateway finds out`(
        seed: UInt64
    ) async throws {
        var random = SplitMix64(seed: seed)
        let table = LoggedTable(&random, transactions: 20 + random.below(40))
        let stage = try await Stage()
        try await stage.append(table)
        let partition = random.pick(LoggedTable.all.filter { stage.log.count(of: $0) > 0 })
        stage.log.cut(partition, by: 1 + random.below(min(8, stage.log.count(of: partition))))
        let view = try LoggedTable.view("TRUEPREDICATE")
        try await stage.run {
            let isEarly = random.chance(50)
            // Before the gateway has read the promise, or after.
            if isEarly { try await stage.feed.require(LoggedTable.all) }
            try await stage.fanout.passed(LSN(rawValue: table.lsn), milliseconds: 60_000)
            if !isEarly { try await stage.feed.require(LoggedTable.all) }
            try await Self.expect(stage, table, view, "seed \(seed)")
            // Something else is committed, which the partition has nothing of.
            try await stage.promise(table.lsn + 5)
            try await stage.fanout.passed(LSN(rawValue: table.lsn + 5), milliseconds: 60_000)
            try await Self.expect(stage, table, view, "seed \(seed), later")
        }
    }

    @Test(arguments: seeds(6)) func `is found out while it is read, also when others have the offsets of those that were lost`(
        seed: UInt64
    ) async throws {
        var random = SplitMix64(seed: seed)
        var table = LoggedTable(&random, transactions: 20 + random.below(40))
        let stage = try await Stage()
        try await stage.append(table)
        let view = try LoggedTable.view("TRUEPREDICATE")
        try await stage.run {
            try await stage.feed.require(LoggedTable.all)
            try await stage.fanout.passed(LSN(rawValue: table.lsn), milliseconds: 60_000)
            // The feed knows what the next record of each partition has to follow on.
            while await stage.feed.recent(LoggedTable.all, after: LSN(rawValue: table.lsn)) == nil { await Task.yield() }
            let channel = KeptMessages()
            let watched = View(version: 1, types: [], partitions: LoggedTable.all)
            _ = await stage.fanout.add(channel, view: watched, staged: false)
            let partition = random.pick(LoggedTable.all.filter { stage.log.count(of: $0) > 0 })
            stage.log.cut(partition, by: 1 + random.below(min(4, stage.log.count(of: partition))))
            let start = table.records.count
            for _ in 0..<(1 + random.below(20)) { table.write(&random) }
            // The same publisher goes on: it knows what it has written.
            try await stage.append(table, from: start)
            try await stage.fanout.passed(LSN(rawValue: table.lsn), milliseconds: 60_000)
            try await Self.expect(stage, table, view, "seed \(seed)")
            let touched = table.records[start...].contains { $0.partition == partition.partition }
            try await stage.promise(table.lsn + 5)
            try await stage.fanout.passed(LSN(rawValue: table.lsn + 5), milliseconds: 60_000)
            if touched { #expect(channel.messages.contains { if case .error? = $0.kind { true } else { false } }, "seed \(seed)") }
            try await Self.expect(stage, table, view, "seed \(seed), later")
        }
    }
}
