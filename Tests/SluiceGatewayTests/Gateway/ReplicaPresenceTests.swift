import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceGateway
import SluiceRealm
import SluiceWire
import TestSupport
import Testing

/// An environment in which half an hour of sleep is a moment.
private struct Hasty: Environment {
    private let system = SystemEnvironment()

    func wallMilliseconds() -> Int64 { system.wallMilliseconds() }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }
    func random() -> UInt64 { system.random() }
    func sleep(nanoseconds: UInt64) async throws {
        try await system.sleep(nanoseconds: nanoseconds == 1_800_000_000_000 ? 50_000_000 : nanoseconds)
    }
    func after(nanoseconds: UInt64, _ body: @escaping @Sendable () -> Void) -> EnvironmentTimer {
        system.after(nanoseconds: nanoseconds, body)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `The client replicas of a gateway` {
    private static let age = "SET seen_at = now() - interval '1 day'"

    @Test func `are in use while they are connected, in both protocols`() async throws {
        try await RunningGateway.with(environment: Hasty()) { gateway in
            let account = try await gateway.account(customData: #"{ "store": "north" }"#)
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Order"])
            let client = RealmTestClient(try ShopApp.configuration().schema)
            try await client.connect(gateway.url, app: gateway.app, token: account.token)
            try await client.subscribe(["Order": "store == 'north'"])
            // One more of each, which is not connected.
            try await gateway.sql("INSERT INTO sluice.client (user_id, secret) VALUES ('\(account.id)', '')")
            try await gateway.sql("INSERT INTO sluice.realm_file (salt, user_id) VALUES (1, '\(account.id)')")
            try await gateway.sql("UPDATE sluice.client \(Self.age); UPDATE sluice.realm_file \(Self.age)")
            let used = "seen_at > now() - interval '1 hour'"
            // The client of Realm's protocol has a replica in the pipeline, too.
            #expect(try await gateway.eventually("SELECT count(*) FROM sluice.client WHERE \(used)", is: 2))
            #expect(try await gateway.eventually("SELECT count(*) FROM sluice.realm_file WHERE \(used)", is: 1))
            session.close()
            client.disconnect()
        }
    }

    /// The attack of an anonymous user who registers one replica after another.
    @Test func `are bounded for each user, whose device then replaces an unused one`() async throws {
        try await RunningGateway.with { gateway in
            let account = try await gateway.account(customData: #"{ "store": "north" }"#)
            try await gateway.sql(
                """
                INSERT INTO sluice.client (user_id, secret) SELECT '\(account.id)', '' FROM generate_series(1, \(Limits.userReplicas));
                INSERT INTO sluice.realm_file (salt, user_id) SELECT 1, '\(account.id)' FROM generate_series(1, \(Limits.userReplicas))
                """)
            let refused = try await gateway.session(token: account.token)
            try await refused.sendHello(["Order"])
            let error = try await refused.failure()
            #expect(error.code == .tooManyRequests && refused.error?.action == .transient, "\(error)")
            let refusedClient = RealmTestClient(try ShopApp.configuration().schema)
            try await refusedClient.connect(gateway.url, app: gateway.app, token: account.token)
            try await refusedClient.receive { $0.error != nil }
            #expect(refusedClient.file.error?.action == .transient, "\(String(describing: refusedClient.file.error))")
            refusedClient.disconnect()

            try await gateway.sql("UPDATE sluice.client \(Self.age); UPDATE sluice.realm_file \(Self.age)")
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Order"])
            session.close()
            let client = RealmTestClient(try ShopApp.configuration().schema)
            try await client.connect(gateway.url, app: gateway.app, token: account.token)
            try await client.subscribe(["Order": "store == 'north'"])
            client.disconnect()
            for table in ["client", "realm_file"] {
                #expect(try await gateway.count("SELECT count(*) FROM sluice.\(table)") == Int64(Limits.userReplicas), "\(table)")
            }
            // The client of Realm's protocol replaces a file, and a replica in the pipeline.
            #expect(try await gateway.metric("sluice_client_replicas_replaced_total") == 3)
        }
    }
}
