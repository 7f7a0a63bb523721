import Logging
package import SluiceCore
import SluiceGateway
import SluicePluginHost

/// Checks the roles of an app directory against its schema without a gateway, for `sluice schema`.
///
/// It configures the shipped plugin for roles as a gateway does at its start. Other plugins are not loaded.
package struct RuleCheck {
    let app: AppConfiguration
    /// The columns of the table for custom user data; nil if there is none.
    let customDataFields: [String]?

    /// The judgement of the plugin for roles.
    package struct Result: Sendable {
        /// The error with which a gateway would reject the roles; nil if it would not, or if there are none.
        package var refusal: SluiceError?
        /// Roles that deny more than their author may expect.
        package var warnings: [String] = []

        /// The mistakes in the roles, one text each.
        package var refusals: [String] {
            guard let refusal else { return [] }
            let openings = [" refused its configuration: ", " refused: "]
            guard refusal.code == .pluginRefused, let start = openings.lazy.compactMap({ refusal.message.firstRange(of: $0) }).first else {
                return ["\(refusal)"]
            }
            return refusal.message[start.upperBound...].split(separator: "\n").map(String.init)
        }
    }

    /// Returns the error with which a gateway would reject the roles; nil if it would not, or if there are none.
    func refusal() async -> SluiceError? { await result().refusal }

    func result() async -> Result {
        do throws(SluiceError) {
            guard let path = try rolesPlugin() else { return Result() }
            let file = try PluginFile(path)
            let chain = PluginChain(
                plugins: [try RuleFiles(directory: nil, inProcess: true).spec(file)], hostExecutable: try InstalledFiles.pluginHost(),
                logger: Logger(label: "sluice.rules") { _ in SwiftLogNoOpLogHandler() })
            return await result(of: chain)
        } catch { return Result(refusal: error) }
    }

    private func result(of chain: PluginChain) async -> Result {
        var result = Result()
        do throws(SluiceError) {
            try await chain.start()
            result.warnings = try await chain.configure(
                app: AppDescription.json(
                    appID: app.appID, directory: app.files, schema: app.schema, queryableFields: app.queryableFields,
                    customDataFields: customDataFields))
        } catch { result.refusal = error }
        await chain.stop()
        return result
    }

    /// Returns the plugin for roles that a gateway adds by itself, or the one that `plugins.json` lists.
    private func rolesPlugin() throws(SluiceError) -> String? {
        if let path = try RuleFiles(directory: nil).rolesPlugin(app) { return path }
        let name = InstalledFiles.file(ofPlugin: "AppServicesRules")
        return app.plugins.contains { $0.isShipped && $0.file == name } ? InstalledFiles.plugin("AppServicesRules") : nil
    }
}
