import GatewayTestSupport
import SluiceCore
import SluiceValues
import SluiceWire
import Testing

/// Why writes are undone, as programs are told, and what is kept of them.
@Suite(.timeLimit(.minutes(5))) struct `Causes of undone writes` {
    /// A write that is refused.
    private struct Refused {
        var change: ObjectChange
        var cause: RejectionCause
        var reason: String
        var fields: [String] = []
        /// A word of what decided, for operators.
        var rule: String
    }

    /// Uploads each alone, and looks at what the client is told and at what is kept.
    private static func check(_ writes: [Refused], _ session: TestSession, _ gateway: RunningGateway) async throws {
        for (index, write) in writes.enumerated() {
            try await session.upload(UInt64(index) + 1, [write.change])
            try await session.receive { $0.acknowledged == UInt64(index) + 1 && $0.compensations.count > index }
            let told = try #require(session.compensations.last)
            #expect(session.compensations.count == index + 1)
            #expect(told.object == write.change.object && told.changeset == UInt64(index) + 1)
            #expect(told.error.code == .compensatingWrite && told.error.message == write.reason, "\(told)")
            #expect(told.cause == write.cause && told.fields == write.fields && told.values == write.change.values, "\(told)")
            let kept = try await gateway.texts(
                """
                SELECT concat_ws(' | ', code, type, cause, fields, reason, values->>'text', values->>'name') FROM sluice.rejected_write
                ORDER BY id DESC LIMIT 1
                """)
            let names = write.fields.map { "\"\($0)\"" }.joined(separator: ", ")
            let texts = ["text", "name"].compactMap { name in
                if case .string(let text)? = write.change.values[name] { " | \(text)" } else { nil }
            }
            #expect(
                kept == [
                    "231 | \(write.change.object.type) | \(write.cause.rawValue) | [\(names)] | \(write.reason)\(texts.joined())"
                ])
            let rule = try await gateway.texts("SELECT rule FROM sluice.rejected_write ORDER BY id DESC LIMIT 1")
            #expect(rule.first?.contains(write.rule) == true, "\(rule)")
        }
        #expect(session.error == nil)
    }

    private static func role(_ more: String) -> String { #"[{ "name": "r", "apply_when": {}, \#(more) }]"# }

    @Test func `Scenario 30: roles and views are named, with the fields at fault`() async throws {
        let whole = #""read": true, "write": true"#
        let both = #""document_filters": { "read": true, "write": true }"#
        let roles = [
            "Fixed": Self.role(#"\#(both), \#(whole), "insert": false, "delete": false"#),
            "Red": Self.role(
                #""document_filters": { "read": true, "write": { "team": "red" } }, \#(whole), "insert": true, "delete": true"#),
            "Part": Self.role(
                #"\#(both), "insert": true, "delete": true, "fields": { "secret": { "read": true, "write": false } }, "#
                    + #""additional_fields": { "read": true, "write": true }"#),
            "Other": "[\(NoteApp.role("r"))]",
        ]
        try await NoteApp.with(roles) { gateway in
            for name in roles.keys.sorted() {
                try await gateway.sql(#"INSERT INTO "\#(name)" (_id, owner_id, team, text) VALUES ('b', 'x', 'blue', 'theirs')"#)
            }
            // One that the role may write as it is, and one that is outside of the view.
            try await gateway.sql(#"INSERT INTO "Red" (_id, owner_id, team, text) VALUES ('r', 'x', 'red', 'theirs')"#)
            try await gateway.sql(#"INSERT INTO "Part" (_id, owner_id, team, text) VALUES ('g', 'x', 'green', 'theirs')"#)
            let session = try await gateway.session(token: try await gateway.anonymousToken())
            try await session.hello(roles.keys.sorted())
            try await session.subscribe(
                1, [("Fixed", "TRUEPREDICATE"), ("Red", "team IN {'red', 'blue'}"), ("Part", "team == 'blue'")])
            let made: [String: Value] = ["owner_id": .string("me"), "team": .string("blue"), "text": .string("wanted")]
            func secret(_ values: [String: Value]) -> [String: Value] { values.merging(["secret": .string("s")]) { $1 } }
            try await Self.check(
                [
                    Refused(
                        change: NoteApp.change("Other", "a", made, .create), cause: .noSubscription,
                        reason: #"No subscription is open for class Other; the write to Other "a" was undone."#, rule: "no subscription"),
                    Refused(
                        change: NoteApp.change("Fixed", "a", made, .create), cause: .insert,
                        reason: #"Not allowed to create Fixed "a"; the write was undone."#, rule: "role r, insert"),
                    Refused(
                        change: NoteApp.change("Fixed", "b", [:], .delete), cause: .delete,
                        reason: #"Not allowed to delete Fixed "b"; the write was undone."#, rule: "role r, delete"),
                    Refused(
                        change: NoteApp.change("Red", "b", ["text": .string("wanted")]), cause: .writeRule,
                        reason: #"Not allowed to write Red "b"; the write was undone."#, rule: "role r, write, not met: team"),
                    Refused(
                        change: NoteApp.change("Red", "a", made, .create), cause: .writeRule,
                        reason: #"Not allowed to write Red "a"; the write was undone."#, rule: "role r, write, not met: team"),
                    Refused(
                        change: NoteApp.change("Part", "b", secret(["text": .string("wanted")])), cause: .fields,
                        reason: #"Not allowed to write field secret of Part "b"; the write was undone."#, fields: ["secret"],
                        rule: "role r, writable fields without secret"),
                    Refused(
                        change: NoteApp.change("Part", "a", secret(made), .create), cause: .fields,
                        reason: #"Not allowed to write field secret of Part "a"; the write was undone."#, fields: ["secret"],
                        rule: "role r, writable fields without secret"),
                    Refused(
                        change: NoteApp.change("Red", "r", ["team": .string("blue"), "text": .string("wanted")]), cause: .writeRule,
                        reason: #"Not allowed to write Red "r"; the write was undone."#, rule: "role r, write, not met: team"),
                    Refused(
                        change: NoteApp.change("Part", "c", made.merging(["team": .string("red")]) { $1 }, .create), cause: .outsideView,
                        reason: #"Part "c" is outside of the current query view; the write was undone."#, rule: "the view, not met: team"),
                    Refused(
                        change: NoteApp.change("Part", "g", ["text": .string("wanted")]), cause: .outsideView,
                        reason: #"Part "g" is outside of the current query view; the write was undone."#, rule: "the view, not met: team"),
                ], session, gateway)
            // Nothing of it is there.
            for name in roles.keys.sorted() {
                let rows = try await gateway.texts(#"SELECT concat_ws(' ', _id, team, text, secret) FROM "\#(name)" ORDER BY 1"#)
                let more = ["Red": ["r red theirs"], "Part": ["g green theirs"]][name] ?? []
                #expect(rows == ["b blue theirs"] + more)
            }
            session.close()
        }
    }

    @Test func `Scenario 30: a plugin's denial is told from its failure, and neither says how the rules are built`() async throws {
        try await RunningGateway.with(files: FaultyApp.files, plugins: ["FaultyC"], isDevelopment: true) { gateway in
            let session = try await gateway.openSession(["Store", "Reading"])
            try await session.subscribe(1, [("Store", "TRUEPREDICATE")])
            func store(_ word: String) -> ObjectChange {
                NoteApp.change("Store", word, ["name": .string(word), "size": .int(5)], .create)
            }
            let unasked = "The rules of the server could not be asked about this write, so it was undone."
            try await Self.check(
                [
                    Refused(
                        change: store("do-deny"), cause: .plugin, reason: "FaultyC refused: not today", rule: "plugin-refused (504)"),
                    Refused(change: store("do-fail"), cause: .pluginFailed, reason: unasked, rule: "plugin-failed (510)"),
                    Refused(change: store("do-garbage"), cause: .pluginFailed, reason: unasked, rule: "plugin-bad-answer (505)"),
                    Refused(change: store("do-crash"), cause: .pluginFailed, reason: unasked, rule: "plugin-crashed (502)"),
                ], session, gateway)
            #expect(try await gateway.count("SELECT count(*) FROM stores") == 0)
            session.close()
        }
    }

    @Test func `Scenario 30: a class that is only sent is not written otherwise`() async throws {
        try await RunningGateway.with { gateway in
            let session = try await gateway.openSession(["Order", "Reading"])
            let object = ObjectKey(type: "Reading", key: .string("r"))
            let values: [String: Value] = ["store": .string("north"), "value": .double(1.5)]
            try await session.upload(1, [ObjectChange(object: object, kind: .create, values: values)])
            try await session.receive { $0.acknowledged == 1 && $0.compensations.count == 1 }
            let told = try #require(session.compensations.first)
            #expect(told.error.code == .writeNotAllowed && told.cause == .notWritten && told.fields.isEmpty, "\(told)")
            #expect(told.error.message == "Class Reading cannot be written through changesets." && told.values == values)
            let kept = try await gateway.texts("SELECT concat_ws(' ', code, cause, values->>'store') FROM sluice.rejected_write")
            #expect(kept == ["230 not_written north"])
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
            session.close()
        }
    }

    @Test func `Scenario 30: keys are told by type, ObjectId and UUID in its name, strings quoted, integers bare`() async throws {
        let kinds: [(type: String, bson: String, column: String, key: Value, text: String)] = [
            ("Whole", "long", "bigint", .int(-7), "-7"), ("Text", "string", "text", .string("k"), #""k""#),
            ("Mark", "objectId", "text", .objectId(ObjectIdentifierBytes(high: 1, low: 2)), #"ObjectID("000000000000000100000002")"#),
            ("Name", "uuid", "uuid", .uuid(UUIDBytes(high: 1, low: 2)), #"UUID("00000000-0000-0001-0000-000000000002")"#),
        ]
        var files = NoteApp.files([:], defaults: "[\(NoteApp.role("everybody"))]")
        for kind in kinds {
            files[ShopApp.table(kind.type, "schema")] = """
                {
                    "title": "\(kind.type)", "bsonType": "object", "required": ["_id", "team"],
                    "properties": { "_id": { "bsonType": "\(kind.bson)" }, "team": { "bsonType": "string" } }
                }
                """
        }
        let tables = kinds.map { #"CREATE TABLE "\#($0.type)" (_id \#($0.column) PRIMARY KEY, team text NOT NULL);"# }.joined()
        try await RunningGateway.deploy(tables) { [files] deployment in
            try await deployment.run(files) { gateway in
                let session = try await gateway.openSession(kinds.map(\.type))
                try await session.subscribe(1, kinds.map { ($0.type, "team == 'red'") })
                let changes = kinds.map {
                    ObjectChange(object: ObjectKey(type: $0.type, key: $0.key), kind: .create, values: ["team": .string("blue")])
                }
                try await session.upload(1, changes)
                try await session.receive { $0.acknowledged == 1 }
                #expect(session.compensations.map(\.object) == changes.map(\.object))
                #expect(
                    session.compensations.map(\.error.message)
                        == kinds.map { "\($0.type) \($0.text) is outside of the current query view; the write was undone." })
                session.close()
            }
        }
    }
}
