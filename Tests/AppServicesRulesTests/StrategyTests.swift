import Foundation
import SluiceCore
import SluicePorts
import Testing

/// The strategies that App Services documented (server specification, 8.7), as the plugin's README has them.
@Suite struct `Permission strategies` {
    private static let own = #"owner_id == "ann""#

    /// An app with the roles that stand below the heading.
    private static func app(_ heading: String, level: String = "###") throws -> App {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "../../Plugins/AppServicesRules/README.md")
        let text = try String(contentsOf: file.standardized, encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n\(level) \(heading)\n").dropFirst().first)
        let block = try #require(section.components(separatedBy: "```json\n").dropFirst().first)
        return App(roles: block.components(separatedBy: "```")[0])
    }

    private static func allowed(read: String, write: String, role: String) -> TypePlan {
        TypePlan(read: read, write: write, insert: true, delete: true, role: role)
    }

    @Test func `own data only`() async throws {
        let plan = try await Self.app("Own data only").task(for: user("ann"))
        #expect(plan == Self.allowed(read: Self.own, write: Self.own, role: "owner"))
    }

    @Test func `read all, write own`() async throws {
        let plan = try await Self.app("Read all, write own").task(for: user("ann"))
        #expect(plan == Self.allowed(read: "TRUEPREDICATE", write: Self.own, role: "owner"))
    }

    @Test func `administrators see everything, others their own`() async throws {
        let app = try Self.app("Administrators")
        #expect(
            try await app.task(for: user("root", #"{"isGlobalAdmin": true}"#))
                == Self.allowed(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "admin"))
        for data in [#"{"isGlobalAdmin": false}"#, "{}", #"{"isGlobalAdmin": "true"}"#, #"{"isGlobalAdmin": null}"#] {
            let plan = try await app.task(for: user("ann", data))
            #expect(plan == Self.allowed(read: Self.own, write: Self.own, role: "owner"))
        }
    }

    @Test func `restricted feed`() async throws {
        let app = try Self.app("Restricted feed")
        let plan = try await app.task(for: user("ann", #"{"subscribedTo": ["bob", "eve"]}"#))
        #expect(plan.read == #"owner_id IN {"bob", "eve"} OR owner_id == "ann""#)
        #expect(plan.write == Self.own)
        let alone = try await app.task(for: user("ann"))
        #expect(alone.read == Self.own)
    }

    @Test func `dynamic collaboration`() async throws {
        let plan = try await Self.app("Dynamic collaboration").task(for: user("ann"))
        #expect(plan.write == #"owner_id == "ann" OR ANY collaborators == "ann""#)
        #expect(plan.read == plan.write)
    }

    @Test func `dynamic collaboration in which owners alone invite, and stay the owners`() async throws {
        let app = try Self.app("About a write", level: "##")
        let bobs: [String: Value] = ["owner_id": .string("bob"), "collaborators": .list([.string("ann")])]
        func changed(_ name: String, _ value: Value) -> ProposedWrite {
            ProposedWrite(type: App.task, operation: .update, before: bobs, after: bobs.merging([name: value]) { $1 })
        }
        let writes = [
            changed("title", .string("x")), changed("owner_id", .string("ann")), changed("collaborators", .list([])),
            ProposedWrite(type: App.task, operation: .insert, before: nil, after: bobs),
        ]
        #expect(try await app.verdicts(on: writes, by: user("ann")).map { $0 == .allow } == [true, false, false, true])
        #expect(try await app.verdicts(on: writes, by: user("bob")).map { $0 == .allow } == [true, false, true, true])
    }

    @Test func `tiered`() async throws {
        let app = try Self.app("Tiered")
        let lead = try await app.task(for: user("ann", #"{"isTeamAdmin": true, "team": "red"}"#))
        #expect(lead == Self.allowed(read: #"team == "red""#, write: #"team == "red""#, role: "lead"))
        let member = try await app.task(for: user("bob", #"{"team": "red"}"#))
        #expect(member.role == "member")
        #expect(member.read == #"team == "red" OR owner_id == "bob""#)
        #expect(member.write == #"owner_id == "bob""#)
    }

    @Test func `a filter left alone is no way in for who has no team`() async throws {
        let plan = try await Self.app("Tiered").task(for: user("ann"))
        #expect(plan.read == Self.own && plan.write == Self.own)
    }
}
