import ArgumentParser

@main
struct Sluice: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sluice",
        abstract: "A self-hosted sync gateway for offline-first apps, on your own PostgreSQL and Kafka.",
        subcommands: [
            Serve.self, Dev.self, InitCommand.self, Check.self, SchemaCommand.self, MigrateCommand.self, PluginCommand.self, Ingest.self,
            Watch.self, Why.self, Explain.self,
            QueryCommand.self, TokenCommand.self, AdminTokenCommand.self,
            Errors.self,
        ])
}
