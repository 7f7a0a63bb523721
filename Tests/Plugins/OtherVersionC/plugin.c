/* A plugin that says it was built for another major version of the interface: the host must refuse it (501). */
#include "sluice_plugin.h"

sluice_status sluice_plugin_entry(const sluice_host *host, sluice_plugin *plugin, const sluice_sink *answer) {
    (void)host;
    (void)answer;
    plugin->size = sizeof *plugin;
    plugin->abi_major = SLUICE_PLUGIN_ABI_MAJOR + 1;
    plugin->abi_minor = 4;
    return SLUICE_OK;
}
