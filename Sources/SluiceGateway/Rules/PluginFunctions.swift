import SluiceCore
import SluicePluginHost
import SluicePorts

/// The functions in the plugins of the generation in use.
struct PluginFunctions: FunctionPlugins {
    let generations: RuleGenerations

    func call(_ call: PluginFunctionCall) async throws(SluiceError) -> PluginFunctionAnswer {
        do { return try await generations.ask { try await $0.call(call) } } catch {
            throw SluiceError(error, otherwise: .pluginUnavailable, "The plugin could not be called.")
        }
    }
}
