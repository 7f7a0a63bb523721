import BenchRules
public import CSluicePlugin
import SluicePluginKit

@c @implementation
public func sluice_plugin_entry(
    _ host: UnsafePointer<sluice_host>, _ plugin: UnsafeMutablePointer<sluice_plugin>, _ answer: UnsafePointer<sluice_sink>
) -> sluice_status { PluginMain.register(BenchRules.self, host, plugin, answer) }
