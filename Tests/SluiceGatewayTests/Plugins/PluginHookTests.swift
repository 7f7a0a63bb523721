import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import SluiceWire
import TestSupport
import Testing

/// What a plugin's hooks and questions come to with a gateway around them; FaultyC does what its words say.
@Suite(.timeLimit(.minutes(5))) struct `A gateway with a plugin` {
    /// The app with the plugin, which has a second of processor time for each call.
    private static func files() throws -> [String: String] { FaultyApp.files.merging(["plugins.json": try list()]) { $1 } }

    private static func list() throws -> String {
        let plugin = Built.plugin("FaultyC")
        return #"{ "plugins": [{ "file": "\#(plugin)", "sha256": "\#(try PluginList.sha256(of: plugin))", "deadline_ms": 1000 }] }"#
    }

    @Test func `tells it a user's custom data and what is wrong with a predicate, and counts what it counts`() async throws {
        try await RunningGateway.with(files: try Self.files()) { gateway in
            try await gateway.sql("INSERT INTO sluice.user_account (id, provider, custom_data) VALUES ('ann', 'anon-user', '{}')")
            let account = try await gateway.account(customData: #"{ "word": "do-ask" }"#)
            let answer = try await gateway.request("GET", "/admin/v1/why?user=\(account.id)&type=Store&id=one", admin: true)
            // The role tells what came of each question: a plus where there is an answer beside the status.
            let told = try #require(answer.json["rules"]?["role"]?.string, "\(answer)").split(separator: " ").map(String.init)
            for one in ["user=ok+", "nobody=deny", "predicate=ok+", "bad-predicate=deny+", "thread=failed", "count=ok"] {
                #expect(told.contains(one), "\(one): \(told)")
            }
            // Three each time that it is asked, of changed data too.
            let counted = try await gateway.metric(#"sluice_plugin_counts_total{name="FaultyC.asked"}"#)
            #expect(counted >= 3 && counted.truncatingRemainder(dividingBy: 3) == 0, "\(counted)")
        }
    }

    @Test func `shows in metrics what its calls come to, how often it crashes, and when it is out`() async throws {
        try await RunningGateway.with(files: try Self.files()) { gateway in
            let calm = try await gateway.openSession(["Store"])
            let calls = try await gateway.metric(#"sluice_plugin_calls_total{hook="open_session"}"#)
            #expect(try await gateway.metric(#"sluice_plugin_failures_total{hook="open_session"}"#) == 0)
            #expect(try await gateway.metric("sluice_plugin_restarts_total") == 0)

            // Five in a row without an answer; each pause before the next process is longer, so that it is seen to be out.
            let out = #"sluice_plugin_out{plugin="libFaultyC.so"}"#
            let deadline = ContinuousClock.now + .seconds(120)
            var crashes = 0.0
            while try await gateway.text("/metrics").contains("\(out) 1\n") == false {
                try #require(ContinuousClock.now < deadline, "It is not out after \(crashes) crashes.")
                crashes += 1
                let account = try await gateway.account(customData: #"{ "word": "do-crash \#(crashes)" }"#)
                let session = try await gateway.session(token: account.token)
                try await session.sendHello(["Store"])
                let error = try await session.failure()
                #expect([.pluginCrashed, .pluginUnavailable].contains(error.code), "\(error)")
            }
            #expect(calm.error == nil)
            #expect(try await gateway.metric("sluice_plugin_restarts_total") >= 5)
            #expect(try await gateway.metric(#"sluice_plugin_failures_total{hook="open_session"}"#) >= crashes)
            #expect(try await gateway.metric(#"sluice_plugin_calls_total{hook="open_session"}"#) >= calls + crashes)

            // It comes back by itself.
            let isBack = try await eventually(every: .milliseconds(50)) { try await gateway.metric(out) == 0 }
            try #require(isBack, "It stays out.")
            #expect(try await gateway.openSession(["Store"]).error == nil)
        }
    }

    @Test func `has subscriptions narrowed and refused by it, and keeps the set before a refused one`() async throws {
        try await RunningGateway.with(files: try Self.files()) { gateway in
            func insert(_ orders: (key: String, size: Int)...) async throws {
                let rows = orders.map { "('\($0.key)', 'north', 'x', \($0.size))" }.joined(separator: ", ")
                try await gateway.sql("INSERT INTO orders (_id, store, title, size) VALUES \(rows)")
            }
            try await insert(("small", 1), ("large", 200))
            let session = try await gateway.openSession(["Order"])
            // It narrows by size < 100.
            try await session.subscribe(1, [("Order", "store == 'north' AND title != 'do-small'")])
            #expect(session.keys("Order") == ["small"])
            try await insert(("huge", 500), ("little", 5))
            try await session.receive { $0.keys("Order") == ["small", "little"] }
            try await gateway.sql("UPDATE orders SET size = 201 - size WHERE _id IN ('small', 'large')")
            try await session.receive { $0.keys("Order") == ["large", "little"] }

            try await session.sendSubscribe(2, [("Order", "store == 'north' AND title != 'do-deny'")])
            try await session.receive { !$0.queryErrors.isEmpty }
            let refused = try #require(session.queryErrors.first)
            #expect(refused.version == 2 && refused.error.code == .pluginRefused, "\(refused)")
            #expect(refused.error.message.contains("not today"), "\(refused)")
            try await insert(("late", 6), ("vast", 600))
            try await session.receive { $0.keys("Order") == ["large", "little", "late"] }
            #expect(session.completed == 1 && session.error == nil)
        }
    }

    @Test func `cannot undo what the roles allow by an answer that is no query by itself`() async throws {
        let log = LinesOfLog()
        let logger = Logger(label: "test") { _ in log }
        try await RunningGateway.with(files: ["plugins.json": try Self.list()], logger: logger) { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, title, size) VALUES ('s', 'south', 'x', 1)")
            let account = try await gateway.account(customData: #"{ "store": "north", "word": "do-escape" }"#)
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Order"])
            let both = [("Order", "store IN {'north', 'south'}")]
            let error = await #expect(throws: SluiceError.self) { try await session.subscribe(1, both) }
            #expect(error?.code == .querySyntax, "\(String(describing: error))")
            #expect(session.keys("Order").isEmpty)
            // The rules' text is for operators.
            #expect(error.map { !"\($0)".contains("PREDICATE") } == true, "\(String(describing: error))")
            await log.wait(for: "A subscription set was rejected.", about: "FALSEPREDICATE) OR (TRUEPREDICATE")
            session.close()
        }
    }

    @Test func `puts objects where it wants them, and counts those that it lets go and refuses`() async throws {
        let tables = ShopApp.tables.replacing("store text NOT NULL, value double precision NOT NULL", with: "value double precision")
        try await RunningGateway.deploy(tables + "CREATE TABLE rares (_id text PRIMARY KEY, note text);") { deployment in
            let files = ShopApp.files.merging(try Self.files()) { $1 }.merging(Self.rare) { $1 }.filter { !$0.value.isEmpty }
            try await deployment.run(files) { gateway in
                let lines = ["do-each", "b", "c", "d", "e", "f", "g", "h"].map { #"{"_id":"\#($0)","value":1}"# }
                let reply = try await gateway.ingest(
                    Array(lines.joined(separator: "\n").utf8), token: try await gateway.anonymousToken())
                #expect((reply.status, reply.accepted) == (200, 8), "\(reply)")
                let rows = "SELECT concat_ws(' ', _id, value) FROM readings ORDER BY _id"
                #expect(try await gateway.texts(rows) == ["b 2.5", "do-each 1", "g2 1"])
                #expect(try await gateway.texts("SELECT concat_ws(' ', _id, note) FROM rares ORDER BY _id") == ["c rare", "g1 rare"])
                // What is refused says which plugin it was; of a split it is all parts or none.
                let reasons = try await gateway.texts("SELECT reason FROM sluice.ingest_rejected ORDER BY object::text")
                #expect(reasons.count == 3 && reasons.first == "FaultyC rejected it: too hot", "\(reasons)")
                #expect(reasons.allSatisfy { $0.hasPrefix("FaultyC ") } && reasons.last?.contains("Nothing") == true, "\(reasons)")
                #expect(try await gateway.metric(#"sluice_ingest_refused_objects_total{type="Reading"}"#) == 3)
                #expect(try await gateway.metric(#"sluice_ingest_dropped_objects_total{type="Reading"}"#) == 1)
                #expect(try await gateway.metric(#"sluice_ingested_objects_total{type="Reading"}"#) == 5)
            }
        }
    }

    private static let rare = [
        ShopApp.table("readings", "schema"): """
        {
            "title": "Reading", "bsonType": "object", "required": ["_id"],
            "properties": { "_id": { "bsonType": "string" }, "value": { "bsonType": "double" } }
        }
        """,
        ShopApp.table("rares", "schema"): """
        {
            "title": "Rare", "bsonType": "object", "required": ["_id"],
            "properties": { "_id": { "bsonType": "string" }, "note": { "bsonType": "string" } }
        }
        """,
        "sync/config.json": ShopApp.files["sync/config.json"]?.replacing("[\"Reading\"]", with: "[\"Reading\", \"Rare\"]") ?? "",
    ]

    @Test func `answers ingest with when to come again while it fails, and without when it has decided`() async throws {
        try await RunningGateway.with(files: try Self.files()) { gateway in
            func ingest(as word: String) async throws -> RunningGateway.IngestReply {
                let account = try await gateway.account(customData: #"{ "word": "\#(word)" }"#)
                return try await gateway.ingest(Readings.lines(1), token: account.token)
            }
            let denied = try await ingest(as: "do-deny")
            #expect(denied.status == 403 && denied.headers["retry-after"] == nil, "\(denied)")
            #expect(denied.json["error"]?.string?.contains("not today") == true, "\(denied)")
            for (word, status, code) in [
                ("do-fail", 500, ErrorCode.pluginFailed), ("do-garbage", 500, .pluginBadAnswer), ("do-loop", 504, .pluginTimeout),
                ("do-crash", 500, .pluginCrashed),
            ] {
                let failed = try await ingest(as: word)
                // There may be no process just then, after those that it has ended.
                let codes = [503: ErrorCode.pluginUnavailable, status: code].mapValues { JSON.int(Int64($0.rawValue)) }
                #expect(codes[failed.status] == failed.json["code"] && failed.headers["retry-after"] == "2", "\(word): \(failed)")
            }
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
        }
    }
}
