import SluiceCore
import SluicePorts
import SluiceValues
import Testing

/// What App Services' format has beyond the usual role.
@Suite struct `Roles as exports have them` {
    private static let filters = #""document_filters": {"read": true, "write": true}"#

    private static func role(_ members: String, when: String = "true", name: String = "r") -> String {
        #"{"name": "\#(name)", "apply_when": \#(when), \#(filters), \#(members)}"#
    }

    private static let all = #""read": true, "write": true"#

    private func verdicts(_ app: App, _ writes: [(before: [String: Value]?, after: [String: Value]?)]) async throws -> [String] {
        let proposed = writes.map { before, after in
            let operation: SluiceCore.Operation = before == nil ? .insert : after == nil ? .delete : .update
            return ProposedWrite(type: App.task, operation: operation, before: before, after: after)
        }
        return try await app.verdicts(on: proposed, by: user("ann")).map {
            switch $0 {
            case .allow: "allowed"
            case .deny(_, let rule, _): rule.replacing("plugin AppServicesRules, role r, ", with: "")
            case .undecided(let error): "\(error)"
            case .amend: "amended"
            }
        }
    }

    // MARK: insert and delete

    @Test func `insert and delete may depend on queryable fields`() async throws {
        let app = App(
            roles: "[\(Self.role(Self.all + #", "insert": {"owner_id": "%%user.id"}, "delete": {"size": {"$lt": 5}, "open": false}"#))]")
        let plan = try await app.task(for: user("ann"))
        #expect(plan == TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "r", checkWrite: true))
        let ann: [String: Value] = ["owner_id": .string("ann"), "size": .int(4), "open": .bool(false)]
        let bob: [String: Value] = ["owner_id": .string("bob"), "size": .int(9), "open": .bool(false)]
        let null: [String: Value] = ["owner_id": .null, "size": .null, "open": .null]
        let said = try await verdicts(
            app, [(nil, ann), (nil, bob), (nil, null), (ann, nil), (bob, nil), (null, nil), (bob, ann), (ann, bob)])
        #expect(said == ["allowed", "insert", "insert", "allowed", "delete", "delete", "allowed", "allowed"])
    }

    @Test func `insert that holds for nobody of the session is known when it starts`() async throws {
        let app = App(roles: "[\(Self.role(Self.all + #", "insert": {"owner_id": "%%user.custom_data.alias"}, "delete": true"#))]")
        #expect(try await !app.task(for: user("ann")).insert)
        #expect(try await app.task(for: user("ann", #"{"alias": "a"}"#)).insert)
    }

