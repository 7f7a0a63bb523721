import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceTools
import SluiceWire
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `Objects that refer to each other` {
    private static func tables(_ options: String = "") -> String {
        """
        CREATE TABLE orders (_id text PRIMARY KEY, store text NOT NULL, title text, size bigint NOT NULL DEFAULT 0 CHECK (size < 100),
            secret text CONSTRAINT inner_order REFERENCES orders \(options));
        CREATE TABLE tags (_id text PRIMARY KEY, title text CONSTRAINT tag_order REFERENCES orders, labels text[] NOT NULL DEFAULT '{}',
            place jsonb);
        CREATE TABLE readings (_id text PRIMARY KEY, store text NOT NULL, value double precision NOT NULL);
        """
    }

    private static func with(
        _ options: String = "", _ body: @escaping @Sendable (RunningGateway, TestSession) async throws -> Void
    ) async throws {
        try await RunningGateway.deploy(tables(options)) { deployment in
            try await deployment.run(ShopApp.files) { gateway in
                let session = try await gateway.openSession()
                try await session.subscribe(1, [("Order", "store == 'north'"), ("Tag", "TRUEPREDICATE")])
                try await body(gateway, session)
                session.close()
            }
        }
    }

    private static func order(_ key: String, within outer: String? = nil, size: Int64 = 1) -> ObjectChange {
        TestSession.order(key, ["store": .string("north"), "size": .int(size), "secret": outer.map { .string($0) } ?? .null])
    }

    private static func tag(_ key: String, of order: String, _ kind: ObjectChange.Kind = .create) -> ObjectChange {
        ObjectChange(
            object: ObjectKey(type: "Tag", key: .string(key)), kind: kind, values: kind == .create ? ["title": .string(order)] : [:])
    }

    @Test func `are written parents first and deleted children first, whatever order they come in`() async throws {
        try await Self.with { gateway, session in
            try await session.upload(
                1, [Self.tag("t", of: "c"), Self.order("c", within: "b"), Self.order("b", within: "a"), Self.order("a")])
            try await session.receive { $0.acknowledged == 1 }
            #expect(session.compensations.isEmpty, "\(session.compensations)")
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 3)
            #expect(try await gateway.count("SELECT count(*) FROM tags") == 1)
            let deletes = ["a", "b", "c"].map { TestSession.order($0, [:], .delete) }
            try await session.upload(2, deletes + [Self.tag("t", of: "c", .delete)])
            try await session.receive { $0.acknowledged == 2 }
            #expect(session.compensations.isEmpty, "\(session.compensations)")
            #expect(try await gateway.count("SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM tags)") == 0)
        }
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `are written in any shuffled order`(seed: UInt64) async throws {
        try await Self.with { gateway, session in
            var generator = SplitMix64(seed: seed)
            var changes: [ObjectChange] = []
            for number in 0..<30 {
                let outer = number > 0 ? "o\(Int.random(in: 0..<number, using: &generator))" : nil
                changes.append(Self.order("o\(number)", within: outer))
                changes.append(Self.tag("t\(number)", of: "o\(Int.random(in: 0..<30, using: &generator))"))
            }
            try await session.upload(1, changes.shuffled(using: &generator))
            try await session.receive { $0.acknowledged == 1 }
            #expect(session.compensations.isEmpty, "seed \(seed): \(session.compensations)")
            let deletes = changes.map { ObjectChange(object: $0.object, kind: .delete) }
            try await session.upload(2, deletes.shuffled(using: &generator))
            try await session.receive { $0.acknowledged == 2 }
            #expect(session.compensations.isEmpty, "seed \(seed): \(session.compensations)")
            #expect(try await gateway.count("SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM tags)") == 0, "seed \(seed)")
        }
    }

    @Test(arguments: [("", false), ("DEFERRABLE", true)])
    func `in a circle are written when their foreign key can be deferred, and refused whole otherwise`(
        options: String, isWritten: Bool
    ) async throws {
        try await Self.with(options) { gateway, session in
            try await session.upload(1, [Self.order("a", within: "b"), Self.order("b", within: "a"), Self.order("alone")])
            try await session.receive { $0.acknowledged == 1 }
            #expect(try await gateway.count("SELECT count(*) FROM orders") == (isWritten ? 3 : 0))
            #expect(session.compensations.count == (isWritten ? 0 : 3), "\(session.compensations)")
            #expect(Set(session.compensations.map(\.error.message)).count <= 1)
        }
    }

    @Test func `stand or fall together, for one reason, and others are refused alone`() async throws {
        try await Self.with { gateway, session in
            // The order breaks a check, so that the tag has nothing to refer to.
            try await session.upload(1, [Self.tag("t", of: "a"), Self.order("a", size: 100), Self.order("b")])
            try await session.receive { $0.acknowledged == 1 }
            #expect(session.compensations.count == 3, "\(session.compensations)")
            #expect(Set(session.compensations.map(\.error.message)).count == 1, "\(session.compensations)")
            #expect(session.compensations.allSatisfy { $0.error.message.contains("a check does not hold") })
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 0)
            // A reference to what nobody named takes nothing with it.
            try await session.upload(2, [Self.tag("u", of: "nobody"), Self.order("c")])
            try await session.receive { $0.acknowledged == 2 }
            #expect(session.compensations.count == 4 && session.compensations.last?.object.key == .string("u"))
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 1)
        }
    }

    @Test func `in a circle are what schema diff warns of, unless the foreign key can be deferred`() async throws {
        for (options, count) in [("", 1), ("DEFERRABLE", 0)] {
            try await GatewayDatabase.with { conninfo in
                let connection = try await PostgresConnection.connect(conninfo)
                _ = try await connection.script(Self.tables(options))
                await connection.close()
                let difference = try await SchemaTool(app: try ShopApp.configuration(), postgres: conninfo).diff()
                let findings = difference.findings
                #expect(findings.count == count, "\(findings)")
                #expect(findings.allSatisfy { $0.code == .foreignKeyCircle && $0.type == "Order" && $0.subject == "inner_order" })
                #expect(difference.text.contains("ALTER CONSTRAINT \"inner_order\" DEFERRABLE") == (count > 0), "\(difference.text)")
                // The statement takes the warning away.
                for finding in findings {
                    let connection = try await PostgresConnection.connect(conninfo)
                    for statement in finding.statements { _ = try await connection.script(statement) }
                    await connection.close()
                    #expect(try await SchemaTool(app: try ShopApp.configuration(), postgres: conninfo).diff().findings.isEmpty)
                }
            }
        }
    }
}
