/*
 * The smallest useful plugin in C: nobody may see or write anything, except the types that its configuration lists:
 *     {"allow": ["Store", "Flight"]}
 * A real plugin would read its input with a JSON library; this one looks for the one key it needs, which the gateway's
 * compact JSON allows: a quote inside a string is always escaped, so `"allow":[` cannot be anything but the key.
 */
#include "sluice_plugin.h"

#include <stdlib.h>
#include <string.h>

/* The inside of the list in the configuration: `"Store","Flight"`. */
struct state {
    char *names;
    size_t length;
};

static sluice_text text(const char *literal) {
    sluice_text result = {literal, strlen(literal)};
    return result;
}

static void put(const sluice_sink *answer, const char *data, size_t length) {
    sluice_text piece = {data, length};
    answer->write(answer->context, piece);
}

/* The last place of `word` in the input, or null. The gateway puts the plugin's own configuration last. */
static const char *find_last(sluice_text input, const char *word) {
    size_t length = strlen(word);
    for (size_t i = input.length; i >= length; i--)
        if (memcmp(input.data + i - length, word, length) == 0) return input.data + i;
    return NULL;
}

static sluice_status configure(void *opaque, sluice_text input, const sluice_sink *answer) {
    struct state *state = opaque;
    const char *start = find_last(input, "\"allow\":[");
    const char *end = start ? memchr(start, ']', (size_t)(input.data + input.length - start)) : NULL;
    if (start && !end) {
        put(answer, "\"allow\" is not a list", strlen("\"allow\" is not a list"));
        return SLUICE_FAILED;
    }
    size_t length = start ? (size_t)(end - start) : 0;
    char *names = malloc(length + 1);
    if (!names) return SLUICE_FAILED;
    if (length) memcpy(names, start, length);
    free(state->names);
    state->names = names;
    state->length = length;
    return SLUICE_OK;
}

static sluice_status open_session(void *opaque, sluice_text input, const sluice_sink *answer) {
    static const char rules[] =
        ":{\"read\":\"TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,\"delete\":true,\"role\":\"listed\"}";
    struct state *state = opaque;
    (void)input; /* who asks makes no difference, and types that nobody asked for are ignored */
    const char *rest = state->names;
    const char *end = rest + state->length;
    put(answer, "{\"types\":{", 10);
    while (rest < end) {
        const char *comma = memchr(rest, ',', (size_t)(end - rest));
        const char *stop = comma ? comma : end;
        put(answer, rest, (size_t)(stop - rest));
        put(answer, rules, sizeof rules - 1);
        if (comma) put(answer, ",", 1);
        rest = comma ? comma + 1 : end;
    }
    put(answer, "}}", 2);
    return SLUICE_OK;
}

sluice_status sluice_plugin_entry(const sluice_host *host, sluice_plugin *plugin, const sluice_sink *answer) {
    (void)host;
    (void)answer;
    struct state *state = calloc(1, sizeof *state);
    if (!state) return SLUICE_FAILED;
    plugin->size = sizeof *plugin;
    plugin->abi_major = SLUICE_PLUGIN_ABI_MAJOR;
    plugin->abi_minor = SLUICE_PLUGIN_ABI_MINOR;
    plugin->state = state;
    plugin->name = text("DenyAllC");
    plugin->version = text("1.0");
    plugin->config_schema = text("{\"allow\":{\"type\":\"list\",\"of\":{\"type\":\"text\"}}}");
    plugin->configure = configure;
    plugin->open_session = open_session;
    return SLUICE_OK;
}
