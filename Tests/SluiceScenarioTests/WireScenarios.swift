import GatewayTestSupport
import Logging
import SluiceCore
import SluiceWire
import SwiftProtobuf
import Testing

/// Scenarios that an app cannot bring about: what is said on the wire.
@Suite(.timeLimit(.minutes(5))) struct `Sessions of clients` {
    @Test func `Scenario 8: every set names its keys of the indexed field`() async throws {
        let good = [
            "store == 'north'", "store IN {'north', 'south'}", "'north' == store", "store == 'north' AND size > 3",
            "store == 'north' AND (size > 3 OR title == 'a')", "(store == 'north') AND NOT size == 3",
            "store == 'north' AND store == 'south'",
        ]
        let bad = [
            "size > 3", "TRUEPREDICATE", "store > 'a'", "store == 'north' OR size > 3", "NOT store == 'north'", "store != 'north'",
            "store == 'north' AND size > 3 OR title == 'a'", "store BEGINSWITH 'n'",
        ]
        try await RunningGateway.with { gateway in
            let session = try await gateway.openSession()
            var version: UInt64 = 0
            for text in good {
                version += 1
                try await session.subscribe(version, [("Order", text)])
                #expect(session.completed == version, "\(text)")
            }
            for text in bad {
                version += 1
                try await session.sendSubscribe(version, [("Order", text)])
                try await session.receive { $0.queryErrors.last?.version == version }
                #expect(session.queryErrors.last?.error.code == .queryIndexedFieldMissing, "\(text)")
            }
        }
    }

    @Test func `Scenario 57: a changeset that is sent again takes effect once and is acknowledged again`() async throws {
        try await RunningGateway.with { gateway in
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            let create = TestSession.order("o1", ["store": .string("north"), "size": .int(1)])
            try await session.upload(1, [create])
            try await session.receive { $0.acknowledged == 1 }
            try await gateway.sql("UPDATE orders SET size = 2 WHERE _id = 'o1'")
            try await session.upload(1, [create])
            try await session.upload(2, [TestSession.order("o2", ["store": .string("north"), "size": .int(1)])])
            try await session.receive { $0.acknowledged == 2 }
            #expect(try await gateway.count("SELECT size FROM orders WHERE _id = 'o1'") == 2)
            #expect(session.compensations.isEmpty)
        }
    }

    @Test func `Scenario 61: an error that a client reports is in the log with user and client, and disturbs nothing`() async throws {
        let log = LinesOfLog()
        try await RunningGateway.with(logger: Logger(label: "test") { _ in log }) { gateway in
            let account = try await gateway.account()
            let session = try await gateway.session(token: account.token)
            try await session.hello()
            for number in 0..<100 {
                try await session.send(
                    .reportError(
                        .with {
                            $0.code = 212
                            $0.message = "Column \(number) is unknown." + String(repeating: "x", count: 10_000)
                        }))
            }
            try await session.subscribe(1, [("Order", "store == 'north'")])
            let lines = log.lines.filter { $0.message == "A client reports an error." }
            #expect(lines.count == 16 && lines.allSatisfy { $0.level == .warning && $0.metadata["user"] == "\(account.id)" })
            #expect(lines.allSatisfy { $0.metadata["code"] == "212" && $0.metadata["client"] == "\(session.welcome?.client ?? 0)" })
            #expect(lines.first?.metadata["reason"]?.description.hasPrefix("Column 0 is unknown.xxx") == true)
            #expect(lines.allSatisfy { $0.metadata["reason"]?.description.count == 2_000 })
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            try await session.receive { $0.rows["Order"]?[.string("n1")] != nil }
        }
    }

    @Test func `Scenario 62: a file of another user is not taken, and neither is a wrong secret`() async throws {
        try await RunningGateway.with { gateway in
            let owner = try await gateway.openSession()
            let file = try #require(owner.welcome)
            for (client, secret, code) in [
                (file.client, Array(file.secret), ErrorCode.userMismatch), (file.client, [1, 2, 3], .badClientFile),
                (file.client + 1_000, Array(file.secret), .badClientFile),
            ] {
                let other = try await gateway.session(token: try await gateway.anonymousToken())
                try await other.sendHello(client: client, secret: secret)
                #expect(try await other.failure().code == code)
                // What was written in another user's name is not recovered.
                #expect(other.error?.sessionAction == (code == .userMismatch ? .clientResetNoRecovery : .clientReset))
            }
        }
    }

    @Test func `Scenario 20: a bootstrap says beforehand about how many rows it brings`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(
                """
                INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 5000) AS i;
                INSERT INTO orders (_id, store, size) SELECT 's' || i, 'south', i FROM generate_series(1, 1000) AS i;
                ANALYZE orders
                """)
            let session = try await gateway.openSession()
            for (version, store, rows) in [(UInt64(1), "north", UInt64(5_000)), (2, "south", 1_000)] {
                try await session.subscribe(version, [("Order", "store == '\(store)'")])
                #expect((rows * 9 / 10...rows * 11 / 10).contains(session.expected), "\(session.expected)")
                #expect(session.brought == (Int(rows), 0))
            }
            // What the device has counts as well: its keys are sent.
            try await session.subscribe(3, [("Order", "store IN {'north', 'south'}")])
            #expect((5_400...6_600).contains(session.expected), "\(session.expected)")
            #expect(session.brought.rows + session.brought.kept == 6_000)
        }
    }

    /// A device writes as soon as it hears that its set is live.
    @Test func `what is written right after a bootstrap is judged by the set that it was for`() async throws {
        try await RunningGateway.with { gateway in
            let session = try await gateway.openSession()
            for round: UInt64 in 1...60 {
                try await session.subscribe(round, [("Tag", "title == 'round \(round)'")])
                let object = ObjectKey(type: "Tag", key: .string("tag \(round)"))
                try await session.upload(
                    round, [ObjectChange(object: object, kind: .create, values: ["title": .string("round \(round)")])])
            }
            try await session.receive { $0.acknowledged == 60 }
            #expect(session.compensations.isEmpty)
            #expect(try await gateway.count("SELECT count(*) FROM tags") == 60)
        }
    }

    @Test func `Scenario 33: a change inside of an object is rejected with the object that it is in`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(#"INSERT INTO tags (_id, title, place) VALUES ('t', 'theirs', '{"x": 1, "y": 2}')"#)
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Tag", "title == 'mine'")])
            let key = ObjectKey(type: "Tag", key: .string("t"))
            let edit = Edit("place", [.key("x")], .set(.int(7)))
            try await session.upload(
                1,
                [
                    ObjectChange(object: key, kind: .set, edits: [edit]),
                    ObjectChange(object: ObjectKey(type: "Tag", key: .string("m")), kind: .create, values: ["title": .string("mine")]),
                ])
            try await session.receive { !$0.compensations.isEmpty && $0.acknowledged == 1 }
            #expect(session.compensations.map(\.object) == [key])
            #expect(session.compensations[0].error.code == .compensatingWrite)
            #expect(try await gateway.count("SELECT (place->>'x')::int FROM tags WHERE _id = 't'") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM tags WHERE title = 'mine'") == 1)
        }
    }
}
