import BenchRules
import SluicePluginKit

/// A plugin built before interface 1.4, which receives writes as JSON.
@c func sluice_plugin_type() -> PluginExport { PluginMain.export(BenchRules.self, minor: 3) }
