import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceRealm
import SluiceTools
import SluiceValues
import Testing

/// Exports of five styles, from the check to a user who works with the app.
@Suite(.timeLimit(.minutes(5))) struct `A migrated app` {
    static let ada = "64a000000000000000000001"
    static let ben = "64a000000000000000000002"
    static let eve = "64a000000000000000000003"

    static func user(_ id: String, customData: JSON? = nil, isDisabled: Bool = false) -> JSON {
        MigratedExport.user(id, "\(name(id))@example.com", customData: customData, isDisabled: isDisabled)
    }

    private static func name(_ id: String) -> String { id == ada ? "ada" : id == ben ? "ben" : "eve" }

    private static func logIn(_ id: String, _ app: MigratedExport.Moved) async throws -> String {
        try await app.logIn(id, "\(name(id))@example.com")
    }

    private static func change(_ type: String, _ key: String, _ values: [String: Value]) -> ObjectChange {
        NoteApp.change(type, key, values, .create)
    }

    // MARK: A task tracker

    /// Each user has tasks of their own, by user id.
    @Test func `shows each user's own tasks`() async throws {
        try await Self.tracker.move { app in
            // A disabled user gets no link.
            #expect(app.credentials.map { $0["subject"]?.string } == [Self.ada, Self.ben])
            let session = try await app.session(try await Self.logIn(Self.ada, app), ["Task"])
            #expect(session.keys("Task") == Set((0..<40).filter { $0 % 2 == 0 }.map { "t\($0)" }))
            let mine: [String: Value] = ["owner_id": .string(Self.ada), "summary": .string("new"), "isDone": .bool(false)]
            #expect(try await !session.isRefused(1, Self.change("Task", "mine", mine)))
            try await session.receive { $0.keys("Task").contains("mine") }
            #expect(try await session.isRefused(2, Self.change("Task", "theirs", mine.merging(["owner_id": .string(Self.ben)]) { $1 })))
            #expect(try await app.gateway.texts("SELECT _id FROM todo.\"Task\" WHERE _id IN ('mine', 'theirs')") == ["mine"])
            session.close()
        }
    }

    // MARK: Teams

    /// A partition is a team, and the team of a user is in the custom data. The client has a Realm SDK.
    @Test func `shows a Realm client the objects of the user's team`() async throws {
        try await Self.teams.move { app in
            #expect(try await app.gateway.texts("SELECT team FROM work.people ORDER BY _id") == ["red", "blue"])
            for (id, team) in [(Self.ada, "red"), (Self.ben, "blue")] {
                let client = RealmTestClient(app.schema)
                try await client.connect(app.gateway.url, app: app.gateway.app, token: try await Self.logIn(id, app))
                // What the app opened as realms of partitions is a subscription now. It asks for more than the user may see.
                try await client.subscribe(["Job": "_partition IN {'red', 'blue', 'PUBLIC'}"])
                let partitions = Set(client.file.objects.values.compactMap { $0["_partition"] })
                #expect(client.file.objects.count == 20 && partitions == [.string(team), .string("PUBLIC")])
                try await client.write(Self.job("\(team)-new", team))
                try await client.synchronize()
                try await client.write(Self.job("\(team)-public", "PUBLIC"))
                let undone = ObjectKey(type: "Job", key: .string("\(team)-public"))
                try await client.receive { $0.compensations.count == 1 && $0.objects[undone] == nil }
                #expect(client.file.compensations.count == 1 && client.file.error == nil)
                client.disconnect()
            }
            #expect(try await app.gateway.texts("SELECT _id FROM work.jobs WHERE _id NOT LIKE 'j%' ORDER BY 1") == ["blue-new", "red-new"])
        }
    }

    private static func job(_ key: String, _ partition: String) -> [RealmInstruction] {
        let object = ObjectKey(type: "Job", key: .string(key))
        return [
            .createObject(object), .update(RealmPath(object, "_partition"), .value(.string(partition))),
            .update(RealmPath(object, "size"), .value(.int(1))),
        ]
    }

    // MARK: A hierarchy

    /// Functions take partition values such as "user=…" and "team=…" apart. Roles compare the whole value.
    @Test func `has the roles that functions decided on`() async throws {
        try await Self.hierarchy.move { app in
            let all = "realm_id IN {'user=\(Self.ada)', 'user=\(Self.ben)', 'team=a', 'team=b', 'team=c', 'PUBLIC'}"
            let director = try await app.session(try await Self.logIn(Self.ada, app), ["Report"], all)
            #expect(director.keys("Report").count == 6)
            let member = try await app.session(try await Self.logIn(Self.ben, app), ["Report"], all)
            #expect(member.keys("Report") == ["of user=\(Self.ben)", "of team=a", "of team=b"])
            #expect(try await !member.isRefused(1, Self.change("Report", "new", ["realm_id": .string("team=b")])))
            #expect(try await member.isRefused(2, Self.change("Report", "wrong", ["realm_id": .string("team=c")])))
            // A director reads everything and writes their own.
            try await director.receive { $0.keys("Report").contains("new") }
            #expect(try await director.isRefused(1, Self.change("Report", "of team=a", ["text": .string("changed")])))
            // A change of the custom data reaches the open session.
            try await app.gateway.sql("UPDATE firm.people SET teams = '{c}' WHERE role = 'member'")
            try await member.receive { $0.keys("Report") == ["of user=\(Self.ben)", "of team=c"] }
            director.close()
            member.close()
        }
    }

    // MARK: Devices

    /// Devices log in with API keys, and send readings that no client receives.
    @Test func `takes the readings of devices with new keys`() async throws {
        try await Self.devices.move { app in
            let line = try #require(app.credentials.first { $0["kind"] == "api-key" })
            #expect(line["subject"] == "64c000000000000000000001" && line["name"] == "gauge-1" && line["server"] == true)
            let key: JSON = ["key": line["key"] ?? .null]
            let login = try await app.gateway.request(
                "POST", "/api/client/v2.0/app/\(app.gateway.app)/auth/providers/api-key/login", key.text)
            #expect(login.json["user_id"] == "64b000000000000000000001", "\(login)")
            let session = try await app.session(try #require(login.json["access_token"]?.string), ["Sensor"])
            #expect(session.keys("Sensor") == ["s-north"])
            try await session.ingest(
                1,
                [
                    Self.change("Reading", "new", ["site": .string("north"), "value": .double(1)]),
                    Self.change("Reading", "wrong", ["site": .string("south"), "value": .double(1)]),
                ])
            #expect(session.ingested.refused.count == 1, "\(session.ingested)")
            let hasArrived = try await app.gateway.eventually("SELECT count(*) FROM iot.readings WHERE _id = 'new'", is: 1)
            #expect(hasArrived)
            #expect(try await app.gateway.count("SELECT count(*) FROM iot.readings WHERE _id = 'wrong'") == 0)
            #expect(try await session.isRefused(1, Self.change("Sensor", "mine", ["site": .string("north")])))
            session.close()
        }
    }

    // MARK: A catalogue

    /// The app lived in development mode: the classes come from the data. Everybody reads, and no one writes.
    @Test func `shows a catalogue whose classes were inferred, and undoes writes`() async throws {
        try await Self.catalogue.move { app in
            let product = try #require(app.schema["products"])
            #expect(product["kind"]?.type == .link(to: "kinds") && product["price"]?.type == .double)
            #expect(product["stock"]?.collection == .dictionary && product["maker"]?.type == .embedded("products_maker"))
            #expect(app.report.text.contains("cannot log in: 1 with anon-user only"), "\(app.report.text)")
            let session = try await app.session(try await Self.logIn(Self.eve, app), ["products", "kinds"])
            #expect(session.keys("products").count == 60 && session.rows["kinds"]?.count == 4)
            let row = try #require(session.rows["products"]?[.string("p3")])
            #expect(row["price"] == .double(3.5) && row["kind"] == .objectId(ObjectIdentifierBytes(high: 5, low: 3)))
            #expect(row["stock"] == .dictionary(["shop3": .int(3), "shop4": .int(0)]))
            #expect(try await session.isRefused(1, Self.change("products", "p3", ["price": .double(0)])))
            #expect(try await app.gateway.texts("SELECT price FROM store.products WHERE _id = 'p3'") == ["3.5"])
            session.close()
        }
    }
}
