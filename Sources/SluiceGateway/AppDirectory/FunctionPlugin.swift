import SluiceCore
import SluiceIdentity
package import SluicePluginHost
import SluiceValues

/// A function of the app whose target is a plugin, for the check against the loaded plugins.
package struct FunctionPlugin: Hashable, Sendable {
    package var function: String
    /// The name of the plugin, as its library has it.
    package var plugin: String
    /// The hook that the function needs.
    package var hook: Hook
    /// The place of the target in `sluice.json`.
    package var file: String
    package var line: Int
    package var column: Int

    /// Returns the problem of the target with the loaded plugins; nil if the function can be called.
    package func problem(with plugins: [PluginInfo]) -> ConfigProblem? {
        let fit = plugins.filter { $0.hooks.contains(hook) }.map(\.name)
        guard let found = plugins.first(where: { $0.name == plugin }) else {
            let near = Suggestion.nearest(to: plugin, in: plugins.map(\.name))
            return problem(
                .configMissing,
                "There is no plugin '\(plugin)' for the function '\(function)'. The app has \(Self.list(plugins.map(\.name), "no plugin")).",
                fix: near.map { "Did you mean '\($0)'?" } ?? "List the plugin in plugins.json, or name another one.")
        }
        guard !found.hooks.contains(hook) else { return nil }
        return problem(
            .configInvalid,
            "The plugin '\(plugin)' of the function '\(function)' has no hook \(hook.name). "
                + "With the hook the app has \(Self.list(fit, "no plugin")).",
            fix: "Name a plugin with the hook, or add the hook to '\(plugin)' (docs/plugin-abi.md).")
    }

    private func problem(_ code: ErrorCode, _ message: String, fix: String) -> ConfigProblem {
        ConfigProblem(code: code, file: file, line: line, column: column, message: message, fix: fix)
    }

    private static func list(_ names: [String], _ none: String) -> String {
        names.isEmpty ? none : names.map { "'\($0)'" }.joined(separator: ", ")
    }
}

extension FunctionPlugin {
    /// Returns the functions with a plugin as their target, in their order.
    ///
    /// - Parameters:
    ///   - section: The section `functions` of `sluice.json`.
    ///   - logins: The functions of login providers. They need the hook `authenticate`, and all others `call_function`.
    static func read(_ functions: [AppFunction], _ section: ConfigNode?, logins: Set<String>) -> [FunctionPlugin] {
        functions.compactMap { function in
            guard case .plugin(let target) = function.target,
                let place = (section?.child(function.name) ?? section?.child(FunctionReader.others))?.child("url")
            else { return nil }
            return FunctionPlugin(
                function: function.name, plugin: target.plugin, hook: logins.contains(function.name) ? .authenticate : .callFunction,
                file: place.file, line: place.line, column: place.column)
        }
    }
}

extension AppConfiguration {
    /// Checks that the loaded plugins run the functions that name them.
    ///
    /// - Throws: All problems, as `AppDirectoryError`.
    func check(_ plugins: [PluginInfo]) throws(AppDirectoryError) {
        let problems = functionPlugins.compactMap { $0.problem(with: plugins) }
        guard problems.isEmpty else { throw AppDirectoryError(problems: problems) }
    }
}
