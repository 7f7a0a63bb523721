/* A plugin that was built with version 1.0 of the interface. Its users read the class Store. */
#include "minor_zero.h"

#include <string.h>

static sluice_text text(const char *literal) {
    sluice_text result = {literal, strlen(literal)};
    return result;
}

static sluice_status open_session(void *state, sluice_text input, const sluice_sink *answer) {
    (void)state, (void)input;
    answer->write(answer->context, text("{\"types\":{\"Store\":{\"read\":\"TRUEPREDICATE\",\"write\":\"FALSEPREDICATE\","
                                        "\"insert\":false,\"delete\":false,\"role\":\"reader\"}}}"));
    return SLUICE_OK;
}

sluice_status sluice_plugin_entry(const sluice_host *host, sluice_plugin *plugin, const sluice_sink *answer) {
    (void)host, (void)answer;
    plugin->size = sizeof *plugin;
    plugin->abi_major = SLUICE_PLUGIN_ABI_MAJOR;
    plugin->abi_minor = SLUICE_PLUGIN_ABI_MINOR;
    plugin->name = text("MinorZeroC");
    plugin->version = text("1.0");
    plugin->open_session = open_session;
    return SLUICE_OK;
}
