import SluiceCore
import SluicePluginHost

/// The state of the plugins, the generation in use first.
struct ConsolePlugins: Sendable {
    let generations: [RuleGenerations.Generation]
    let editsRefused: Double

    var html: HTML {
        let tables = generations.enumerated().map { place, generation in
            Self.table(generation, isInUse: place == 0)
        }
        let refused: HTML =
            editsRefused > 0
            ? "<p class=\"bad\">Rejected edits of the rules: \(ConsoleNumber.count(editsRefused)). The log has the reasons.</p>\n"
            : ""
        return ConsolePage.section("plugins", "Plugins", "\(refused)\(tables)")
    }

    private static func table(_ generation: RuleGenerations.Generation, isInUse: Bool) -> HTML {
        let name: HTML = "Generation \(generation.number), \(isInUse ? "in use" : "ending")"
        let standings = generation.chain.standings
        guard !standings.isEmpty else {
            return
                "<p>\(name): no plugins.\(isInUse ? " Without plugins a gateway denies everything, except in development mode." : "")</p>\n"
        }
        var table = ConsoleTable(
            "\(name); counted since it started",
            ["Plugin", "State", "Process", "Calls", "Denied", "Failures", "Hosts ended", "Last error"])
        for standing in standings { table.add(title(standing), cells(standing)) }
        return table.html
    }

    private static func title(_ standing: PluginHealth) -> HTML {
        let file = standing.path.split(separator: "/").last.map { String($0) } ?? standing.path
        return "\(standing.info.map { "\($0.name) \($0.version)" } ?? file)\(standing.isForFunctions ? ", functions" : "")"
    }

    private static func cells(_ standing: PluginHealth) -> [HTML] {
        let process: HTML =
            standing.isInProcess ? "the gateway's" : standing.processID.map { process -> HTML in "\(process)" } ?? "none"
        let trouble = standing.trouble.map { trouble -> HTML in
            let text = trouble.error.operatorText.cut(to: Console.characters)
            return """
                <span class="long">\(ConsoleNumber.duration(Double(trouble.age) / 1e9)) ago: \(text) \
                <code>\(trouble.error.code.name)</code> (\(trouble.error.code.rawValue))</span>
                """
        }
        return [
            state(standing.state), process, "\(standing.calls)", "\(standing.denied)", "\(standing.failures)", "\(standing.ends)",
            trouble ?? "none",
        ]
    }

    private static func state(_ state: PluginHealth.State) -> HTML {
        switch state {
        case .starting: "starting"
        case .running: "running"
        case .restarting: "<strong>restarting</strong>: calls wait for the next host"
        case .out: "<strong>out</strong>: its hosts end repeatedly, and its calls are rejected at once"
        case .stopped: "stopped"
        }
    }
}
