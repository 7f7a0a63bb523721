/// The files of a plugin in C. Every user may read and write the configured classes, except for locked objects.
enum PluginTemplateC {
    static let files = ["plugin.c": source, "README.md": readme, "Makefile": makefile, "exports.map": exports]

    static let exports = "{ global: sluice_plugin_entry; local: *; };\n"

    private static let makefile = """
        libPLUGIN_NAME.so: plugin.c sluice_plugin.h sluice_rows.h exports.map
        \t$(CC) -shared -fPIC -O2 -Wall -Wextra -I . -Wl,-z,defs -Wl,--version-script=exports.map -o $@ plugin.c

        check: libPLUGIN_NAME.so
        \tsluice plugin check $<

        .PHONY: check

        """

    private static let readme = """
        # PLUGIN_NAME: a rule plugin

        Users read and write the types that its configuration lists, and change no object in which `locked` is true:

        ```json
        { "types": ["Store", "Flight"] }
        ```

        It also runs a function of the app, `types`. `sluice.json` of the app directory names the plugin for it:

        ```json
        { "functions": { "types": { "url": "plugin:PLUGIN_NAME" } } }
        ```

        ```sh
        make                                            # builds libPLUGIN_NAME.so
        make check                                      # tries it as a gateway does
        sluice plugin add --app ../app libPLUGIN_NAME.so   # lists it in an app directory, which has gateways load it
        ```

        `sluice_plugin.h` says what each hook is asked and answers, `sluice_rows.h` how the rows of writes are read.

        """

    private static let source = #"""
        #include "sluice_plugin.h"

        #include <stdlib.h>
        #include <string.h>

        /* What the configuration lists, as JSON has it: "Store","Flight". */
        struct state {
            char *types;
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

        /* The end of the last `word` in the input, or null. The plugin's configuration comes last in what configure is given. */
        static const char *after_last(sluice_text input, const char *word) {
            size_t length = strlen(word);
            for (size_t i = input.length; i >= length; i--)
                if (memcmp(input.data + i - length, word, length) == 0) return input.data + i;
            return NULL;
        }

        /* The gateway has checked the configuration against `config_schema` before it calls this. */
        static sluice_status configure(void *opaque, sluice_text input, const sluice_sink *answer) {
            struct state *state = opaque;
            const char *start = after_last(input, "\"types\":[");
            const char *end = start ? memchr(start, ']', (size_t)(input.data + input.length - start)) : NULL;
            size_t length = end ? (size_t)(end - start) : 0;
            char *types = malloc(length + 1);
            (void)answer;
            if (!types) return SLUICE_FAILED;
            if (length) memcpy(types, start, length);
            free(state->types);
            state->types = types;
            state->length = length;
            return SLUICE_OK;
        }

        /* A type that is not in the answer is denied. */
        static sluice_status open_session(void *opaque, sluice_text input, const sluice_sink *answer) {
            static const char rules[] = ":{\"read\":\"TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,"
                                        "\"delete\":true,\"role\":\"editor\",\"check_write\":true}";
            struct state *state = opaque;
            const char *rest = state->types, *end = rest + state->length;
            (void)input; /* who asks makes no difference here */
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

        /* A row is read where it lies. A type without the field has nothing that is locked. */
        static int is_locked(const sluice_write *write) {
            uint32_t column = sluice_type_column(write->type, "locked", 6, 0);
            int locked;
            return sluice_row_bool(&write->before, column, &locked) && locked;
        }

        static sluice_status check_write(void *opaque, const sluice_writes *writes, const sluice_sink *answer) {
            static const char allow[] = "{\"verdict\":\"allow\"}", deny[] = "{\"verdict\":\"deny\",\"reason\":\"It is locked.\"}";
            (void)opaque;
            put(answer, "{\"writes\":[", 11);
            for (uint32_t i = 0; i < writes->write_count; i++) {
                if (i) put(answer, ",", 1);
                if (is_locked(sluice_write_at(writes, i)))
                    put(answer, deny, sizeof deny - 1);
                else
                    put(answer, allow, sizeof allow - 1);
            }
            put(answer, "]}", 2);
            return SLUICE_OK;
        }

        /* Runs the function "types" of the app, which gives the configured types, if sluice.json has it with "plugin:PLUGIN_NAME". */
        static sluice_status call_function(void *opaque, sluice_text input, const sluice_sink *answer) {
            static const char types[] = "{\"function\":\"types\",", unknown[] = "There is no such function.";
            struct state *state = opaque;
            if (input.length < sizeof types - 1 || memcmp(input.data, types, sizeof types - 1) != 0) {
                put(answer, unknown, sizeof unknown - 1);
                return SLUICE_DENY;
            }
            put(answer, "[", 1);
            put(answer, state->types, state->length);
            put(answer, "]", 1);
            return SLUICE_OK;
        }

        sluice_status sluice_plugin_entry(const sluice_host *host, sluice_plugin *plugin, const sluice_sink *answer) {
            struct state *state = calloc(1, sizeof *state);
            uint32_t room = plugin->size; /* of the host's table */
            (void)host, (void)answer;
            if (!state) return SLUICE_FAILED;
            plugin->size = sizeof *plugin;
            plugin->abi_major = SLUICE_PLUGIN_ABI_MAJOR;
            plugin->abi_minor = SLUICE_PLUGIN_ABI_MINOR;
            plugin->state = state;
            plugin->name = text("PLUGIN_NAME");
            plugin->version = text("0.1");
            plugin->config_schema = text("{\"types\":{\"type\":\"list\",\"of\":{\"type\":\"text\"}}}");
            plugin->configure = configure;
            plugin->open_session = open_session;
            plugin->check_write = check_write;
            if (SLUICE_HAS(sluice_plugin, call_function, room)) plugin->call_function = call_function;
            return SLUICE_OK;
        }

        """#
}
