import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceTools
import SluiceValues
import Testing

/// Rules that name a field which the class lacks, where an operator meets them.
@Suite(.timeLimit(.minutes(5))) struct `Rules about a field that the class lacks` {
    private static let rules = ShopApp.table("Note", "rules")

    private static func files(_ field: String) -> [String: String] {
        let filter = #"{ "\#(field)": "%%user.custom_data.team" }"#
        return NoteApp.files(["Note": "[\(NoteApp.role("members", read: filter, write: filter))]"])
    }

    @Test func `are refused as an edit of a running gateway, and devices keep what they have`() async throws {
        let (folder, log) = (try Phone.Folder(), LinesOfLog())
        let files = Self.files("team")
        for (path, text) in files { try folder.put(text, at: path) }
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            try await deployment.run(files, directory: folder.url.path, logger: Logger(label: "test") { _ in log }) { gateway in
                try await gateway.sql(#"INSERT INTO "Note" SELECT 'n' || g, 'x', 'red' FROM generate_series(1, 25) g"#)
                let session = try await gateway.noteSession(try await gateway.account(customData: #"{ "team": "red" }"#), ["Note"])
                #expect(session.keys("Note").count == 25)
                try folder.put(try #require(Self.files("teem")[Self.rules]), at: Self.rules)
                try await gateway.untilMetric("sluice_rules_refused_total", is: 1)
                await log.wait(for: "The edited rules cannot be used", about: #"\#(Self.rules) line "#)
                await log.wait(for: "The edited rules cannot be used", about: "Note has no field teem; did you mean ")
                try await gateway.sql(#"INSERT INTO "Note" VALUES ('n26', 'x', 'red')"#)
                try await session.receive { $0.keys("Note").contains("n26") }
                #expect(session.keys("Note").count == 26 && session.bootstraps == 1)
                #expect(try await gateway.metric("sluice_rule_generation") == 1)
                session.close()
            }
        }
    }

    @Test func `are refused by the schema tool and at the start, with the same words`() async throws {
        let files = Self.files("team").merging([Self.rules: try #require(Self.files("teem")[Self.rules])]) { $1 }
        let app = try AppDirectory.read(files: files)
        try await GatewayDatabase.with { conninfo in
            let tool = SchemaTool(app: app, postgres: conninfo)
            let difference = try await tool.diff()
            let refusal = try #require(difference.refusal(isBreakingAccepted: true))
            #expect(refusal.message.contains(#"Note has no field teem; did you mean "team"? (in document_filters.read of role "members")"#))
            #expect(difference.text.contains("-- THE ROLES ARE REFUSED:") && difference.text.contains("\(Self.rules) line "))
            #expect(difference.json["rules"]?.string == refusal.message)
            let applied = await #expect(throws: SluiceError.self) { try await tool.apply(acceptsBreaking: false) }
            #expect(applied == refusal)
            // What is right is no obstacle.
            #expect(
                try await SchemaTool(app: try AppDirectory.read(files: Self.files("team")), postgres: conninfo)
                    .apply(acceptsBreaking: false).applied == 1)
            let configuration = GatewayConfiguration(
                app: app, postgres: conninfo, kafka: nil, network: .init(port: 0, adminPort: 0), plugins: .init(inProcess: true))
            let stopped = await #expect(throws: SluiceError.self) { try await RunningGateway.run(configuration) { _ in } }
            #expect(stopped == refusal)
        }
    }

    @Test func `are taken up when the schema that has the field is applied`() async throws {
        let folder = try Phone.Folder()
        let files = Self.files("team")
        for (path, text) in files { try folder.put(text, at: path) }
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            try await deployment.run(files, directory: folder.url.path) { gateway in
                let edited = try #require(files[Self.rules])
                    .replacing(
                        #""read": true, "write": true"#,
                        with: #""additional_fields": { "read": true, "write": true }, "fields": { "more": { "read": false } }"#)
                #expect(edited != files[Self.rules])
                try folder.put(edited, at: Self.rules)
                try await gateway.untilMetric("sluice_rules_refused_total", is: 1)
                let schema = try #require(files[ShopApp.table("Note", "schema")])
                    .replacing(#""text": {"#, with: #""more": { "bsonType": "string" }, "text": {"#)
                let grown = files.merging([Self.rules: edited, ShopApp.table("Note", "schema"): schema]) { $1 }
                let tool = SchemaTool(app: try AppDirectory.read(files: grown), postgres: gateway.conninfo)
                #expect(try await tool.apply(acceptsBreaking: false).applied == 2)
                try await gateway.untilMetric("sluice_rule_generation", is: 2)
            }
        }
    }
}
