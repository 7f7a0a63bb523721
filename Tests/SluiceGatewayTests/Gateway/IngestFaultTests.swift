import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `Objects that come while things end` {
    @Test(arguments: seeds(1).suffix(1))
    func `are each written once or refused once`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let moments = (0..<12).map { _ in random.below(150) }
        try await KafkaShop.with { shop in
            // Each gateway ends in the middle of what the rounds have sent.
            for round in 0..<3 {
                try await shop.run { gateway in
                    let token = try await gateway.anonymousToken()
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        group.addTask { try await shop.produce(Self.records(round)) }
                        group.addTask { try await Self.send(round, to: gateway, token) }
                        group.addTask { try await Self.cutConnections(of: gateway, at: moments[round * 4..<round * 4 + 4]) }
                        try await group.waitForAll()
                    }
                }
            }
            try await shop.run { gateway in
                let all = try await shop.records()
                #expect(try await gateway.eventually("SELECT sum(next_offset) FROM sluice.ingest_offset", is: all), "seed \(seed)")
                #expect(try await gateway.count("SELECT count(*) FROM readings") == 3 * (16 * 150 + 5 * 300), "seed \(seed)")
                #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 3 * 16 * 2, "seed \(seed)")
                #expect(
                    try await gateway.count("SELECT count(DISTINCT (source, log_offset)) FROM sluice.ingest_rejected") == 3 * 16 * 2,
                    "seed \(seed)")
            }
        }
    }

    /// What another program writes to the topic: in each partition some records, two of which are nothing.
    private static func records(_ round: Int) -> [(partition: Int32, value: [UInt8])] {
        (Int32(0)..<16).flatMap { partition in
            (0..<152).map { number in
                let text = #"{"_id": "kafka-\#(round)-\#(partition)-\#(number)", "store": "north", "value": 1}"#
                return (partition, Array((number % 76 == 40 ? "nothing" : text).utf8))
            }
        }
    }

    /// Bodies by HTTP, each sent until it is acknowledged.
    private static func send(_ round: Int, to gateway: RunningGateway, _ token: String) async throws {
        for body in 0..<5 {
            let lines = (0..<300).map { #"{"_id": "http-\#(round)-\#(body)-\#($0)", "store": "north", "value": 1.5}"# }
            let isTaken = try await eventually(every: .milliseconds(50)) {
                let reply = try? await gateway.ingest(Array(lines.joined(separator: "\n").utf8), token: token)
                return reply?.status == 200
            }
            try #require(isTaken, "The gateway takes nothing any more.")
        }
    }

    /// Ends everything that talks to the database, at moments that many milliseconds apart.
    private static func cutConnections(of gateway: RunningGateway, at moments: ArraySlice<Int>) async throws {
        for milliseconds in moments {
            try await Task.sleep(for: .milliseconds(milliseconds))
            try await gateway.sql(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
                """)
        }
    }
}
