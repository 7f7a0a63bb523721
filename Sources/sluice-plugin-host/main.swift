import SluicePluginHost

PluginHostMain.run()
