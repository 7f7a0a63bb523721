package import SluicePluginKit

/// Typical write checks: they read three of twelve fields and allow the write. Its function counts the characters of a note.
package final class BenchRules: WriteRules, FunctionHandler {
    package static let name = "BenchRules"
    package static let version = "1.0"

    package init(log: PluginLog) {}

    package func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict] {
        writes.map { write in
            guard let before = write.before, let after = write.after else { return .allow }
            if before.bool("closed") == true { return .deny(reason: "It is closed.") }
            if !after.hasSame("owner_id", as: before) { return .deny(reason: "It has its owner.") }
            return (after.int("amount") ?? 0) > 1_000_000 ? .deny(reason: "That is too much.") : .allow
        }
    }

    package func callFunction(_ call: PluginFunctionCall) throws -> PluginValue {
        guard let note = call.arguments.first?["note"]?.string else { throw PluginDenial("There is no note.") }
        return ["$numberLong": .string("\(note.utf8.count)")]
    }
}