    @Test(arguments: [
        (#"{"collaborators": "%%user.id"}"#, [true, false, false]), (#"{"collaborators": {"$exists": true}}"#, [true, true, false]),
        (#"{"collaborators": {"$nin": ["ann", "eve"]}}"#, [false, true, true]), (#"{"size": {"$ne": 3}}"#, [false, true, true]),
        (#"{"size": {"$in": [3, 4]}}"#, [true, false, false]), (#"{"$nor": [{"size": 3}]}"#, [false, true, true]),
        // A user's value of another type is compared with nothing.
        (#"{"team": {"$ne": "%%user.custom_data.level"}}"#, [false, false, false]),
        (#"{"team": {"$nin": "%%user.custom_data.levels"}}"#, [false, false, false]),
        (#"{"ref": {"%stringToOid": "507f1f77bcf86cd799439011"}}"#, [true, false, false]),
        (#"{"day": {"$gt": {"$date": "2024-01-01T00:00:00Z"}}}"#, [true, false, false]),
    ])
    func `insert comes to what the same filter comes to`(insert: String, allowed: [Bool]) async throws {
        let app = App(roles: "[\(Self.role(Self.all + #", "insert": \#(insert)"#))]")
        let id = try #require(ObjectIdentifierBytes(hex: "507f1f77bcf86cd799439011"))
        let rows: [[String: Value]] = [
            [
                "collaborators": .list([.string("bob"), .string("ann")]), "size": .int(3), "team": .string("red"), "ref": .objectId(id),
                "day": .timestamp(Timestamp(milliseconds: 1_800_000_000_000)),
            ],
            ["collaborators": .list([.string("bob")]), "size": .int(5), "day": .timestamp(Timestamp(milliseconds: 5))],
            ["collaborators": .list([]), "size": .null],
        ]
        let asking = user("ann", #"{"level": 3, "levels": [3]}"#)
        let writes = rows.map { ProposedWrite(type: App.task, operation: .insert, before: nil, after: $0) }
        #expect(try await app.verdicts(on: writes, by: asking).map { $0 == .allow } == allowed)
    }

    @Test func `insert of an asymmetric type narrows what may be written`() async throws {
        let app = App(defaults: "[\(Self.role(#""write": true, "insert": {"owner_id": "%%user.id"}"#))]")
        let plan = try await app.plan(for: user("ann"))["Event"]
        #expect(plan == TypePlan(read: "FALSEPREDICATE", write: #"owner_id == "ann""#, insert: true, delete: false, role: "r"))
        let checked = App(defaults: "[\(Self.role(#""write": true, "check_write": {"%%root.owner_id": "%%user.id"}"#))]")
        #expect(try await checked.plan(for: user("ann"))["Event"].role.contains("objects of Event are asymmetric"))
        #expect(try await checked.plan(for: user("ann"))["Note"].checkWrite)
    }

    // MARK: Embedded objects

    private static func place(_ permissions: String, more: String = #""title": {"read": true}"#) -> App {
        App(roles: #"[\#(role(#""fields": {"place": {\#(permissions)}, \#(more)}"#))]"#)
    }

    @Test func `permissions for all of an embedded object are permissions for it`() async throws {
        let plan = try await Self.place(#""fields": {"city": {"read": true, "write": true}}"#).task(for: user("ann"))
        #expect(plan.fields.readable == ["_id", "place", "title"] && plan.fields.writable == ["_id", "place"] && !plan.checkWrite)
        let others = try await Self.place(#""additional_fields": {"read": true}"#).task(for: user("ann"))
        #expect(others.fields.readable == ["_id", "place", "title"] && others.fields.writable == [])
        let hidden = try await Self.place(#""fields": {"city": {}}"#).task(for: user("ann"))
        #expect(hidden.fields.readable == ["_id", "title"])
    }

    @Test func `a permission of the embedded object itself overrides those inside, of its kind`() async throws {
        let plan = try await Self.place(#""read": true, "fields": {"city": {"read": false, "write": true}}"#).task(for: user("ann"))
        #expect(plan.fields.readable == ["_id", "place", "title"] && plan.fields.writable == ["_id", "place"])
        let closed = try await Self.place(#""write": false, "fields": {"city": {"read": true, "write": true}}"#).task(for: user("ann"))
        #expect(closed.fields.readable == ["_id", "place", "title"] && closed.fields.writable == [])
    }

    @Test func `parts of an embedded object may be written, and others not`() async throws {
        let app = App(
            roles: """
                [\(Self.role(#"""
                "fields": {"address": {"read": true, "fields": {"city": {"write": true}, "spot": {"fields": {"x": {"write": true}}}}}},
                "additional_fields": {"read": true, "write": true}
                """#))]
                """)
        let plan = try await app.task(for: user("ann"))
        #expect(plan.fields.readable == nil && plan.fields.writable == nil && plan.checkWrite)
        #expect(!plan.delete, "deleting takes permission for all of it")
        func row(_ city: String, _ zip: Value, x: Int64, y: Int64) -> [String: Value] {
            let spot: Value = .dictionary(["x": .int(x), "y": .int(y)])
            return ["address": .dictionary(["city": .string(city), "zip": zip, "spot": spot]), "title": .string(city)]
        }
        let before = row("Oslo", .string("1"), x: 1, y: 1)
        let said = try await verdicts(
            app,
            [
                (before, row("Rome", .string("1"), x: 2, y: 1)), (before, row("Rome", .string("2"), x: 1, y: 1)),
                (before, row("Oslo", .string("1"), x: 1, y: 2)), (before, ["address": .null]),
                (nil, ["address": .dictionary(["city": .string("Rome"), "zip": .null])]), (nil, before),
            ])
        let (zip, y) = ("writable fields without address.zip", "writable fields without address.spot.y")
        #expect(said == ["allowed", zip, y, y, "allowed", y])
    }

    @Test func `an embedded object that may be read in part is hidden, and so is a list of which parts may be written`() async throws {
        let app = App(
            roles: """
                [\(Self.role(#"""
                "fields": {"address": {"fields": {"city": {"read": true, "write": true}}},
                           "places": {"read": true, "additional_fields": {"write": false}, "fields": {"city": {"write": true}}},
                           "title": {"fields": {"x": {"read": true}}}, "place": {"fields": {"ctiy": {"read": true}}}},
                "additional_fields": {"read": true, "write": true}
                """#))]
                """
        ).inDevelopment
        let plan = try await app.task(for: user("ann"))
        let names = Set(App.schema["Task"]?.properties.map(\.name) ?? [])
        #expect(plan.fields.readable == names.subtracting(["address", "title", "place"]))
        #expect(plan.fields.writable == names.subtracting(["address", "title", "place", "places"]) && !plan.checkWrite)
        let warnings = try await app.warnings
        for text in [
            "address may be read in part only", "places may be written in part only", "title is no embedded object",
        ] {
            #expect(warnings.contains { $0.contains("Task: role \"r\": ") && $0.contains(text) }, "\(text): \(warnings)")
        }
    }

    // MARK: What cannot be told here

    private static let secret = (path: "values/key.json", text: #"{"name": "key", "value": "keySecret", "from_secret": true}"#)

    @Test(arguments: [
        #""write": true, "insert": {"owner_id": "%%values.key"}"#, #""write": true, "check_write": {"%%root.owner_id": "%%values.key"}"#,
    ])
    func `a secret makes the roles deny that use it, and no others`(members: String) async throws {
        let app = App(
            roles: "[\(Self.role(members, when: #"{"%%user.id": "ann"}"#)), \(Self.role(Self.all, name: "other"))]"
        ).with(Self.secret.path, Self.secret.text)
        let plan = try await app.task(for: user("ann"))
        #expect(plan.read == "FALSEPREDICATE" && plan.role.contains("value \"key\" is a secret"), "\(plan.role)")
        #expect(try await app.task(for: user("bob")).role == "other")
        #expect(try await app.warnings.contains { $0.contains("role \"r\"") && $0.contains("write it into secrets.json") })
    }

    @Test func `a secret in a filter makes its role deny, unless secrets_json has it`() async throws {
        let app = App.filters(read: #"{"team": "%%values.key"}"#, write: "false").with(Self.secret.path, Self.secret.text)
        let known = try await app.with("secrets.json", #"{"keySecret": "red"}"#).task(for: user("ann"))
        #expect(known.read.contains("team == \"red\""), "\(known)")
        #expect(try await app.task(for: user("ann")).role.contains("document_filters.read: value \"key\" is a secret"))
    }

    @Test(arguments: [
        #"{"%%values.key": "x"}"#, #"{"%%true": {"%function": {"name": "f"}}}"#, #"{"%%user.id": {"%function": {"name": "f"}}}"#,
        #"{"%function": {"name": "f"}}"#,
    ])
    func `an apply_when that nothing here can decide denies those whom the rest of it leaves open`(open: String) async throws {
        let when = #"{"%and": [{"%%user.id": {"$ne": "bob"}}, \#(open)]}"#
        for when in [when, #"{"%not": {"%or": [{"%%user.id": "bob"}, \#(open)]}}"#] {
            let app = App(roles: "[\(Self.role(Self.all, when: when)), \(Self.role(Self.all, name: "other"))]")
                .with(Self.secret.path, Self.secret.text)
            let plan = try await app.task(for: user("ann"))
            #expect(plan.read == "FALSEPREDICATE" && plan.role.contains("r (not sync compatible: apply_when: "), "\(plan.role)")
            #expect(try await app.task(for: user("bob")).role == "other", "\(when)")
            // The gateway notes a function that no service runs.
            let isNoted = try await app.warnings.contains { $0.contains("role \"r\" denies the users that it may apply to: apply_when: ") }
            #expect(isNoted != open.contains("%function"))
        }
        let either = #"{"%or": [{"%%user.id": "ann"}, \#(open)]}"#
        let app = App(roles: "[\(Self.role(Self.all, when: either))]").with(Self.secret.path, Self.secret.text)
        #expect(try await app.task(for: user("ann")).role == "r")
        #expect(try await app.task(for: user("bob")).role.contains("not sync compatible"))
    }

    @Test(arguments: [#"{"owner_id": "%%user.id"}"#, #"{"%%root.owner_id": "x"}"#, #"{"%%request.remoteIPAddress": "::1"}"#])
    func `an apply_when that needs what sync lacks denies whom the rest of it does not exclude`(open: String) async throws {
        for when in [#"{"%and": [{"%%user.id": "ann"}, \#(open)]}"#, #"{"%or": [{"%%user.id": "ann"}, \#(open)]}"#] {
            let app = App(roles: "[\(Self.role(Self.all, when: when)), \(Self.role(Self.all, name: "other"))]")
            let plan = try await app.task(for: user("ann"))
            #expect(plan.read == "FALSEPREDICATE" && plan.role.contains("apply_when: there is no"), "\(plan.role)")
            let excluded = try await app.task(for: user("bob"))
            #expect((excluded.role == "other") == when.contains("%and"), "\(when)")
            #expect(try await app.warnings.contains { $0.contains("role \"r\" is not sync compatible and denies: apply_when: ") })
        }
    }

    @Test func `an apply_when that a user lacks the data for is passed over, and not a denial`() async throws {
        for when in [#"{"%%user.id": "%%user.custom_data.alias"}"#, #"{"%not": {"%%user.id": "%%user.custom_data.alias"}}"#] {
            let app = App(roles: "[\(Self.role(Self.all, when: when)), \(Self.role(Self.all, name: "other"))]")
            #expect(try await app.task(for: user("ann")).role == "other")
            #expect(try await !app.warnings.contains { $0.contains("role \"r\"") })
        }
    }

    // MARK: Expansions and conversions

    @Test(arguments: [
        (#"{"%%user.identities.provider_type": "api-key"}"#, true), (#"{"%%user.identities.provider_type": "anon-user"}"#, false),
        (#"{"%%user.identities.0.id": "7"}"#, true), (#"{"%%user.identities.provider_type": {"$in": ["x", "local-userpass"]}}"#, true),
        (#"{"%%user.identities": {"$exists": true}}"#, true),
        (#"{"%%user.custom_data.text": {"%oidToString": "%%user.custom_data.oid"}}"#, true),
        (#"{"%%user.custom_data.text": {"%oidToString": {"$oid": "507f1f77bcf86cd799439011"}}}"#, true),
        (#"{"%%user.custom_data.text": {"%oidToString": "%%user.custom_data.text"}}"#, false),
        (#"{"%%user.custom_data.word": {"%uuidToString": "%%user.custom_data.uuid"}}"#, true),
        (#"{"%%user.custom_data.word": {"%uuidToString": "%%user.custom_data.oid"}}"#, false),
        (#"{"%%user.custom_data.uuid": {"%stringToUuid": "%%user.custom_data.word"}}"#, true),
        (#"{"%%user.custom_data.twelve": {"%stringToOid": "abcdefABCDEF"}}"#, true),
        (#"{"%%user.custom_data.twelve": {"%stringToOid": "abcdefABCDE"}}"#, false),
    ])
    func `identities and conversions in apply_when`(when: String, applies: Bool) async throws {
        var ann = user(
            "ann",
            """
            {"text": "507f1f77bcf86cd799439011", "oid": {"$oid": "507f1f77bcf86cd799439011"},
             "word": "d6b5a2c0-1111-4222-8333-444455556666", "uuid": {"$uuid": "d6b5a2c0-1111-4222-8333-444455556666"},
             "twelve": {"$oid": "616263646566414243444546"}}
            """)
        ann.identities = [["id": "7", "provider_type": "local-userpass"], ["id": "9", "provider_type": "api-key"]]
        #expect((try await App(roles: "[\(Self.role(Self.all, when: when))]").task(for: ann).role == "r") == applies, "\(when)")
    }

    @Test(arguments: [
        (#"{"team": "%%values.team"}"#, #"team == "red""#), (#"{"size": {"$gt": "%%values.limits.low"}}"#, "size > 3"),
        (#"{"team": {"$in": "%%values.teams"}}"#, #"team IN {"red", "blue"}"#), (#"{"team": "%%environment.tag"}"#, #"team == "qa""#),
        (#"{"team": "%%environment.values.team"}"#, #"team == "green""#), (#"{"team": "%%environment.values.none"}"#, "FALSEPREDICATE"),
        (#"{"%%environment.tag": "qa", "open": true}"#, "open == true"), (#"{"%%values.team": "blue", "open": true}"#, "FALSEPREDICATE"),
        (#"{"owner_id": "%%user.identities.0.id"}"#, #"owner_id == "7""#),
        (#"{"owner_id": {"$in": "%%user.identities.id"}}"#, #"owner_id IN {"7", "9"}"#),
        (#"{"owner_id": {"%oidToString": {"$oid": "507f1f77bcf86cd799439011"}}}"#, #"owner_id == "507f1f77bcf86cd799439011""#),
        (
            #"{"owner_id": {"%uuidToString": {"$uuid": "d6b5a2c0-1111-4222-8333-444455556666"}}}"#,
            #"owner_id == "d6b5a2c0-1111-4222-8333-444455556666""#
        ),
        (#"{"ref": {"%stringToOid": "abcdefABCDEF"}}"#, "ref == oid(616263646566414243444546)"),
    ])
    func `values, the environment, identities and conversions in filters`(filter: String, query: String) async throws {
        let app = App.filters(read: filter, write: "false")
            .with("values/team.json", #"{"name": "team", "value": "red", "from_secret": false}"#)
            .with("values/teams.json", #"{"name": "teams", "value": ["red", "blue"]}"#)
            .with("values/limits.json", #"{"name": "limits", "value": {"low": 3}}"#)
            .with("realm_config.json", #"{"environment": "qa"}"#)
            .with("environments/qa.json", #"{"values": {"team": "green"}}"#)
        var ann = user("ann")
        ann.identities = [["id": "7", "provider_type": "local-userpass"], ["id": "9", "provider_type": "api-key"]]
        #expect(try await app.task(for: ann).read == query)
    }
}
