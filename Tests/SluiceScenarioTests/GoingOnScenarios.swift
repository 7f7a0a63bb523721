import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceValues
import SluiceWire
import Synchronization
import TestSupport
import Testing

/// What a device has to be told again when its connection ends while rows stream.
@Suite(.timeLimit(.minutes(5))) struct `A bootstrap that is interrupted goes on` {
    /// What came, and which messages with rows are lost.
    private final class Watch: Sendable {
        struct Seen {
            var begins: [Bool] = []
            var messages = 0
            var rows = 0
            var kept = 0
            var cuts = 0
        }

        private let state = Mutex(Seen())
        private let isLost: @Sendable (Seen) -> Bool
        private let meanwhile: @Sendable () async -> Void

        /// - Parameters:
        ///   - isLost: whether the connection ends before a message with rows, counted in `messages`.
        ///   - meanwhile: what is done then, before the device is back.
        init(isLost: @escaping @Sendable (Seen) -> Bool, meanwhile: @escaping @Sendable () async -> Void) {
            self.isLost = isLost
            self.meanwhile = meanwhile
        }

        var seen: Seen { state.withLock { $0 } }

        var transport: CutTransport {
            CutTransport { [self] message in
                let ends = state.withLock { seen in
                    switch message.kind {
                    case .bootstrapBegin(let begin)?: seen.begins.append(begin.hasCheckpoint)
                    case .bootstrapRows(let rows)?:
                        seen.messages += 1
                        if isLost(seen) {
                            seen.cuts += 1
                            return true
                        }
                        seen.rows += rows.rows.count
                        seen.kept += rows.kept.count
                    default: break
                    }
                    return false
                }
                if ends { await meanwhile() }
                return ends
            }
        }
    }

    /// Rows of which each transaction that could hold their age back is over.
    private static func fill(_ gateway: RunningGateway, _ rows: Int, title: String) async throws {
        try await gateway.sql(
            """
            INSERT INTO orders (_id, store, title, size)
                SELECT 'k' || to_char(g, 'FM00000'), (ARRAY['north', 'south'])[1 + (g % 10)::int / 9], \(title), g
                FROM generate_series(1, \(rows)) g
            """)
        try await gateway.untilOlderTransactionsEnd()
        // The last commit of the server is a younger one.
        try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('last', 'nowhere', -1)")
    }

    private static func expectEqual(
        _ device: EngineDevice, _ gateway: RunningGateway, _ condition: String, _ comment: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let wanted = try await gateway.texts("SELECT _id || ' ' || size FROM orders WHERE \(condition)")
        let there = try device.sizes().map { "\($0.key) \($0.value)" }
        let (lacking, excess) = (Set(wanted).subtracting(there), Set(there).subtracting(wanted))
        #expect(
            lacking.isEmpty && excess.isEmpty, "\(comment) lacks \(lacking.sorted().prefix(5)), has too much \(excess.sorted().prefix(5))",
            sourceLocation: sourceLocation)
    }

    @Test func `Scenario 12: rows that have come do not come again, whatever SQL does meanwhile, and after the app has ended`() async throws
    {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway, 12_000, title: "'t'")
            let edits = Mutex(0)
            // Of 10,800 rows in messages of 2,000 the fourth is lost, and two further on.
            let watch = Watch {
                $0.messages == 4 || $0.messages >= 7 && $0.kept > 0 && $0.cuts < 3
            } meanwhile: {
                let round = edits.withLock { edits in
                    edits += 1
                    return edits
                }
                let start = round * 100
                do {
                    for place in [start, 9_000 + start] {
                        try await gateway.sql(
                            """
                            UPDATE orders SET size = size + 100000 WHERE size BETWEEN \(place) AND \(place + 9);
                            DELETE FROM orders WHERE size BETWEEN \(place + 10) AND \(place + 19);
                            UPDATE orders SET store = 'south' WHERE size BETWEEN \(place + 20) AND \(place + 29);
                            UPDATE orders SET store = 'north' WHERE size BETWEEN \(place + 30) AND \(place + 39);
                            INSERT INTO orders (_id, store, size) VALUES ('k\(String(format: "%05d", place))n', 'north', 7);
                            """)
                    }
                } catch {
                    Issue.record(error)
                }
            }
            let (folder, token) = (try Phone.Folder(), try await gateway.anonymousToken())
            let path = folder.replica
            let dying = try EngineDevice(gateway, token: token, path: path, transport: watch.transport) { $0.isInterruption }
            try dying.subscribe()
            await dying.ended()
            #expect(try dying.sizes().isEmpty)
            let device = try EngineDevice(gateway, token: token, path: path, transport: watch.transport)
            try await device.engine.wait(for: .download, milliseconds: 120_000)
            try await Self.expectEqual(device, gateway, "store = 'north'")
            let seen = watch.seen
            #expect(seen.cuts == 3 && seen.begins == [false, true, true, true])
            // At each place of each round 32 rows were written at most.
            #expect(seen.rows <= 10_800 + 3 * 2 * 32, "\(seen)")
            // And the file goes on as any other.
            try await gateway.sql("UPDATE orders SET size = -5 WHERE _id = 'k00001'")
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            try await Self.expectEqual(device, gateway, "store = 'north'")
            await device.stop()
        }
    }

    @Test(arguments: seeds(1)) func `a device has what SQL has, whenever connections and apps end and sets change`(
        seed: UInt64
    ) async throws {
        let conditions = ["store = 'north'", "store IN ('north', 'south') AND size < 900", "store = 'north' AND size >= 300"]
        try await RunningGateway.with { gateway in
            // A row of 4,000 bytes: about 260 in a message.
            try await Self.fill(gateway, 3_000, title: "repeat('x', 4000)")
            let random = Mutex(SplitMix64(seed: seed))
            let number: @Sendable (Range<Int>) -> Int = { range in random.withLock { Int.random(in: range, using: &$0) } }
            let watch = Watch {
                $0.cuts < 9 && number(0..<4) == 0
            } meanwhile: {
                do {
                    for _ in 0..<number(0..<4) {
                        let first = number(0..<3_000)
                        let some = "size BETWEEN \(first) AND \(first + number(0..<40))"
                        switch number(0..<5) {
                        case 0: try await gateway.sql("UPDATE orders SET size = size + \(number(-500..<500)) WHERE \(some)")
                        case 1: try await gateway.sql("DELETE FROM orders WHERE \(some)")
                        case 2: try await gateway.sql("UPDATE orders SET store = 'south' WHERE \(some)")
                        case 3: try await gateway.sql("UPDATE orders SET store = 'north' WHERE \(some)")
                        default:
                            try await gateway.sql(
                                """
                                INSERT INTO orders (_id, store, title, size) VALUES ('k\(String(format: "%05d", first))x', 'north', 't', \(first))
                                ON CONFLICT (_id) DO UPDATE SET store = 'north'
                                """)
                        }
                    }
                } catch is CancellationError {
                    // The app has ended.
                } catch {
                    Issue.record(error)
                }
            }
            let (folder, token) = (try Phone.Folder(), try await gateway.anonymousToken())
            let path = folder.replica
            var device = try EngineDevice(gateway, token: token, path: path, transport: watch.transport)
            var choice = 0
            for version in 1...4 {
                choice = number(0..<conditions.count)
                try Self.subscribe(device.replica, conditions[choice], version)
                if number(0..<2) == 0 {
                    // Some way into it, or past it, or not yet there: the scenario draws the moment.
                    try await _Concurrency.Task.sleep(for: .milliseconds(number(0..<400)))
                } else {
                    try await device.engine.wait(for: .download, milliseconds: 120_000)
                    let told = device.reports.filter { if case .downloading = $0 { false } else { true } }.suffix(12)
                    try await Self.expectEqual(device, gateway, conditions[choice], "SLUICE_SEED=\(seed), set \(version): \(told)")
                }
                guard number(0..<3) == 0 else { continue }
                await device.stop()
                device = try EngineDevice(gateway, token: token, path: path, transport: watch.transport)
            }
            try await device.engine.wait(for: .download, milliseconds: 120_000)
            try await Self.expectEqual(device, gateway, conditions[choice], "SLUICE_SEED=\(seed):")
            await device.stop()
        }
    }

    private static func subscribe(_ replica: Replica, _ query: String, _ version: Int) throws {
        let now = Timestamp(seconds: 0)
        _ = try replica.addSubscriptionSet([
            StoredSubscription(
                id: UInt64(version), name: "s", type: "Order",
                query: query.replacing("('north', 'south')", with: "{'north', 'south'}"), created: now, updated: now)
        ])
    }
}
