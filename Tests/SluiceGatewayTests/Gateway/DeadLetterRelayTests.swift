import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceEmbeddedLog
import SluiceGateway
import SluicePipeline
import SluicePorts
import SluicePostgres
import SluiceValues
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The dead-letter topic` {
    private static func refuse(_ gateway: RunningGateway, _ id: String) async throws {
        let line = #"{"_id":"\#(id)","store":"north","value":1000}"#
        let answer = try await gateway.request("POST", "/v1/ingest/Reading", line, token: try await gateway.anonymousToken())
        #expect(answer.status == 200)
    }

    @Test func `is told of a letter once, also when the gateway ended before it noted that, and when its sender tries again`() async throws
    {
        try await KafkaShop.with { shop in
            try await shop.sql("ALTER TABLE readings ADD CONSTRAINT mild CHECK (value < 100)")
            let first = try await shop.run { gateway in
                try await Self.refuse(gateway, "a")
                let letter = try #require(try await shop.deadLetters(1).first)
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected WHERE published", is: 1))
                return letter
            }
            // As a crash leaves it.
            try await shop.sql("UPDATE sluice.ingest_rejected SET published = false")
            try await shop.run { gateway in
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected WHERE published", is: 1))
                try await Self.refuse(gateway, "a")
                try await Self.refuse(gateway, "b")
                let letters = try await shop.deadLetters(2)
                #expect(letters[0] == first && letters[1]["object"]?.string?.contains(#""b""#) == true, "\(letters.map(\.text))")
                #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 2)
            }
        }
    }

    @Test func `is told once, when another gateway takes over while a letter is on its way, and when two take themselves for the teller`()
        async throws
    {
        try await TwoTellers.with { tellers in
            tellers.lead([1])
            try await tellers.refuse(1)
            try await tellers.log.untilHeld()
            tellers.lead([2])
            try await tellers.untilTurn(2)
            // The second waits for what the first has on its way; one that does not wait never gets here.
            try await tellers.paces[1].untilWaiting()
            #expect(try await tellers.told() == [])
            tellers.log.release()
            try await tellers.untilPublished(1)
            try await tellers.refuse(2)
            try await tellers.untilPublished(2)
            tellers.lead([1, 2])
            for letter in 3...10 {
                try await tellers.refuse(letter)
                try await tellers.untilPublished(letter)
            }
            #expect(try await tellers.told() == Array(1...10))
        }
    }
}

/// Two relays of one database and one log, which holds the first append until it is released.
private struct TwoTellers {
    let log: LateLog
    let paces = [RelayPace(), RelayPace()]
    private let leaders: Leaders
    private let connection: PostgresConnection
    private static let topic = "shop.ingest-rejected"

    private final class Leaders: Sendable {
        let ids = Mutex<Set<Int>>([])
    }

    static func with(_ body: (TwoTellers) async throws -> Void) async throws {
        try await GatewayDatabase.with { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            try await CompanionSchema.create(connection)
            let pool = PostgresPool(conninfo, size: 4)
            let tellers = TwoTellers(log: LateLog(), leaders: Leaders(), connection: connection)
            let relays = [1, 2].map { id in
                let leaders = tellers.leaders
                let relay = DeadLetterRelay(
                    letters: DeadLetterStore(pool: pool), log: tellers.log, topic: topic, longestAppend: .seconds(3),
                    environment: tellers.paces[id - 1], logger: Logger.quiet
                ) { leaders.ids.withLock { $0.contains(id) } }
                return Task { try await relay.run() }
            }
            let result: Result<Void, any Error>
            do { result = .success(try await body(tellers)) } catch { result = .failure(error) }
            for relay in relays { relay.cancel() }
            for relay in relays { _ = await relay.result }
            await pool.close()
            await connection.close()
            try result.get()
        }
    }

    func lead(_ ids: Set<Int>) { leaders.ids.withLock { $0 = ids } }

    func refuse(_ id: Int) async throws {
        let sql = "INSERT INTO sluice.ingest_rejected (type, source, code, reason, object) VALUES ('R', 's', 800, 'r', '\(id)')"
        _ = try await connection.script(sql)
    }

    func untilTurn(_ number: Int64) async throws { try await until("SELECT max(number) FROM sluice.dead_letter_turn", is: number) }

    func untilPublished(_ count: Int) async throws {
        try await until("SELECT count(*) FROM sluice.ingest_rejected WHERE published", is: Int64(count))
    }

    private func until(_ sql: String, is value: Int64) async throws {
        let isMet = try await eventually { try await connection.query(sql).int(0, 0) == value }
        try #require(isMet, "\(sql) did not become \(value).")
    }

    /// The ids in the topic, in order.
    func told() async throws -> [Int] {
        let partition = LogPartition(Self.topic, 0)
        let end = try await log.ends(of: [partition])[partition] ?? 0
        guard end > 0 else { return [] }
        return try await log.withReader { reader in
            try await reader.assign([partition: 0])
            var (ids, fetch) = ([Int](), LogFetch())
            while ids.count < end {
                fetch = try await reader.next(fetch, milliseconds: 1_000)
                for entry in fetch.entries { ids.append(Int(try JSON.parse(Array(fetch.arena[entry.value]))["id"]?.int ?? 0)) }
            }
            return ids
        }
    }
}

/// A relay's time: its pause of a second between two looks takes a fiftieth of that. Any other sleep is a wait for the end of the turn
/// before, which takes as long as it says.
private final class RelayPace: Environment {
    private let system = SystemEnvironment()
    private let isWaiting = Watched(false)

    func wallMilliseconds() -> Int64 { system.wallMilliseconds() }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }
    func random() -> UInt64 { system.random() }

    func sleep(nanoseconds: UInt64) async throws {
        if nanoseconds == 1_000_000_000 { return try await system.sleep(nanoseconds: nanoseconds / 50) }
        isWaiting.change { $0 = true }
        try await system.sleep(nanoseconds: nanoseconds)
    }

    func untilWaiting() async throws {
        try #require(await isWaiting.until { $0 }, "The relay does not wait for the turn before.")
    }
}

/// A log whose first append stays on its way until it is released.
private final class LateLog: MessageLog {
    private enum State {
        case open, held, released
    }

    private let log = EmbeddedLog(environment: SystemEnvironment())
    private let state = Watched(State.open)

    func untilHeld() async throws { try #require(await state.until { $0 == .held }) }
    func release() { state.change { $0 = .released } }

    func append(_ batch: LogBatch) async throws -> [LogPartition: Int64] {
        let isFirst = state.change { state in
            defer { if state == .open { state = .held } }
            return state == .open
        }
        if isFirst { try #require(await state.until { $0 == .released }) }
        return try await log.append(batch)
    }

    func prepare(_ topics: [TopicSpec]) async throws -> [Int32] { try await log.prepare(topics) }
    func place(_ batch: LogBatch) async throws -> [Int64] { try await log.place(batch) }
    func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] { try await log.ends(of: partitions) }
    func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>] { try await log.ranges(of: partitions) }
    func makeReader() async throws -> any LogReader { try await log.makeReader() }
}
