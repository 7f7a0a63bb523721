import GatewayTestSupport
import Logging
import SluiceCore
import SluiceValues
import SluiceWire
import Testing

/// Undone writes that a device has not noted, as a device makes them that never says that it has.
@Suite(.timeLimit(.minutes(5))) struct `Undone writes that a device has not noted` {
    private static func insert(_ count: Int, of client: UInt64, bytes: Int, apart: Bool) -> String {
        """
        INSERT INTO sluice.rejected_write (compensation, client, changeset, type, key, key_value, code, reason, values)
        SELECT \(apart ? "nextval('sluice.compensation')" : "last"), \(client), 1, 'Order', 'k' || g, to_jsonb('k' || g), 231, 'no',
            jsonb_build_object('title', repeat('x', \(bytes)))
        FROM generate_series(1, \(count)) g, (SELECT nextval('sluice.compensation') AS last) one
        """
    }

    private static func comeBack(_ gateway: RunningGateway, _ token: String, as file: (UInt64, [UInt8])) async throws -> TestSession {
        let session = try await gateway.session(token: token)
        try await session.sendHello(client: file.0, secret: file.1)
        try await session.receive { $0.welcome != nil }
        return session
    }

    private static func leave(_ gateway: RunningGateway, _ token: String) async throws -> (UInt64, [UInt8]) {
        let session = try await gateway.session(token: token)
        try await session.hello()
        let welcome = try #require(session.welcome)
        session.close()
        return (welcome.client, Array(welcome.secret))
    }

    @Test func `are told when it comes back, all and once, however many bytes they have`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let file = try await Self.leave(gateway, token)
            try await gateway.sql(Self.insert(12, of: file.0, bytes: 1_000_000, apart: true))
            try await gateway.sql(Self.insert(30, of: file.0 + 1, bytes: 10, apart: true))
            let session = try await Self.comeBack(gateway, token, as: file)
            try await session.receive { $0.compensations.count >= 12 }
            try await session.subscribe(1, [("Order", "store == 'north'")])
            #expect(session.compensations.map(\.object.key) == (1...12).map { Value.string("k\($0)") })
            #expect(session.error == nil)
        }
    }

    @Test func `keep it from writing more when they are too many, until it notes them`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let file = try await Self.leave(gateway, token)
            try await gateway.sql(Self.insert(Limits.untoldObjects + 1, of: file.0, bytes: 1, apart: false))
            let write = [TestSession.order("new", ["store": .string("north"), "size": .int(1)])]
            for number in 0..<2 {
                let session = try await Self.comeBack(gateway, token, as: file)
                try await session.receive { $0.compensations.count > Limits.untoldObjects }
                try await session.subscribe(1, [("Order", "store == 'north'")])
                let last = try #require(try await gateway.count("SELECT max(compensation) FROM sluice.rejected_write"))
                try await session.upload(1, write, noted: number == 0 ? 0 : UInt64(last))
                if number == 0 {
                    let error = try await session.failure()
                    #expect(error.code == .resync && error.message.contains("more than 100000 objects"), "\(error)")
                    #expect(session.error?.action == .transient)
                    #expect(try await gateway.count("SELECT count(*) FROM orders") == 0)
                } else {
                    try await session.receive { $0.acknowledged == 1 }
                    #expect(try await gateway.count("SELECT count(*) FROM orders") == 1)
                }
            }
        }
    }

    @Test func `are in the log with the key of the first`() async throws {
        let log = LinesOfLog()
        try await RunningGateway.with(logger: Logger(label: "test") { _ in log }) { gateway in
            let session = try await gateway.session(token: try await gateway.anonymousToken())
            try await session.hello()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            let changes = ["far\n", "further"].map { TestSession.order($0, ["store": .string("south"), "size": .int(1)]) }
            try await session.upload(1, changes)
            try await session.receive { $0.compensations.count == 2 }
            await log.wait(for: "Writes were undone.")
            let line = try #require(log.lines.first { $0.message == "Writes were undone." })
            #expect(line.metadata["type"] == "Order" && line.metadata["key"] == #""far\n""# && line.metadata["count"] == "2")
        }
    }

    @Test func `are in the log and in the database with who wrote, and the clause of the role that was not met`() async throws {
        let role = NoteApp.role("member", write: #"{ "team": "%%user.custom_data.team", "owner_id": "%%user.id" }"#)
        let log = LinesOfLog()
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            let logger = Logger(label: "test") { _ in log }
            try await deployment.run(NoteApp.files(["Note": "[\(role)]"]), logger: logger) { gateway in
                let ann = try await gateway.account(customData: #"{ "team": "red" }"#)
                let session = try await gateway.session(token: ann.token)
                try await session.hello(["Note"])
                try await session.subscribe(1, [("Note", "TRUEPREDICATE")])
                let values: [String: Value] = ["owner_id": .string(ann.id), "team": .string("blue")]
                #expect(try await session.isRefused(1, NoteApp.change("Note", "a", values, .create)))
                let rule = #"role member, write, not met: team == "red""#
                await log.wait(for: "Writes were undone.")
                let said = try #require(log.lines.first { $0.message == "Writes were undone." }?.metadata)
                let wanted = [
                    "user": ann.id, "client": "\(session.welcome?.client ?? 0)", "type": "Note", "key": #""a""#, "changeset": "1",
                    "rule": rule,
                ]
                for (name, value) in wanted { #expect(said[name]?.description == value, "\(name) of \(said)") }
                #expect(said["reason"]?.description == session.compensations.first?.error.message)
                // What the user is told does not say how the rules are built.
                #expect(session.compensations.first?.error.message.contains("red") == false)
                let kept = """
                    SELECT concat_ws(' | ', user_id, type, key_value #>> '{}', rule)
                    FROM sluice.rejected_write JOIN sluice.client ON sluice.client.id = client
                    """
                #expect(try await gateway.texts(kept) == ["\(ann.id) | Note | a | \(rule)"])
                let why = try await gateway.request("GET", "/admin/v1/why?user=\(ann.id)&type=Note&id=a", admin: true).json
                let writes = try #require(why["refused_writes"]?.array)
                #expect(writes.map { $0["rule"]?.string } == [rule] && writes.first?["code"]?.int == 231, "\(why.text)")
                session.close()
            }
        }
    }
}
