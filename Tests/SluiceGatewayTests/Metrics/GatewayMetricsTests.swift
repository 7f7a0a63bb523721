import GatewayTestSupport
import SluiceCore
import SluiceGateway
import Testing

@Suite struct `A gateway's metrics` {
    @Test func `tell of sessions, bootstraps, changes, uploads and errors`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('1', 'north', 1), ('2', 'north', 2), ('3', 'south', 3)")
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'"), ("Tag", "TRUEPREDICATE")])
            #expect(try await gateway.metric("sluice_sessions") == 1)
            #expect(try await gateway.metric("sluice_sessions_started_total") == 1)
            #expect(try await gateway.metric("sluice_connections") >= 1)
            #expect(try await gateway.metric("sluice_bootstraps_total") == 1)
            #expect(try await gateway.metric("sluice_bootstrap_rows_total") == 2)
            #expect(try await gateway.metric("sluice_bootstrap_seconds_count") == 1)
            #expect(try await gateway.metric("sluice_subscriptions") == 2)
            #expect(try await gateway.metric("sluice_egress_bytes_total") > 100)

            try await gateway.sql("UPDATE orders SET size = 9")
            try await session.receive { $0.rows["Order"]?[.string("2")]?["size"] == .int(9) }
            #expect(try await gateway.metric("sluice_delivered_changes_total") == 2, "the third is of another store")
            #expect(try await gateway.metric("sluice_delivery_seconds_count") >= 1)

            try await session.upload(1, [TestSession.order("4", ["store": .string("north"), "size": .int(4)])])
            try await session.upload(2, [TestSession.order("5", ["store": .string("south"), "size": .int(5)])])
            try await session.upload(2, [TestSession.order("5", ["store": .string("south"), "size": .int(5)])])
            try await session.receive { $0.acknowledged == 2 && $0.compensations.count == 1 }
            try await gateway.untilMetric("sluice_uploads_total{result=\"repeated\"}", is: 1)
            #expect(try await gateway.metric("sluice_uploads_total{result=\"applied\"}") == 1)
            #expect(try await gateway.metric("sluice_uploads_total{result=\"compensated\"}") == 1)
            #expect(try await gateway.metric("sluice_upload_seconds_count") == 2)
            #expect(try await gateway.metric("sluice_compensating_writes_total") == 1)

            await #expect(throws: SluiceError.self) { try await session.subscribe(2, [("Order", "nothing == 1")]) }
            try await session.send(bytes: [0xff])
            _ = try await session.failure()
            let errors = try await gateway.text("/metrics").split(separator: "\n").filter { $0.hasPrefix("sluice_session_errors_total{") }
            #expect(errors.count == 2 && errors.allSatisfy { $0.hasSuffix(" 1") }, "\(errors)")
            try await gateway.untilMetric("sluice_sessions_ended_total", is: 1)
            #expect(try await gateway.metric("sluice_sessions") == 0)
            #expect(try await gateway.metric("sluice_subscriptions") == 0)
            #expect(try await gateway.metric("sluice_outbox_bytes") == 0)
        }
    }

    @Test func `tell of requests, logins and objects that come in`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            #expect(try await gateway.login("nobody").status == 401)
            let answer = try await gateway.request(
                "POST", "/v1/ingest/Reading", #"{"_id":"1","store":"north","value":1}"#, token: token)
            #expect(answer.status == 200, "\(answer)")
            #expect(try await gateway.metric("sluice_logins_total{provider=\"anon-user\"}") == 1)
            #expect(try await gateway.metric("sluice_login_failures_total{provider=\"local-userpass\"}") == 1)
            #expect(try await gateway.metric("sluice_http_requests_total{result=\"2xx\"}") == 2)
            #expect(try await gateway.metric("sluice_http_requests_total{result=\"4xx\"}") == 1)
            #expect(try await gateway.metric("sluice_http_seconds_count") == 3)
            #expect(try await gateway.metric("sluice_ingest_seconds_count") == 1)
        }
    }

    @Test func `tell how much of the log the slot keeps, and say so when there is no slot`() async throws {
        try await RunningGateway.with { gateway in
            #expect(try await gateway.metric("sluice_slot_bytes") >= 0)
            let ratio = try await gateway.metric("sluice_slot_budget_ratio")
            #expect(ratio >= 0 && ratio <= 1)
        }
        #expect(SlotBudget.ratio(kept: 25, left: 75, isLost: false) == 0.25)
        #expect(SlotBudget.ratio(kept: 25, left: nil, isLost: false) == 0, "there is no bound")
        #expect(SlotBudget.ratio(kept: 100, left: -5, isLost: false) == 1)
        #expect(SlotBudget.ratio(kept: 0, left: 0, isLost: true) == 1)
    }
}
