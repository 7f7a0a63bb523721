import SluiceCore
import Testing

/// The strategies that App Services documented (server specification, 8.7).
@Suite struct `Permission strategies` {
    @Test func `own data only`() async throws {
        let own = #"{"owner_id": "%%user.id"}"#
        let plan = try await App.filters(read: own, write: own).task(for: user("ann"))
        #expect(plan == TypePlan(read: #"owner_id == "ann""#, write: #"owner_id == "ann""#, role: "all"))
    }

    @Test func `read all, write own`() async throws {
        let plan = try await App.filters(read: "true", write: #"{"owner_id": "%%user.id"}"#).task(for: user("ann"))
        #expect(plan == TypePlan(read: "TRUEPREDICATE", write: #"owner_id == "ann""#, role: "all"))
    }

    @Test func `administrators see everything, others their own`() async throws {
        let app = App(
            roles: """
                [{"name": "admin", "apply_when": {"%%user.custom_data.isGlobalAdmin": true}, "read": true, "write": true,
                  "document_filters": {"read": true, "write": true}},
                 {"name": "user", "apply_when": {}, "read": true, "write": true,
                  "document_filters": {"read": {"owner_id": "%%user.id"}, "write": false}}]
                """)
        #expect(
            try await app.task(for: user("root", #"{"isGlobalAdmin": true}"#))
                == TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "admin"))
        for data in [#"{"isGlobalAdmin": false}"#, "{}", #"{"isGlobalAdmin": "true"}"#, #"{"isGlobalAdmin": null}"#] {
            let plan = try await app.task(for: user("ann", data))
            #expect(plan.role == "user")
            #expect(plan.read == #"owner_id == "ann""#)
            #expect(plan.write == "FALSEPREDICATE")
        }
    }

    @Test func `restricted feed`() async throws {
        let app = App.filters(
            read: #"{"owner_id": {"$in": "%%user.custom_data.subscribedTo"}}"#, write: #"{"owner_id": "%%user.id"}"#)
        let plan = try await app.task(for: user("ann", #"{"subscribedTo": ["bob", "eve"]}"#))
        #expect(plan.read == #"owner_id IN {"bob", "eve"} OR owner_id == "ann""#)
        #expect(plan.write == #"owner_id == "ann""#)
        let alone = try await app.task(for: user("ann"))
        #expect(alone.read == #"owner_id == "ann""#)
    }

    @Test func `dynamic collaboration`() async throws {
        let filter = #"{"$or": [{"owner_id": "%%user.id"}, {"collaborators": "%%user.id"}]}"#
        let plan = try await App.filters(read: "false", write: filter).task(for: user("ann"))
        #expect(plan.write == #"owner_id == "ann" OR ANY collaborators == "ann""#)
        #expect(plan.read == plan.write)
    }

    @Test func `tiered`() async throws {
        let app = App(
            roles: """
                [{"name": "lead", "apply_when": {"%%user.custom_data.isTeamAdmin": true}, "read": true, "write": true,
                  "document_filters": {"read": {"team": "%%user.custom_data.team"}, "write": {"team": "%%user.custom_data.team"}}},
                 {"name": "member", "apply_when": {"%%user.custom_data.isTeamAdmin": {"$ne": true}}, "read": true, "write": true,
                  "document_filters": {"read": {"team": "%%user.custom_data.team"}, "write": {"owner_id": "%%user.id"}}}]
                """)
        let lead = try await app.task(for: user("ann", #"{"isTeamAdmin": true, "team": "red"}"#))
        #expect(lead.role == "lead")
        #expect(lead.write == #"team == "red""#)
        let member = try await app.task(for: user("bob", #"{"team": "red"}"#))
        #expect(member.role == "member")
        #expect(member.read == #"team == "red" OR owner_id == "bob""#)
        #expect(member.write == #"owner_id == "bob""#)
    }
}
