import Logging
import SluiceCore
import SluiceGateway
import SluicePluginHost

/// Checks the roles of an app directory against its schema without a gateway, for `sluice schema`.
///
/// It configures the shipped plugin for roles as a gateway does at its start. Other plugins are not loaded.
struct RuleCheck {
    let app: AppConfiguration
    /// The columns of the table for custom user data; nil if there is none.
    let customDataFields: [String]?

    /// Returns the error with which a gateway would reject the roles; nil if it would not, or if there are none.
    func refusal() async -> SluiceError? {
        do throws(SluiceError) {
            guard let path = try rolesPlugin() else { return nil }
            let file = try PluginFile(path)
            let chain = PluginChain(
                plugins: [try RuleFiles(directory: nil, inProcess: true).spec(file)], hostExecutable: try InstalledFiles.pluginHost(),
                logger: Logger(label: "sluice.rules") { _ in SwiftLogNoOpLogHandler() })
            return await refusal(of: chain)
        } catch { return error }
    }

    private func refusal(of chain: PluginChain) async -> SluiceError? {
        var refusal: SluiceError?
        do throws(SluiceError) {
            try await chain.start()
            try await chain.configure(
                app: AppDescription.json(
                    appID: app.appID, directory: app.files, schema: app.schema, queryableFields: app.queryableFields,
                    customDataFields: customDataFields))
        } catch { refusal = error }
        await chain.stop()
        return refusal
    }

    /// Returns the plugin for roles that a gateway adds by itself, or the one that `plugins.json` lists.
    private func rolesPlugin() throws(SluiceError) -> String? {
        if let path = try RuleFiles(directory: nil).rolesPlugin(app) { return path }
        let name = InstalledFiles.file(ofPlugin: "AppServicesRules")
        return app.plugins.contains { $0.isShipped && $0.file == name } ? InstalledFiles.plugin("AppServicesRules") : nil
    }
}
