import SluiceCore
import SluicePorts
import TestSupport
import Testing

@testable import SluiceRealm

private typealias Fixture = ConnectionFixture

/// Uploads and changes of other clients in one history, whose answers and events come in a random order.
@Suite(.timeLimit(.minutes(5))) struct `Uploads beside changes` {
    /// The history behind the view at version 2.
    private struct History {
        /// The server version of each upload, by its client version from 1.
        var uploads: [UInt64: UInt64] = [:]
        var changes: [UInt64] = []
        /// The events of the view, each with the last version in it.
        var events: [(version: UInt64, event: RealmViewEvent)] = []

        init(_ random: inout SplitMix64) {
            var client: UInt64 = 0
            var batch: [OutgoingEntry] = []
            for version in UInt64(3)...30 {
                if random.chance(30) {
                    client += 1
                    uploads[client] = version
                    if random.chance(50) { flush(&batch) }
                    // Without an event of its own, the next change passes the version.
                    if batch.isEmpty, random.chance(50) { events.append((version, .advanced(version))) }
                } else {
                    changes.append(version)
                    batch.append(Fixture.entry(version, client: client))
                    if random.chance(50) { flush(&batch) }
                }
            }
            flush(&batch)
            changes.append(31)
            events.append((31, .changes([Fixture.entry(31, client: client)])))
        }

        private mutating func flush(_ batch: inout [OutgoingEntry]) {
            guard let last = batch.last else { return }
            events.append((last.entry.serverVersion, .changes(batch)))
            batch = []
        }
    }

    @Test(arguments: seeds(30)) func `are acknowledged, and the changes are sent, in whatever order they come`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let history = History(&random)
        let total = UInt64(history.uploads.count)
        // In a closure that suspends, the generator must be a copy.
        let steps = (0..<200).map { _ in random.chance(50) }
        try await ConnectionRun.with(ConnectionRun.Setup(versions: history.uploads)) { run in
            let view = try await run.steady()
            for version in 1..<total + 1 { run.journal.hold("integrate \(version)") }
            // One at a time: uploads that wait would take effect together.
            let upload = { (version: UInt64) in
                guard version <= total else { return }
                try run.receive(Fixture.upload([version], progress: version, server: 2, base: 2))
            }
            try upload(1)
            var (yielded, seen, answered) = (0, UInt64(2), UInt64(0))
            for yields in steps {
                if yielded < history.events.count, yields || answered == total {
                    view.yield(history.events[yielded].event)
                    seen = history.events[yielded].version
                    yielded += 1
                } else if answered < total, answered == 0 || seen >= history.uploads[answered] ?? 0 {
                    // The next upload begins once the one before it is acknowledged.
                    try #require(await run.journal.held()).answer()
                    answered += 1
                    try upload(answered + 1)
                }
            }
            for (_, event) in history.events[yielded...] { view.yield(event) }
            for version in answered..<total {
                try #require(await run.journal.held()).answer()
                try upload(version + 2)
            }
            let lines = await run.journal.through("1: download 31/\(total) ack \(total) [31]")
            #expect(!lines.contains { $0.contains("error") || $0.hasPrefix("close") }, "seed \(seed): \(lines)")
            #expect(lines.filter { $0.hasPrefix("append") }.flatMap(Self.versions) == history.changes, "seed \(seed)")
            #expect(lines.filter { $0.hasPrefix("1: download") }.flatMap(Self.versions) == history.changes, "seed \(seed)")
            #expect(run.observer.counts.defects == 0, "seed \(seed)")
        }
    }

    /// The event of a changeset can come later than the result of the one behind it.
    @Test func `take effect in the order of their changesets`() async throws {
        try await ConnectionRun.with(ConnectionRun.Setup(versions: [4: 2], previous: 3)) { run in
            let view = try await run.steady()
            try run.receive(Fixture.upload([3, 4], progress: 4, server: 2, base: 2))
            _ = await run.journal.through("integrate 4")
            for _ in 0..<100 { await Task.yield() }
            let made = OutgoingOperation.Object(table: "Task", key: [1, 9])
            view.yield(.integrated(RealmIntegratedUpload(clientVersion: 3, serverVersion: 2, operations: [.create(made)])))
            let update = OutgoingOperation.update(OutgoingOperation.Path(object: made, property: "name"), .value)
            view.yield(.changes([Fixture.entry(5, client: 4, [update])]))
            let lines = await run.journal.through("1: download 5/4 ack 4 [5]")
            #expect(run.observer.counts.defects == 0, "\(lines)")
        }
    }

    /// Returns the numbers between the brackets of a line.
    private static func versions(_ line: String) -> [UInt64] {
        guard let open = line.firstIndex(of: "["), let close = line.firstIndex(of: "]") else { return [] }
        return line[line.index(after: open)..<close].split(separator: ",").compactMap { UInt64($0.drop { $0 == " " }) }
    }
}
