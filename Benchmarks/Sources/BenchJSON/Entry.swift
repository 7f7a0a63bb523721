import BenchRules
public import CSluicePlugin
import SluicePluginKit

/// As a plugin that was built before there were rows: it is given JSON.
@c @implementation
public func sluice_plugin_entry(
    _ host: UnsafePointer<sluice_host>, _ plugin: UnsafeMutablePointer<sluice_plugin>, _ answer: UnsafePointer<sluice_sink>
) -> sluice_status {
    let status = PluginMain.register(BenchRules.self, host, plugin, answer)
    plugin.pointee.check_write_rows = nil
    return status
}
