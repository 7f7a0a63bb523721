import ArgumentParser
import SluiceCore

struct PluginRunning: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "running", abstract: "Show what has become of the plugins of a gateway that runs.",
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
            if json { print(answer.json.text) } else { for line in generations.flatMap(Self.lines) { print(line) } }
            let inUse = generations.first?["plugins"]?.array ?? []
            if inUse.contains(where: { $0["state"]?.string != "running" }) { throw ExitCode(1) }
        }
    }

    private static func lines(_ generation: JSON) -> [String] {
        let plugins = generation["plugins"]?.array ?? []
        let head = "generation \(generation["generation"]?.int ?? 0), \(generation["in_use"] == true ? "in use" : "ending")"
        return [plugins.isEmpty ? "\(head): no plugins" : head] + plugins.flatMap(describe)
    }

    private static func describe(_ plugin: JSON) -> [String] {
        func count(_ key: String) -> Int64 { plugin[key]?.int ?? 0 }
        let name = [plugin["name"]?.string ?? plugin["file"]?.string, plugin["version"]?.string].compactMap { $0 }.joined(separator: " ")
        let place = plugin["in_process"] == true ? "in process" : plugin["process"]?.int.map { "process \($0)" } ?? "no process"
        var lines = [
            "    \(name): \(plugin["state"]?.string ?? "unknown"), \(place); \(count("calls")) calls, \(count("denied")) denied, "
                + "\(count("failures")) failed; \(count("hosts_ended")) processes ended"
        ]
        if let error = plugin["last_error"], let text = error["error"]?.string {
            lines.append("        \(error["seconds_ago"]?.int ?? 0) s ago: \(text) (\(error["code"]?.int ?? 0))")
        }
        return lines
    }
}
