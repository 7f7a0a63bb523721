import GatewayTestSupport
import SluiceCore
import SluicePostgres
import Testing

/// Changes inside of values, from one session through PostgreSQL to another.
@Suite struct `Edits of two sessions and SQL` {
    private static let object = ObjectKey(type: "Tag", key: .string("t"))
    private static func edit(_ edits: Edit...) -> [ObjectChange] { [ObjectChange(object: object, kind: .set, edits: edits)] }

    private static func texts(_ texts: String...) -> Value { .list(texts.map { .string($0) }) }
    private static func listed(_ index: Int, _ text: String) -> ElementRef { .listed(index, ValueHash(.string(text))) }

    private static func sessions(_ gateway: RunningGateway) async throws -> (TestSession, TestSession) {
        let (one, two) = (try await gateway.openSession(), try await gateway.openSession())
        try await one.subscribe(1, [("Tag", "TRUEPREDICATE")])
        try await two.subscribe(1, [("Tag", "TRUEPREDICATE")])
        try await one.upload(1, [ObjectChange(object: object, kind: .create, values: ["labels": texts("a", "b", "c")])])
        for session in [one, two] { try await session.receive { $0.rows["Tag"]?[.string("t")] != nil } }
        return (one, two)
    }

    @Test func `keep both sides' elements, fields and moves, and reach both`() async throws {
        try await RunningGateway.with { gateway in
            let (one, two) = try await Self.sessions(gateway)
            let end = Self.listed(2, "c")
            let make = Edit("place", .become(.object))
            try await one.upload(
                2, Self.edit(Edit("labels", .insert(.string("one"), after: end, tag: 1)), make, Edit("place", [.key("x")], .set(.int(1)))))
            let move = Edit("labels", [.element(Self.listed(0, "a"))], .move(after: Self.listed(1, "b"), tag: 2))
            try await two.upload(
                1,
                Self.edit(
                    Edit("labels", .insert(.string("two"), after: end, tag: 1)), move, make, Edit("place", [.key("y")], .set(.int(2)))))
            try await one.receive { $0.acknowledged == 2 }
            try await two.receive { $0.acknowledged == 1 }
            let place = Value.dictionary(["x": .int(1), "y": .int(2)])
            for session in [one, two] {
                try await session.receive { $0.rows["Tag"]?[.string("t")]?["place"] == place }
                #expect(session.rows["Tag"]?[.string("t")]?["labels"] == Self.texts("b", "a", "c", "one", "two"))
            }
            // An SQL statement overwrites the list; who has seen it edits it by its own places.
            let connection = try await PostgresConnection.connect(gateway.conninfo)
            try await connection.execute("UPDATE tags SET labels = '{s,t}'")
            try await one.receive { $0.rows["Tag"]?[.string("t")]?["labels"] == Self.texts("s", "t") }
            try await one.upload(3, Self.edit(Edit("labels", [.element(Self.listed(1, "t"))], .set(.string("T")))))
            for session in [one, two] {
                try await session.receive { $0.rows["Tag"]?[.string("t")]?["labels"] == Self.texts("s", "T") }
            }
            // The log may bring a commit an instant before other transactions see it; the acknowledgement comes after it is seen.
            try await one.receive { $0.acknowledged == 3 }
            let stored = try await connection.query("SELECT labels, place->>'y' FROM tags")
            #expect(stored[0, 0] == "{s,T}" && stored[0, 1]?.contains("2") == true)
            await connection.close()
        }
    }

    @Test func `are refused as a contradiction when they treat a value as what it is not, and nothing is written`() async throws {
        try await RunningGateway.with { gateway in
            let (one, _) = try await Self.sessions(gateway)
            try await one.upload(2, Self.edit(Edit("labels", [.element(.seen(0))], .remove, priorSize: 7)))
            #expect(try await one.failure().code == .badChangeset)
        }
    }
}
