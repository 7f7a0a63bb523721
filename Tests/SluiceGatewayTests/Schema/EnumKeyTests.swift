import GatewayTestSupport
import SluiceCore
import SluicePorts
import SluiceValues
import SluiceWire
import Testing

/// A table of a shop whose key is an enum, with the types of a day's times.
@Suite(.timeLimit(.minutes(5))) struct `A table whose keys are the values of an enum` {
    private static let table = """
        CREATE TABLE states (state order_status PRIMARY KEY, owner_id text NOT NULL, opens time, cutoff timetz, lasts interval);
        INSERT INTO states VALUES ('open', 'ann', '8:30', '17:00:00.50+05:30', '36 hours')
        """

    private static let files = ExistingShop.files.merging([
        "data_sources/postgres/public/states/schema.json": """
        {
            "title": "State", "bsonType": "object", "required": ["_id", "ownerId"],
            "properties": {
                "_id": { "bsonType": "string" }, "ownerId": { "bsonType": "string" }, "opens": { "bsonType": "string" },
                "cutoff": { "bsonType": "string" }, "lasts": { "bsonType": "string" }
            },
            "mapping": { "_id": "state", "ownerId": "owner_id" }
        }
        """
    ]) { $1 }

    private static func with(_ body: @escaping @Sendable (ExistingShop, TestSession) async throws -> Void) async throws {
        try await ExistingShop.with { shop in
            try await shop.sql(table)
            try await shop.grant(files: files)
            try await shop.run(files: files) { gateway in
                let session = try await gateway.session(token: try await gateway.anonymousToken())
                try await session.hello(["State"])
                try await session.subscribe(1, [("State", "ownerId == 'ann' AND _id IN {'open', 'paid', 'sent', 'never'}")])
                try await body(shop, session)
                session.close()
            }
        }
    }

    private static func state(_ key: String) -> ObjectKey { ObjectKey(type: "State", key: .string(key)) }

    private static func times(_ session: TestSession, _ key: String) -> [Value?]? {
        session.rows["State"]?[.string(key)].map { row in ["opens", "cutoff", "lasts"].map { row[$0] } }
    }

    @Test func `has the same texts of times in a bootstrap and in the log`() async throws {
        try await Self.with { shop, session in
            let texts: [Value?] = ["08:30:00", "17:00:00.5+05:30", "PT36H"].map { .string($0) }
            #expect(Self.times(session, "open") == texts)
            // Under other settings than the gateway's.
            try await shop.sql(
                """
                SET TimeZone = 'Asia/Kolkata'; SET IntervalStyle = 'postgres_verbose'; SET DateStyle = 'German';
                INSERT INTO states VALUES ('paid', 'ann', '8:30 AM', '17:00-03:15', '1 day -02:00'); RESET ALL
                """)
            try await session.receive { $0.rows["State"]?.count == 2 }
            #expect(Self.times(session, "paid") == ["08:30:00", "17:00:00-03:15", "P1DT-2H"].map { .string($0) })
            try await shop.sql("UPDATE states SET cutoff = '24:00Z' WHERE state = 'open'; DELETE FROM states WHERE state = 'paid'")
            try await session.receive { $0.rows["State"]?.count == 1 && Self.times($0, "open")?[1] == .string("24:00:00+00") }
        }
    }

    @Test func `is written by its keys, and a key that the enum lacks is undone with its values`() async throws {
        try await Self.with { shop, session in
            func create(_ key: String, _ cutoff: String) -> ObjectChange {
                ObjectChange(object: Self.state(key), kind: .create, values: ["ownerId": .string("ann"), "cutoff": .string(cutoff)])
            }
            try await session.upload(1, [create("paid", "8:30")])
            try await session.receive { $0.acknowledged == 1 && $0.compensations.count == 1 }
            #expect(
                session.compensations[0].error.message.contains(
                    "State.cutoff cannot be \"8:30\". Its values are each a time with an offset"),
                "\(session.compensations)")
            try await session.upload(2, [create("sent", "08:30+02:00")])
            try await session.receive { $0.acknowledged == 2 && Self.times($0, "sent")?[1] == .string("08:30:00+02") }
            try await session.upload(3, [create("never", "08:30Z")])
            try await session.receive { $0.acknowledged == 3 && $0.compensations.count == 2 }
            #expect(
                session.compensations[1].error.message.contains("State._id cannot be \"never\". Its values are open, paid, sent."),
                "\(session.compensations)")
            try await session.upload(
                4,
                [
                    ObjectChange(object: Self.state("open"), kind: .set, values: ["lasts": .string("PT90M")]),
                    ObjectChange(object: Self.state("sent"), kind: .delete),
                ])
            try await session.receive { $0.acknowledged == 4 && Self.times($0, "open")?[2] == .string("PT1H30M") }
            #expect(try await shop.texts("SELECT state || ' ' || lasts FROM states") == ["open PT1H30M"])
            // A value that the enum has got since is a key at once.
            try await shop.sql("ALTER TYPE order_status ADD VALUE 'never'")
            try await session.upload(5, [create("never", "08:30Z")])
            try await session.receive { $0.acknowledged == 5 && Self.times($0, "never")?[1] == .string("08:30:00+00") }
        }
    }
}
