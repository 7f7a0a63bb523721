import SluiceCore
package import SluiceGateway
import SluicePluginHost

/// The judgement of an app directory and its plugins: the results of the readers that `sluice serve` uses.
package enum AppFindings {
    /// Returns the findings of a directory. A note without effect on clients stays a note.
    package static func findings(_ report: ExportReport) -> [CheckFinding] {
        var all = report.refusals.map { item($0, .error) }
        all += report.additions.map { item($0, .warning) }
        for kind in ConfigNote.Kind.allCases where kind != .missing { all += report.items(kind).map { item($0, .note) } }
        return all
    }

    private static func item(_ item: ExportReport.Item, _ severity: CheckFinding.Severity) -> CheckFinding {
        let place = item.place.isEmpty ? "" : "\(item.place): "
        return CheckFinding(severity, .app, item.place.isEmpty ? "roles" : item.place, "\(place)\(item.message)", fix: item.fix)
    }

    /// Returns the findings of the loaded plugins.
    ///
    /// - Parameter needsSignature: `true` if the gateway loads only plugins with a signature.
    package static func findings(
        _ plugins: [PluginInspection.Entry], directory: String, needsSignature: Bool = false
    ) -> [CheckFinding] {
        plugins.flatMap { plugin -> [CheckFinding] in
            if let problem = plugin.problem {
                let isAltered = problem.code == .pluginAltered || problem.code == .pluginUnlisted
                let add = ["sluice plugin add --app", ShellText.word(directory), ShellText.word(plugin.path)]
                let sign = needsSignature || plugin.isSigned ? ["--sign KEY"] : []
                return [
                    CheckFinding(
                        .error, .plugins, plugin.file, problem, commands: isAltered ? [(add + sign).joined(separator: " ")] : [])
                ]
            }
            return plugin.missing.map { part in
                CheckFinding(
                    .warning, .plugins, plugin.file, PluginChain.statement(missing: part) + " The plugin is \(plugin.file).",
                    fix: part == "process"
                        ? "Run it in a process of its own." : "Use a kernel of Linux 5.13 or later with Landlock and seccomp.")
            }
        }
    }

    /// Returns the findings of functions whose target is a plugin; none if a plugin has a problem of its own.
    package static func findings(_ functions: [FunctionPlugin], in plugins: [PluginInspection.Entry]) -> [CheckFinding] {
        let infos = plugins.compactMap(\.info)
        guard infos.count == plugins.count else { return [] }
        return functions.compactMap { function in
            function.problem(with: infos).map { CheckFinding(.error, .plugins, function.function, $0.error) }
        }
    }
}
