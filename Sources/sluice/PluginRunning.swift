import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

struct PluginRunning: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "running", abstract: "Show the state of the plugins of a running gateway.",
        discussion: """
            Asks the gateway's admin port. Of each plugin: its state (starting, running, restarting, out, stopped), its calls, those that it \
            denied and those that failed, how many of its processes have ended, and its last error, all since its generation began. \
            Exit codes: 0; 1 when a plugin of the generation in use is not running.
            """)

    @OptionGroup var target: AdminTarget

    @Flag(help: "Print one line of JSON.")
    var json = false

    func run() async throws {
        try await reporting {
            let answer = try await target.client().get("/admin/v1/plugins", [:])
            guard answer.status == 200 else { throw answer.error }
            let generations = answer.json["generations"]?.array ?? []
            if json { print(answer.json.text) } else { for line in generations.flatMap(RunningPlugins.lines) { print(line) } }
            let inUse = generations.first?["plugins"]?.array ?? []
            if inUse.contains(where: { $0["state"]?.string != "running" }) { throw ExitCode(1) }
        }
    }
}
