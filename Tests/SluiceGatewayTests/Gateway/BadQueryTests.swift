import SluiceCore
import Testing

/// A bad subscription set fails its version alone: the view before stays, and a later good set completes.
@Suite struct `A gateway that is sent bad queries` {
    private static let cases: [(type: String, query: String, code: ErrorCode)] = [
        ("Order", "size >>> 3", .querySyntax),
        ("Order", "store == 'north' AND", .querySyntax),
        ("Order", "store == 'north' AND weight > 3", .queryUnknownProperty),
        ("Order", "store == 'north' AND size == 'large'", .queryTypeMismatch),
        ("Order", "store == 'north' AND secret == 'x'", .queryNotQueryable),
        ("Order", "size > 3", .queryIndexedFieldMissing),
        ("Order", "store == 'north' SORT(size ASC)", .querySort),
        ("Order", "store == 'north' LIMIT(3)", .queryLimit),
        ("Order", "store == 'north' DISTINCT(title)", .queryDistinct),
        ("Order", "store == 'north' AND title == store", .queryTwoFields),
        ("Nonsense", "TRUEPREDICATE", .querySubscribedTypeUnknown),
        ("Reading", "TRUEPREDICATE", .queryAsymmetric),
        ("Order", "store == 'north' AND title == '" + String(repeating: "x", count: Limits.queryBytes) + "'", .queryTooLarge),
        (
            "Order", "store == 'north' AND " + String(repeating: "(", count: 200) + "size == 1" + String(repeating: ")", count: 200),
            .querySyntax
        ),
    ]

    @Test func `Scenarios 1, 6, 7: tells which version failed and why, keeps the view, and takes a later set`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('s1', 'south', 1)")
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession(["Order", "Tag", "Reading"])
                try await session.subscribe(1, [("Order", "store == 'north'")])
                #expect(session.keys("Order") == ["n1"])
                var version: UInt64 = 1
                for bad in Self.cases {
                    version += 1
                    try await session.sendSubscribe(version, [(bad.type, bad.query)])
                    try await session.receive { $0.queryErrors.last?.version == version }
                    #expect(session.queryErrors.last?.error.code == bad.code, "\(bad.query.prefix(80))")
                    #expect(session.completed == 1)
                }
                // The view of version 1 is live.
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n2', 'north', 1), ('s2', 'south', 1)")
                try await session.receive { $0.keys("Order") == ["n1", "n2"] }
                try await session.subscribe(version + 1, [("Order", "store == 'south' AND size == 1")])
                #expect(session.keys("Order") == ["s1", "s2"])
            }
        }
    }

    @Test func `Scenario 7: a set may have so many bytes of queries together, however many they are`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            /// Three queries, none of which is too large.
            func set(of bytes: Int) -> [(type: String, text: String)] {
                let sizes = [bytes / 3, bytes / 3, bytes - bytes / 3 * 2]
                return sizes.map { size in
                    let head = "store == 'south' AND title == '"
                    return ("Order", head + String(repeating: "x", count: size - head.utf8.count - 1) + "'")
                }
            }
            try await session.sendSubscribe(2, set(of: Limits.queryBytes + 1))
            try await session.receive { !$0.queryErrors.isEmpty }
            let error = try #require(session.queryErrors.first)
            #expect(error.version == 2 && error.error.code == .queryTooLarge, "\(error)")
            #expect(error.error.message.contains("\(Limits.queryBytes + 1) bytes"), "\(error.error)")
            #expect(session.completed == 1 && session.keys("Order") == ["n1"])
            try await session.subscribe(3, set(of: Limits.queryBytes))
            #expect(session.keys("Order").isEmpty)
            session.close()
        }
    }

    @Test func `goes on with the bootstrap under way`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || g, 'north', g FROM generate_series(1, 20000) g")
            let session = try await gateway.openSession()
            try await session.sendSubscribe(1, [("Order", "store == 'north'")])
            try await session.sendSubscribe(2, [("Order", "size >>> 3")])
            try await session.receive { $0.completed == 1 && $0.queryErrors.map(\.version) == [2] }
            #expect(session.keys("Order").count == 20_000)
            session.close()
        }
    }
}
