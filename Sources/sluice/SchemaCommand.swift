import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

struct SchemaCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Show and apply the changes of an app directory's schema: PostgreSQL's tables, and the losses of apps in use.",
        discussion: """
            Adding classes, properties and queryable fields breaks nothing; gateways that run take it up within seconds, without a restart. \
            Taking away, renaming and retyping breaks: 'sluice serve' refuses it, and so does 'apply' unless it is told otherwise.

            Exit codes: 0; 1 when PostgreSQL cannot be reached or a table does not fit; 78 when the directory or its roles are refused, or \
            when something breaks.
            """,
        subcommands: [SchemaDiff.self, SchemaApply.self, SchemaGrants.self])
}

struct SchemaDiff: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Print the statements that the app directory needs, and the breaking changes. Changes nothing.",
        discussion:
            "The output is SQL with comments. Statements for the gateway's own schema sluice are omitted. Settings of the app directory without effect are printed on standard error."
    )

    @OptionGroup var app: AppOptions

    @Flag(help: "Print one line of JSON.")
    var json = false

    func run() async throws {
        try await reporting(hasRoles: true) {
            let configuration = try await app.configuration()
            for note in configuration.notes { StandardError.write("sluice: \(note)\n") }
            let difference = try await SchemaTool(app: configuration, postgres: try app.conninfo()).diff()
            print(json ? difference.json.text : difference.text)
            if let refusal = difference.refusal(isBreakingAccepted: false) { throw refusal }
        }
    }
}

struct SchemaApply: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apply", abstract: "Run those statements and make the app directory's schema the one in use.",
        discussion: """
            Existing columns and rows are never changed or dropped: that is for you, before you apply. It is one transaction: a table that \
            is locked for longer than five seconds ends the command, and nothing has been changed.
            """)

    @OptionGroup var app: AppOptions

    @Flag(help: "Apply the schema even if apps in use lose data. Restart every gateway with this app directory afterwards.")
    var acceptBreaking = false

    @Flag(help: "Print one line of JSON.")
    var json = false

    func run() async throws {
        try await reporting(hasRoles: true) {
            let configuration = try await app.configuration()
            let tool = SchemaTool(app: configuration, postgres: try app.conninfo())
            let done = try await tool.apply(acceptsBreaking: acceptBreaking)
            print(json ? done.json.text : done.text)
            if !json, let version = done.applied { StandardError.write("sluice: the schema in use is version \(version) now\n") }
        }
    }
}
