import Foundation
import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

@Suite(.timeLimit(.minutes(1))) struct `A client that comes back at once` {
    private static let topics = Topics(app: "app")

    /// A log that has everything between two positions.
    private static func log(from start: UInt64, to end: UInt64) async throws -> EmbeddedLog {
        let log = EmbeddedLog(environment: SystemEnvironment())
        _ = try await log.prepare([TopicSpec(name: topics.progress, partitions: 1)])
        let progress = ProgressRecord(
            lsn: LSN(rawValue: end), commitTime: 1, grown: [:], since: LSN(rawValue: start), completeSince: LSN(rawValue: start))
        var batch = LogBatch(topics: [topics.progress])
        batch.append(topic: 0, partition: 0, key: [], value: ProgressCodec.encode(progress))
        _ = try await log.append(batch)
        return log
    }

    private static func end(_ client: SessionClient<NoWrites>) async -> PBBootstrapEnd? {
        await client.until { !$0.isEmpty && $0.last?.hasPrefix("begin") != true }
        guard case .bootstrapEnd(let end)? = client.channel.messages.last?.kind else { return nil }
        return end
    }

    @Test(arguments: [(5, true), (101, false)])
    func `goes on from a log that its gateway has yet to read, if it has all since`(start: UInt64, isComplete: Bool) async throws {
        let tables = EmptyTables()
        let log = try await Self.log(from: start, to: 200)
        let before = try await SessionClient(NoWrites(), snapshots: tables)
        try await before.subscribe(1)
        var held = try #require(await Self.end(before)).held
        held.lsn = 50
        let client = try await SessionClient(NoWrites(), snapshots: tables, log: log) { hello in
            (hello.held, hello.appliedLsn) = (held, 100)
            hello.witness = Data(HistoryAnchor(transaction: 99, commitTime: 1, lsn: LSN(rawValue: 100)).bytes)
        }
        try await client.subscribe(1)
        for _ in 0..<1_000 { await Task.yield() }
        #expect(client.told.isEmpty)
        // Unstructured because: it is cancelled below, whatever becomes of the client.
        let feed = Task { try await client.services.feed.run() }
        defer { feed.cancel() }
        #expect(await Self.end(client)?.resumed == isComplete)
        #expect(tables.taken.load(ordering: .relaxed) == (isComplete ? 1 : 2))
    }
}
