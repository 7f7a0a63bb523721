import SluiceCore
import SluicePorts
import SluiceValues
import Testing

@Suite struct `Taking a role` {
    private func role(_ name: String, when: String, filters: String = #"{"read": true, "write": true}"#, more: String = "") -> String {
        #"{"name": "\#(name)", "apply_when": \#(when), "read": true, "write": true, "document_filters": \#(filters)\#(more)}"#
    }

    @Test func `the first that applies is taken`() async throws {
        let app = App(roles: "[\(role("a", when: "false")), \(role("b", when: "true")), \(role("c", when: "true"))]")
        #expect(try await app.task(for: user("ann")).role == "b")
    }

    @Test func `without one that applies the type is denied`() async throws {
        let plan = try await App(roles: "[\(role("a", when: "false"))]").task(for: user("ann"))
        #expect(plan.read == "FALSEPREDICATE" && plan.write == "FALSEPREDICATE" && !plan.insert && !plan.delete)
        #expect(plan.role == "none: no role applies to this user")
    }

    @Test func `default roles are for collections without roles of their own, and there is no falling through`() async throws {
        let app = App(roles: "[\(role("own", when: "false"))]", defaults: "[\(role("default", when: "true"))]")
        let plan = try await app.plan(for: user("ann"))
        #expect(plan["Note"].role == "default")
        #expect(plan["Task"].role == "none: no role applies to this user")
    }

    @Test func `an empty list of roles leaves the defaults`() async throws {
        let plan = try await App(roles: "[]", defaults: "[\(role("default", when: "true"))]").task(for: user("ann"))
        #expect(plan.role == "default")
    }

    @Test func `without any role the type is denied`() async throws {
        let plan = try await App().plan(for: user("ann"))
        #expect(plan["Task"].read == "FALSEPREDICATE")
        #expect(plan["Nothing"] == .denied)
    }

    @Test func `a function without a result makes the role that it decides on deny, and no others`() async throws {
        let app = App(
            roles: "[\(role("all", when: #"{"%%user.id": "ann"}"#)), \(role("chief", when: Self.isChief)), \(role("rest", when: "true"))]")
        #expect(try await app.task(for: user("ann")).read == "TRUEPREDICATE")
        var bob = user("bob")
        // The result of another call decides nothing.
        bob.functions = [RuleFunctionResult(name: "isChief", arguments: ["%%user.id", 2], result: true)]
        let plan = try await app.task(for: bob)
        #expect(plan.read == "FALSEPREDICATE" && plan.role.contains(#"the function "isChief" has no result"#), "\(plan.role)")
        #expect(try await app.warnings.allSatisfy { !$0.contains("isChief") })
    }

    private static let isChief = #"{"%%true": {"%function": {"name": "isChief", "arguments": ["%%user.id", 1.0]}}}"#

