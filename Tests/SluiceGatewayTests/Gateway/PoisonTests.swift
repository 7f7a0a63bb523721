import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(5))) struct `Objects that the ingest rules fail at` {
    @Test func `are refused one by one when they come by Kafka, and the others are stored`() async throws {
        try await KafkaShop.with { shop in
            try await shop.run(files: FaultyApp.files, plugins: ["FaultyC"]) { gateway in
                let words = [13: "do-crash", 50: "do-hang", 77: "do-garbage"]
                try await shop.produce(
                    (0..<100).map { number in
                        let text = #"{"_id": "\#(number) \#(words[number] ?? "well")", "store": "north", "value": 1}"#
                        return (Int32(number % 3), Array(text.utf8))
                    })
                #expect(try await gateway.eventually("SELECT sum(next_offset) FROM sluice.ingest_offset", is: 100, within: .seconds(240)))
                #expect(try await gateway.count("SELECT count(*) FROM readings WHERE _id LIKE '% well'") == 97)
                #expect(try await gateway.count("SELECT count(*) FROM readings") == 97)
                let letters = try await shop.deadLetters(3)
                let expected: [(String, ErrorCode, String)] = [
                    ("13 do-crash", .pluginCrashed, "signal 11"), ("50 do-hang", .pluginTimeout, "slept for more than 5 ms in ingest"),
                    ("77 do-garbage", .pluginBadAnswer, "not JSON"),
                ]
                for (id, code, text) in expected {
                    let letter = try #require(letters.first { $0["object"]?.string?.contains(id) == true }, "\(letters.map(\.text))")
                    #expect(
                        letter["code"]?.int == Int64(code.rawValue) && letter["reason"]?.string?.contains(text) == true, "\(letter.text)")
                }
                #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 3)
                // Nothing of it stays: what comes next is taken at once.
                try await shop.produceEverywhere("later")
                #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE _id LIKE 'later%'", is: 16))
            }
        }
    }

    @Test func `are refused one by one when they come by HTTP without Kafka`() async throws {
        let plugin = Built.plugin("FaultyC")
        // Too long an answer takes its time.
        let list =
            #"{ "plugins": [{ "file": "\#(plugin)", "sha256": "\#(try PluginList.sha256(of: plugin))", "deadline_ms": { "ingest": 1000 } }] }"#
        try await RunningGateway.with(files: FaultyApp.files.merging(["plugins.json": list]) { $1 }) { gateway in
            let words = [3: "do-crash", 20: "do-overflow", 39: "do-deny"]
            let lines = (0..<40).map { #"{"_id":"\#($0) \#(words[$0] ?? "well")","store":"north","value":1}"# }
            let reply = try await gateway.ingest(Array(lines.joined(separator: "\n").utf8), token: try await gateway.anonymousToken())
            #expect(reply.status == 200, "\(reply)")
            #expect(try await gateway.count("SELECT count(*) FROM readings WHERE _id LIKE '% well'") == 37)
            for (id, code) in [(3, ErrorCode.pluginCrashed), (20, .pluginBadAnswer), (39, .pluginRefused)] {
                let count = try await gateway.count(
                    "SELECT count(*) FROM sluice.ingest_rejected WHERE code = \(code.rawValue) AND object LIKE '%\"\(id) do-%'")
                #expect(count == 1, "\(id)")
            }
            // One alone is no other case.
            let alone = try await gateway.ingest(
                Array(#"{"_id":"alone do-crash","store":"north","value":1}"#.utf8), token: try await gateway.anonymousToken())
            #expect(alone.status == 200, "\(alone)")
            #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 4)
        }
    }
}
