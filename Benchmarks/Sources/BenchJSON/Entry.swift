import BenchRules
import SluicePluginKit

/// As a plugin that was built before there were rows: it is given JSON.
@c func sluice_plugin_type() -> PluginExport { PluginMain.export(BenchRules.self, minor: 3) }
