/*
 * A plugin that was built with the header of 1.0: its table ends before what came later. What a host finds beyond is not the
 * plugin's; here it is what no host should touch.
 */
#include "sluice_plugin.h"

#include <stddef.h>
#include <string.h>

static int has(sluice_text input, const char *word) {
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= input.length; i++)
        if (memcmp(input.data + i, word, length) == 0) return 1;
    return 0;
}

static sluice_status open_session(void *state, sluice_text input, const sluice_sink *answer) {
    static const char plan[] = "{\"types\":{\"Store\":{\"read\":\"size > 1\",\"write\":\"FALSEPREDICATE\",\"insert\":false,\"delete\":false}}}";
    sluice_text words = {plan, sizeof plan - 1};
    (void)state;
    (void)input;
    answer->write(answer->context, words);
    return SLUICE_OK;
}

/* One write at a time. */
static sluice_status check_write(void *state, sluice_text input, const sluice_sink *answer) {
    int is_named_so = has(input, "\"after\":{\"_id\":\"x\",\"name\":\"forbidden\",\"size\":3}");
    const char *said = is_named_so ? "{\"writes\":[{\"verdict\":\"deny\",\"reason\":\"it is named so\"}]}" : "{\"writes\":[{\"verdict\":\"allow\"}]}";
    sluice_text words = {said, strlen(said)};
    (void)state;
    answer->write(answer->context, words);
    return SLUICE_OK;
}

sluice_status sluice_plugin_entry(const sluice_host *host, sluice_plugin *plugin, const sluice_sink *answer) {
    (void)host;
    (void)answer;
    memset((char *)plugin + offsetof(sluice_plugin, config_schema), 0x55, sizeof *plugin - offsetof(sluice_plugin, config_schema));
    plugin->size = offsetof(sluice_plugin, config_schema);
    plugin->abi_major = SLUICE_PLUGIN_ABI_MAJOR;
    plugin->abi_minor = 0;
    plugin->name.data = "OlderMinorC";
    plugin->name.length = strlen(plugin->name.data);
    plugin->version.data = "0.9";
    plugin->version.length = strlen(plugin->version.data);
    plugin->open_session = open_session;
    plugin->check_write = check_write;
    return SLUICE_OK;
}
