import ArgumentParser

/// The commands that move an app from Atlas. Each is in a file of its own.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Move an app and its data from Atlas.",
        subcommands: [
            MigrateCheck.self,
            MigratePartitions.self,
            MigrateInfer.self,
            MigrateSchema.self,
            MigrateData.self,
            MigrateUsers.self,
        ])
}
