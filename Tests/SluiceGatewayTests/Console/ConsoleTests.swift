import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The operator console` {
    private static let evil = "<script>alert('1')</script>"

    @Test func `is one page without anything from elsewhere, and comes anew by itself`() async throws {
        try await RunningGateway.with { gateway in
            let answer = try await gateway.console("/")
            #expect(answer.status == 200 && answer.path == "/console")
            #expect(answer.headers["content-type"] == "text/html; charset=utf-8")
            #expect(
                answer.headers["content-security-policy"]
                    == "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
            #expect(answer.headers["cache-control"] == "no-store" && answer.headers["x-content-type-options"] == "nosniff")
            #expect(answer.headers["referrer-policy"] == "no-referrer")
            let page = answer.page
            #expect(page.elements("meta").contains { $0["http-equiv"] == "refresh" && $0["content"] == "5" })
            #expect(page.text("status").contains("Ready.") && page.source.contains("<title>Ready – shop – Sluice</title>"))
            #expect(page.elements("a").allSatisfy { $0["href"]?.hasPrefix("/console") == true })
            #expect(!page.source.contains("http://") && !page.source.contains("https://") && !page.source.contains("url("))
            let still = try await gateway.console("/console", [("still", "1")]).page
            #expect(!still.elements("meta").contains { $0["http-equiv"] != nil })
            for part in ["errors", "plugins", "ingest", "functions", "triggers", "refused", "unfit"] {
                #expect(!page.text(part).isEmpty, "\(part)")
            }
            #expect(page.text("refused").hasSuffix("None.\n") && page.text("unfit").hasSuffix("None.\n"))
        }
    }

    @Test func `has the figures of the metrics, and the errors with what to do`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('1', 'north', 1), ('2', 'north', 2)")
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'"), ("Tag", "TRUEPREDICATE")])
            try await session.upload(1, [TestSession.order("4", ["store": .string("north"), "size": .int(4)])])
            try await session.upload(2, [TestSession.order("5", ["store": .string("south"), "size": .int(5)])])
            try await session.receive { $0.acknowledged == 2 && $0.compensations.count == 1 }
            for version in [2, 3] as [UInt64] {
                await #expect(throws: SluiceError.self) { try await session.subscribe(version, [("Order", "nothing == 1")]) }
            }
            let token = try await gateway.anonymousToken()
            _ = try await gateway.ingest(Array(#"{"_id":"1","store":"north","value":1}"#.utf8), token: token)

            let page = try await gateway.console().page
            let figures = [
                ("Sessions", "sluice_sessions", 1.0), ("Subscriptions", "sluice_subscriptions", 2),
                ("Uploads applied", "sluice_uploads_total{result=\"applied\"}", 1),
                ("Uploads compensated", "sluice_uploads_total{result=\"compensated\"}", 1),
                ("Compensating writes", "sluice_compensating_writes_total", 1), ("Bootstraps", "sluice_bootstraps_total", 1),
            ]
            for (row, metric, value) in figures {
                #expect(page.number(row) == value, "\(row)")
                #expect(try await gateway.metric(metric) == value, "\(metric)")
            }
            #expect(page.row("Publishes")?[1] == "yes")
            #expect((page.number("Connections") ?? 0) >= 1 && (page.number("Watermark lag") ?? -1) >= 0)
            #expect(
                page.number("Outboxes") != nil && page.number("Feed") != nil && (page.number("Slot") ?? -1) >= 0
                    && page.number("Slot's budget").map { 0...1 ~= $0 } == true)
            let errors = page.rows.filter { $0.first?.hasPrefix("query-unknown-property") == true }
            #expect(errors.count == 1 && errors.first?.dropFirst().first == "2", "\(errors)")
            #expect(errors.first?.last == ErrorCode.queryUnknownProperty.fix && errors.first?[2] == ErrorCode.queryUnknownProperty.meaning)
            #expect(page.row("Reading") == ["Reading", "1", "0", "0", "0", "–"], "\(page.text("ingest"))")
            #expect(page.text("plugins").contains("Generation 1, in use"))
            session.close()
        }
    }

    @Test func `shows a plugin that crashed, with its last error`() async throws {
        try await RunningGateway.with(files: FaultyApp.files, plugins: ["FaultyC"], isDevelopment: true) { gateway in
            let calm = try await gateway.openSession(["Store"])
            let session = try await gateway.session(token: try await gateway.account(customData: #"{"word": "do-crash"}"#).token)
            try await session.sendHello(["Store"])
            _ = try await session.failure()
            let next = try await gateway.openSession(["Store"])
            let plugin = try #require(try await gateway.console().page.rows.first { $0.first?.hasPrefix("FaultyC ") == true })
            #expect(plugin.count == 8 && plugin[1] == "running" && Int(plugin[2]) != nil, "\(plugin)")
            #expect(Int(plugin[3]) ?? 0 >= 2 && Int(plugin[5]) ?? 0 >= 1 && Int(plugin[6]) ?? 0 >= 1, "\(plugin)")
            #expect(plugin[7].contains(" ago: ") && plugin[7].contains("signal 11") && plugin[7].contains("plugin-crashed"), "\(plugin)")
            let errors = try await gateway.console().page.text("errors")
            #expect(errors.contains("plugin-crashed (502)"), "\(errors)")
            calm.close()
            next.close()
        }
    }

    @Test func `lists refused objects and rows that do not fit, and nothing in them is markup`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            try await gateway.sql("ALTER TABLE readings ADD CONSTRAINT \"<b>mild\" CHECK (value < 100)")
            let object: JSON = ["_id": .string(Self.evil), "store": "north", "value": 1_000]
            _ = try await gateway.ingest(Array(object.text.utf8), token: token)
            #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected", is: 1))
            let key = Self.evil.replacing("'", with: "''")
            try await gateway.sql(#"INSERT INTO tags (_id, place) VALUES ('\#(key)', '{"x": "text"}')"#)
            #expect(try await gateway.eventually("SELECT count(*) FROM sluice.quarantine", is: 1))
            // The gateway removes records of rows that do not exist, from time to time.
            let orders = """
                INSERT INTO sluice.quarantine (type, key, reason, lsn, at)
                SELECT 'Order', i, '<b>' || repeat('long', 300), '0/0', now() - interval '1 hour' FROM generate_series(1, 30) AS i
                ON CONFLICT DO NOTHING
                """
            var (page, attempts) = (try await gateway.console().page, 0)
            while !page.text("unfit").contains("31 in all."), attempts < 100 {
                try await gateway.sql(orders)
                (page, attempts) = (try await gateway.console().page, attempts + 1)
            }
            let unfit = page.text("unfit")
            #expect(unfit.contains("31 in all.") && unfit.contains("…") && unfit.contains("<b>long"))
            #expect(page.row("Tag")?[2].wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil, "\(unfit)")
            #expect(page.row("Tag")?[1] == Self.evil && page.rows.count { $0.first == "Order" } == 19, "the newest twenty")
            let refused = page.text("refused")
            #expect(refused.contains("1 in all.") && refused.contains(Self.evil) && refused.contains("ingest-rejected"), "\(refused)")
            #expect(refused.contains("<b>mild"), "\(refused)")
            #expect(!page.source.contains("<script") && !page.source.contains("<b>"))
            #expect(page.row("Reading")?[3] == "1", "\(page.text("ingest"))")
        }
    }

    @Test func `answers why a user has an object, and what becomes of a subscription`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('o 1', 'north', 7)")
            let user = try await gateway.account(customData: #"{ "store": "north" }"#)
            let session = try await gateway.session(token: user.token)
            try await session.hello(["Order"])
            try await session.subscribe(1, [("Order", "store == 'north'")])

            let form = try await gateway.console("/console/why")
            #expect(form.status == 200 && form.page.text("answer").isEmpty)
            #expect(form.page.elements("input").map { $0["name"] } == ["user", "type", "id"])
            #expect(form.page.elements("form").first?["action"] == "/console/why")
            let why = try await gateway.console("/console/why", [("user", user.id), ("type", "Order"), ("id", "o 1")])
            let said = "has it, by the query store == 'north'; the role 'keeper' permits"
            #expect(why.status == 200 && why.page.text("answer").contains(said), "\(why.page.source)")
            #expect(why.page.elements("input").map { $0["value"] } == [user.id, "Order", "o 1"])
            #expect(!why.page.elements("meta").contains { $0["http-equiv"] != nil })

            let asked = [("user", user.id), ("query", "store == 'north' AND size + 1 > 3")]
            let bad = try await gateway.console("/console/explain", asked)
            #expect(bad.status != 200 && bad.page.text("answer").contains("What to do: "), "\(bad.page.text("answer"))")
            let explained = try await gateway.console(
                "/console/explain", [asked[0], ("type", ""), ("query", "store == 'north' AND size > 3")])
            let text = explained.page.text("answer")
            #expect(explained.status == 200 && text.contains("PostgreSQL") && text.contains("keyed: tested for 1 value of store only"))

            let nobody = try await gateway.console("/console/why", [("user", Self.evil), ("type", "Order"), ("id", "x")])
            #expect(nobody.status == 404 && nobody.page.text("answer").contains("No user has the id or e-mail \(Self.evil)."))
            let half = try await gateway.console("/console/explain", [("user", user.id)])
            #expect(half.status == 400 && half.page.text("answer").contains("Missing: 'query'."))
            session.close()
        }
    }
}
