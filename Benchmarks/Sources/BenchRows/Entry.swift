import BenchRules
import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(BenchRules.self) }
