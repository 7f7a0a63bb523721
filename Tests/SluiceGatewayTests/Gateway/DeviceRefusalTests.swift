import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluiceValues
import SluiceWire
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `Objects of a device that are refused` {
    @Test func `are kept with who sent them and why, with Kafka`() async throws {
        try await KafkaShop.with { shop in
            try await shop.run { gateway in
                try await Self.check(gateway)
                #expect(try await shop.deadLetters(2).allSatisfy { $0["source"]?.string?.hasPrefix("device/") == true })
            }
        }
    }

    @Test func `are kept with who sent them and why, without Kafka`() async throws {
        try await RunningGateway.with { try await Self.check($0) }
    }

    @Test func `are in the log with who sent them, and the clause of the role that was not met`() async throws {
        let role = NoteApp.role("keeper", write: #"{ "store": "%%user.custom_data.store" }"#)
        let rules = #"{ "database": "public", "collection": "readings", "roles": [\#(role)] }"#
        let log = LinesOfLog()
        let logger = Logger(label: "test") { _ in log }
        try await RunningGateway.with(files: [ShopApp.table("readings", "rules"): rules], logger: logger) { gateway in
            let account = try await gateway.account(customData: #"{ "store": "south" }"#)
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Reading"])
            try await session.ingest(1, [Self.reading("a", .create), Self.reading("b", .create)])
            await log.wait(for: "Objects of a device are rejected.")
            let said = try #require(log.lines.first { $0.message == "Objects of a device are rejected." }?.metadata)
            let wanted = [
                "source": "device/\(account.id)/\(session.welcome?.client ?? 0)", "type": "Reading", "count": "2", "code": "230",
                "rule": #"role keeper, write, not met: store == "south""#,
            ]
            for (name, value) in wanted { #expect(said[name]?.description == value, "\(name) of \(said)") }
            session.close()
        }
    }

    @Test func `as their rule is none tell their user nothing of it, and operators all`() async throws {
        let log = LinesOfLog()
        let logger = Logger(label: "test") { _ in log }
        try await RunningGateway.with(files: FaultyApp.files, plugins: ["FaultyC"], logger: logger) { gateway in
            let account = try await gateway.account(customData: #"{ "word": "do-misbind" }"#)
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Reading"])
            try await session.ingest(1, [Self.reading("a", .create), Self.reading("b", .create)])
            #expect(Array(session.ingested.refused.values) == [.writeNotAllowed, .writeNotAllowed], "\(session.ingested)")
            // As the device hears it.
            let letters = try await Self.letters(gateway)
            #expect(letters.map { $0["code"]?.int } == [230, 230])
            #expect(
                letters.allSatisfy { letter in
                    letter["reason"] == "The rules of the server could not be asked about an object of class Reading, so it was refused."
                }, "\(letters.map(\.text))")
            await log.wait(for: "Objects of a device are rejected.", about: "nothing == 1")
            session.close()

            let answer = try await gateway.ingest(Readings.lines(2), token: account.token)
            #expect(answer.status == 403 && answer.json["code"]?.int == Int64(ErrorCode.permissionDenied.rawValue), "\(answer)")
            #expect(!answer.text.contains("nothing") && answer.headers["retry-after"] == nil, "\(answer)")
            await log.wait(for: "Objects sent by HTTP are rejected", about: "nothing == 1")
            let rules = log.lines.compactMap { $0.metadata["rule"]?.description }
            #expect(rules.count == 2 && rules.allSatisfy { $0.contains("query-unknown-property (301): ") }, "\(rules)")
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
        }
    }

    @Test func `by their size alone are those that the brokers do not take`() async throws {
        try await KafkaShop.with { shop in
            try await shop.createTopics(settings: ["max.message.bytes": "500000"])
            try await shop.run { gateway in
                let account = try await gateway.account()
                let session = try await gateway.session(token: account.token)
                try await session.hello(["Reading"])
                // No compression makes it small.
                var generator = SplitMix64(seed: 5)
                let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".utf8)
                let text = String(decoding: (0..<800_000).map { _ in letters[generator.below(64)] }, as: UTF8.self)
                let objects = [Self.reading("a", .create), Self.reading("large", .create, store: text), Self.reading("b", .create)]
                try await session.ingest(1, objects)
                #expect(Array(session.ingested.refused.values) == [.logRecordTooLarge], "\(session.ingested)")
                try await session.ingest(2, [Self.reading("c", .create)])
                #expect(session.ingested.refused.isEmpty)
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 3))
                #expect(try await gateway.texts("SELECT _id FROM readings ORDER BY _id") == ["a", "b", "c"])
                let kept = try await Self.letters(gateway)
                #expect(kept.map { $0["code"]?.int } == [Int64(ErrorCode.logRecordTooLarge.rawValue)])
                #expect(kept.first?["source"]?.string?.hasPrefix("device/\(account.id)/") == true)
                // The topic of these has the same bound.
                let letter = try #require(try await shop.deadLetters(1).first)
                #expect(letter["cut"] == true && letter["id"] == kept.first?["id"] && letter["object"]?.string?.isEmpty == false)
                session.close()

                let lines = [Readings.line("d"), #"{"_id": "e", "store": "\#(text)", "value": 1}"#, Readings.line("f")]
                let answer = try await gateway.ingest(Array(lines.joined(separator: "\n").utf8), token: account.token)
                #expect((answer.status, answer.accepted, answer.json["complete"]) == (207, 2, true), "\(answer.text.prefix(500))")
                let refused = answer.json["rejected"]?.array?.first
                #expect(refused?["line"] == .int(2) && refused?["code"] == .int(Int64(ErrorCode.logRecordTooLarge.rawValue)))
                #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE _id IN ('d', 'f')", is: 2))
            }
        }
    }

    private static func check(_ gateway: RunningGateway) async throws {
        let account = try await gateway.account()
        let session = try await gateway.session(token: account.token)
        try await session.hello(["Reading", "Order"])
        let objects = [reading("good", .create), reading("changed", .set), TestSession.order("stray", ["store": .string("north")])]
        try await session.ingest(1, objects)
        #expect(session.ingested.refused.count == 2, "\(session.ingested)")
        let codes = [ErrorCode.writeNotAllowed, .ingestUnknownType]
        #expect(Set(session.ingested.refused.values) == Set(codes))
        #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE _id = 'good'", is: 1))

        let rows = try await Self.letters(gateway)
        #expect(rows.map { $0["code"]?.int } == codes.map { Int64($0.rawValue) }, "\(rows.map(\.text))")
        #expect(rows.allSatisfy { $0["source"]?.string?.hasPrefix("device/\(account.id)/") == true })
        let kept = try JSON.parse(Array((rows.first?["object"]?.string ?? "").utf8))
        #expect(kept["_id"] == .string("changed") && kept["store"] == .string("north"), "\(kept.text)")
        // What comes again because its acknowledgement was lost is not kept again.
        try await session.ingest(1, objects)
        try await session.sendMark(1)
        try await session.receive { $0.mark == 1 }
        #expect(try await Self.letters(gateway).count == 2)

        // What a user may not send does not enter by the way of everything else.
        let all = try await gateway.request("POST", "/admin/v1/ingest/replay", "{}", admin: true)
        #expect(all.json["sent"] == .int(0) && all.json["refused"]?.array?.count == 2, "\(all)")
        let id = try #require(rows.first?["id"]?.int)
        let one = try await gateway.request("POST", "/admin/v1/ingest/replay", #"{"ids": [\#(id)]}"#, admin: true)
        #expect(one.json["sent"] == .int(1), "\(one)")
        #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE _id = 'changed'", is: 1))
        #expect(try await Self.letters(gateway).count == 1)
        session.close()
    }

    private static func reading(_ key: String, _ kind: ObjectChange.Kind, store: String = "north") -> ObjectChange {
        ObjectChange(
            object: ObjectKey(type: "Reading", key: .string(key)), kind: kind, values: ["store": .string(store), "value": .double(1)])
    }

    private static func letters(_ gateway: RunningGateway) async throws -> [JSON] {
        let answer = try await gateway.request("GET", "/admin/v1/ingest/rejected", admin: true)
        return answer.json["rows"]?.array ?? []
    }
}

extension KafkaShop {
    /// Makes the topics of ingest before a gateway does, as operators may.
    fileprivate func createTopics(settings: [String: String]) async throws {
        let admin = try KafkaAdmin(KafkaConfiguration(bootstrapServers: kafka, clientID: "test"))
        let outcome: Result<Void, any Error>
        do {
            let topics = [
                KafkaTopic("\(app).ingest.Reading", partitions: 16, settings: settings),
                KafkaTopic("\(app).ingest-rejected", partitions: 1, settings: settings),
            ]
            outcome = .success(try await admin.create(topics))
        } catch {
            outcome = .failure(error)
        }
        await admin.close()
        try outcome.get()
    }
}
