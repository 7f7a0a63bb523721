import Foundation
import TestSupport
import Testing

/// Records come by all three ways while gateways, which are the sinks too, and plugin hosts are killed with SIGKILL and the broker is
/// restarted: what was accepted is in the table once, what the rules refused is among the refused once.
///
/// `SLUICE_INGEST_RECORDS` sends so many to the broker of all tests, with a fault for every 5 000 of them, and `SLUICE_SOAK=1` 500,000.
/// `SLUICE_INGEST_SEED` draws the same faults again, not the same moments: these are processes.
@Suite(.serialized, .timeLimit(.minutes(60))) struct IngestFaultTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let records = environment["SLUICE_INGEST_RECORDS"].flatMap { Int($0) } ?? (isSoak ? 500_000 : nil)
    private static let seed = environment["SLUICE_INGEST_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)

    @Test(arguments: [seed]) func `every record is written once or refused once, whatever is killed`(seed: UInt64) async throws {
        // Each kind of fault once.
        let plan = IngestPlan(records: Self.records ?? 1_500, faults: Self.records.map { max(6, $0 / 5_000) } ?? 3)
        let broker = Self.records == nil ? try await TestBroker.start() : nil
        try await IngestField.with(broker, restart: broker == nil ? Self.environment["SLUICE_TEST_KAFKA_RESTART"] : nil) { field in
            let pace = Pace()
            let senders: [any IngestSender] = [
                HTTPSender(field: field, token: try await field.token()), try KafkaSender(topic: field.topic, servers: field.kafka),
                try await DeviceSender(field: field),
            ]
            let done = try await withThrowingTaskGroup(of: [String].self) { group in
                for sender in senders {
                    group.addTask { try await pace.guarding { try await plan.send(by: sender, at: pace) } }
                }
                group.addTask { try await pace.guarding { try await field.play(plan, SplitMix64(seed: seed), at: pace) } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            let comment = Comment(rawValue: "seed \(seed), \(done)")
            try await field.expectOnce(plan, by: senders, comment)
            // And told of once.
            let kept = try await field.lettersKept()
            let letters = try await field.lettersTold(of: kept)
            #expect(letters.told == kept && letters.twice == [], comment)
        }
    }
}

/// How much is sent, and how often something is killed meanwhile.
struct IngestPlan: Sendable {
    let records: Int
    let faults: Int

    /// Records of each way, and how many of them no station can have measured: every tenth.
    var count: Int { records / 3 }
    var refused: Int { count / 10 }

    static func isRefused(_ number: Int) -> Bool { number % 10 == 9 }

    /// Sends a share of the records between any two faults.
    func send(by sender: some IngestSender, at pace: Pace) async throws -> [String] {
        for fault in 0..<faults {
            await pace.wait(for: ["faults"], to: fault)
            let numbers = Array((count * fault / faults)..<(count * (fault + 1) / faults))
            for start in stride(from: 0, to: numbers.count, by: 500) {
                try await sender.send(Array(numbers[start..<min(start + 500, numbers.count)]))
                await pace.advance(sender.way, to: fault + 1)
            }
        }
        try await sender.finish()
        return []
    }

    /// A record as a line of JSON.
    static func line(_ way: String, _ number: Int) -> String {
        """
        {"_id":"\(way)-\(number)","origin":"JFK","time":"2013-12-01T05:00:00Z","temp":\(isRefused(number) ? 999 : 40),\
        "units":"us","source":"\(way)"}
        """
    }
}

/// Keeps those who send and those who kill abreast.
actor Pace {
    private var marks: [String: Int] = [:]
    private var isOpen = false
    private var waiters: [(names: [String], mark: Int, continuation: CheckedContinuation<Void, Never>)] = []

    /// Runs a part; when it fails nobody waits for it.
    func guarding<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
        do { return try await body() } catch {
            isOpen = true
            wake()
            throw error
        }
    }

    func advance(_ name: String, to mark: Int) {
        marks[name] = mark
        wake()
    }

    /// Waits until all of them have come that far.
    func wait(for names: [String], to mark: Int) async {
        if isMet(names, mark) { return }
        await withCheckedContinuation { waiters.append((names, mark, $0)) }
    }

    /// How far one has come; beyond everything when nobody waits any more.
    func mark(of name: String) -> Int { isOpen ? .max : marks[name, default: 0] }

    private func isMet(_ names: [String], _ mark: Int) -> Bool { isOpen || names.allSatisfy { marks[$0, default: 0] >= mark } }

    private func wake() {
        let met = waiters.filter { isMet($0.names, $0.mark) }
        waiters.removeAll { isMet($0.names, $0.mark) }
        for waiter in met { waiter.continuation.resume() }
    }
}