    @Test(
        arguments: [
            (isChief, true, "chief"), (isChief, false, "rest"), (isChief, .null, "rest"), (isChief, "yes", "rest"),
            (#"{"%function": {"name": "isChief", "arguments": ["%%user.id", 1.0]}}"#, true, "chief"),
            (#"{"%%user.id": {"$in": {"%function": {"name": "isChief", "arguments": ["%%user.id", 1.0]}}}}"#, ["ann", "bob"], "chief"),
            (#"{"%%user.id": {"$in": {"%function": {"name": "isChief", "arguments": ["%%user.id", 1.0]}}}}"#, ["ann"], "rest"),
            (#"{"%not": {"%%true": {"%function": {"name": "isChief", "arguments": ["%%user.id", 1.0]}}}}"#, true, "rest"),
        ] as [(String, JSON, String)])
    func `the result of a function decides on a role`(when: String, result: JSON, expected: String) async throws {
        let app = App(roles: "[\(role("chief", when: when)), \(role("rest", when: "true"))]")
        var bob = user("bob")
        bob.functions = [RuleFunctionResult(name: "isChief", arguments: ["%%user.id", 1.0], result: result)]
        #expect(try await app.task(for: bob).role == expected)
    }

    @Test func `an incompatible role denies, and later ones are not tried`() async throws {
        let app = App(roles: "[\(role("a", when: "true", filters: #"{"read": true}"#)), \(role("b", when: "true"))]")
        let plan = try await app.task(for: user("ann"))
        #expect(plan.read == "FALSEPREDICATE")
        #expect(plan.role == "a (not sync compatible: document_filters.write is missing)")
    }

    @Test func `an apply_when that needs a document denies`() async throws {
        for when in [#"{"owner_id": "%%user.id"}"#, #"{"%%root.owner_id": "%%user.id"}"#, #"{"%%request.remoteIPAddress": "::1"}"#] {
            let plan = try await App(roles: "[\(role("a", when: when)), \(role("b", when: "true"))]").task(for: user("ann"))
            #expect(plan.read == "FALSEPREDICATE")
            #expect(plan.role.contains("apply_when: there is no"))
        }
    }

    @Test(arguments: [
        (#"{"%%user.id": "ann"}"#, true), (#"{"%%user.id": {"$in": ["bob", "ann"]}}"#, true), (#"{"%%user.id": {"$nin": ["bob"]}}"#, true),
        (#"{"%%user.type": "server"}"#, false), (#"{"%%user.data.email": "ann@example.com"}"#, true),
        (#"{"%%user.custom_data.level": {"$gte": 3, "$lt": 5}}"#, true), (#"{"%%user.custom_data.level": {"$gt": 4}}"#, false),
        (#"{"%%user.custom_data.groups": {"$all": ["red"]}}"#, true), (#"{"%%user.custom_data.groups": {"$all": ["red", "pink"]}}"#, false),
        (#"{"%%user.custom_data.groups": "red"}"#, true), (#"{"%%user.custom_data.groups": {"$in": ["red", "pink"]}}"#, true),
        (#"{"%%user.custom_data.groups": "blue"}"#, false), (#"{"%%user.custom_data.missing": {"$exists": false}}"#, true),
        (#"{"%%user.custom_data.level": {"$exists": true}}"#, true), (#"{"%%user.custom_data.missing": null}"#, true),
        (#"{"%%user.custom_data.missing": {"$ne": 3}}"#, true), (#"{"%%user.id": "%%user.custom_data.missing"}"#, false),
        (#"{"%not": {"%%user.id": "%%user.custom_data.missing"}}"#, false), (#"{"%%user.custom_data.a": "%%user.custom_data.b"}"#, false),
        (#"{"%or": [{"%%user.id": "eve"}, {"%%user.id": "ann"}]}"#, true), (#"{"%and": [true, {"%%user.id": "eve"}]}"#, false),
        (#"{"%nor": [{"%%user.id": "eve"}]}"#, true), (#"{"%%true": true}"#, true), (#""%%false""#, false), ("{}", true),
        (#"{"%%user.custom_data.ref": {"%stringToOid": "507f1f77bcf86cd799439011"}}"#, true),
        (#"{"%%user.custom_data.ref": {"$oid": "507F1F77BCF86CD799439011"}}"#, true),
        (#"{"%%user.custom_data.address.city": "Oslo"}"#, true), (#"{"%%user.custom_data.groups.0": "red"}"#, true),
        (#"{"%%user.custom_data.jobs.title": "pilot"}"#, true), (#"{"%%user.custom_data.level": {"$not": {"$gt": 4}}}"#, true),
        (#"{"%%user.custom_data.level": {"$gt": "2"}}"#, false), (#"{"%%user.custom_data.level": {"$numberLong": "4"}}"#, true),
    ])
    func `apply_when is evaluated for the session`(when: String, applies: Bool) async throws {
        let data = """
            {"level": 4, "groups": ["red", "green"], "ref": {"$oid": "507f1f77bcf86cd799439011"}, "address": {"city": "Oslo"},
             "jobs": [{"title": "cook"}, {"title": "pilot"}]}
            """
        let plan = try await App(roles: "[\(role("a", when: when))]").task(for: user("ann", data))
        #expect((plan.role == "a") == applies, "\(when)")
    }

    @Test func `values and the environment can be used`() async throws {
        let when = #"{"%%values.admins": "%%user.id", "%%environment.tag": "production", "%%environment.values.open": true}"#
        let app = App(roles: "[\(role("a", when: when))]")
            .with("values/admins.json", #"{"name": "admins", "value": ["ann"], "from_secret": false}"#)
            .with("realm_config.json", #"{"environment": "production"}"#)
            .with("environments/production.json", #"{"values": {"open": true}}"#)
        #expect(try await app.task(for: user("ann")).role == "a")
        #expect(try await app.task(for: user("bob")).role != "a")
    }
}

@Suite struct `What a role gives` {
    private func task(_ members: String, filters: String = #"{"read": true, "write": true}"#) async throws -> TypePlan {
        try await App(roles: #"[{"name": "r", "apply_when": true, "document_filters": \#(filters), \#(members)}]"#).task(for: user("ann"))
    }

    @Test func `nothing when it gives nothing`() async throws {
        let plan = try await task(#""search": true"#)
        #expect(plan.read == "FALSEPREDICATE" && plan.write == "FALSEPREDICATE" && !plan.insert && !plan.delete)
    }

    @Test func `reading only`() async throws {
        let plan = try await task(
            #""read": true, "write": false"#, filters: #"{"read": {"team": "red"}, "write": {"owner_id": "%%user.id"}}"#)
        #expect(
            plan
                == TypePlan(
                    read: #"team == "red""#, write: "FALSEPREDICATE", insert: false, delete: false, fields: FieldRights(writable: []),
                    role: "r"))
    }

    @Test func `no insert and no delete where it says so`() async throws {
        let plan = try await task(#""write": true, "insert": false, "delete": {"%%user.id": "bob"}"#)
        #expect(plan == TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: false, delete: false, role: "r"))
    }

    @Test func `single fields, with the key, and what may be written may be read`() async throws {
        let plan = try await task(#""fields": {"title": {"read": true}, "open": {"write": true}, "size": {"read": false}}"#)
        #expect(plan.fields.readable == ["_id", "title", "open"])
        #expect(plan.fields.writable == ["_id", "open"])
        #expect(plan.insert && !plan.delete)
    }

    @Test func `all fields but some`() async throws {
        let plan = try await task(
            #""fields": {"title": {"read": false, "write": false}}, "additional_fields": {"read": true, "write": true}"#)
        let all = Set(App.schema["Task"]?.properties.map(\.name) ?? [])
        #expect(plan.fields.readable == all.subtracting(["title"]))
        #expect(plan.fields.writable == all.subtracting(["title"]))
    }

    @Test func `permission for the whole overrides that of fields`() async throws {
        let plan = try await task(#""read": true, "fields": {"title": {"read": false, "write": true}}"#)
        #expect(plan.fields.readable == nil)
        #expect(plan.fields.writable == ["_id", "title"])
    }

    @Test func `writing but never reading, for asymmetric types`() async throws {
        let role =
            #"[{"name": "d", "apply_when": true, "write": true, "document_filters": {"read": true, "write": {"owner_id": "%%user.id"}}}]"#
        let plan = try await App(defaults: role).plan(for: user("ann"))["Event"]
        #expect(plan == TypePlan(read: "FALSEPREDICATE", write: #"owner_id == "ann""#, insert: true, delete: false, role: "d"))
    }
}
