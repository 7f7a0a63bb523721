/*
 * A switch for maintenance, in C: nobody may write the types that its configuration lists, or anything when it lists none, while
 * reading goes on:
 *     {"types": ["Order"], "except_users": ["6650f0c2a9…"]}
 * With "closed_field", a field of true and false, nobody may change or delete those of their objects in which it is true: that
 * takes a look at each write, which comes as rows (`check_write`).
 * The gateway has checked the configuration's form (`config_schema`), and its JSON is compact: so a list of texts begins after
 * `"name":[` and ends before `]`, since no text of ours has a bracket or an escape in it; one that has is refused.
 */
#include "sluice_plugin.h"

#include <stdlib.h>
#include <string.h>

/* The inside of a list: `"Order","Flight"`. */
struct list {
    char *text; /* with a zero after it */
    size_t length;
    int is_given;
};

struct state {
    struct list types, except, closed; /* closed: the field's name, if one is given */
};

static sluice_text text(const char *literal) {
    sluice_text result = {literal, strlen(literal)};
    return result;
}

static void put(const sluice_sink *answer, const char *data, size_t length) {
    sluice_text piece = {data, length};
    answer->write(answer->context, piece);
}

static void put_text(const sluice_sink *answer, const char *words) { put(answer, words, strlen(words)); }

static const char *find(const char *from, const char *end, const char *word) {
    size_t length = strlen(word);
    for (; from + length <= end; from++)
        if (memcmp(from, word, length) == 0) return from + length;
    return NULL;
}

static const char *find_last(const char *from, const char *end, const char *word) {
    const char *last = NULL;
    for (const char *next; (next = find(from, end, word)) != NULL; from = next) last = next;
    return last;
}

/* Whether the list has this text, given without its quotes. */
static int has_plain(const struct list *list, sluice_text plain) {
    const char *rest = list->text, *end = rest + list->length;
    while (rest < end) {
        const char *comma = memchr(rest, ',', (size_t)(end - rest));
        const char *stop = comma ? comma : end;
        if (stop - rest >= 2 && sluice_text_is(plain, rest + 1, (size_t)(stop - rest) - 2)) return 1;
        rest = stop + 1;
    }
    return 0;
}

/* Whether the list has this text, given with its quotes. */
static int has(const struct list *list, const char *quoted, size_t length) {
    const char *rest = list->text, *end = rest + list->length;
    while (rest < end) {
        const char *comma = memchr(rest, ',', (size_t)(end - rest));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - rest) == length && memcmp(rest, quoted, length) == 0) return 1;
        rest = stop + 1;
    }
    return 0;
}

/*
 * Reads one list of the configuration, or one text, whose end is `last`. Returns 0 when there is no memory or it cannot be told.
 */
static int read_list(struct list *list, const char *config, const char *end, const char *name, char last) {
    const char *start = find(config, end, name);
    const char *stop = start ? memchr(start, last, (size_t)(end - start)) : NULL;
    size_t length = stop ? (size_t)(stop - start) : 0;
    if (start && (!stop || memchr(start, '\\', length))) return 0;
    char *copy = malloc(length + 1);
    if (!copy) return 0;
    if (length) memcpy(copy, start, length);
    copy[length] = 0;
    list->text = copy;
    list->length = length;
    list->is_given = start != NULL;
    return 1;
}

/* Whether a type of the app's schema has the field, and it is of true and false. */
static int is_field(const struct list *name, const char *from, const char *end) {
    static const char kind[] = "\":{\"type\":\"bool\"";
    for (const char *at = from; name->length && (at = find(at, end, name->text)) != NULL;)
        if (at - name->length > from && at[-(ptrdiff_t)name->length - 1] == '"' && (size_t)(end - at) >= sizeof kind - 1
            && memcmp(at, kind, sizeof kind - 1) == 0)
            return 1;
    return 0;
}

static void drop(struct state *state) {
    free(state->types.text);
    free(state->except.text);
    free(state->closed.text);
}

static sluice_status configure(void *opaque, sluice_text input, const sluice_sink *answer) {
    struct state *state = opaque, next = {{0}, {0}, {0}};
    const char *end = input.data + input.length;
    /* The plugin's own configuration comes last. */
    const char *config = input.data ? find_last(input.data, end, "\"config\":") : NULL;
    if (!config) config = end;
    if (!read_list(&next.types, config, end, "\"types\":[", ']') || !read_list(&next.except, config, end, "\"except_users\":[", ']')
        || !read_list(&next.closed, config, end, "\"closed_field\":\"", '"')) {
        drop(&next);
        put_text(answer, "the configuration has a text with an escape in it");
        return SLUICE_FAILED;
    }
    /* A misspelt name would freeze nothing. */
    if (next.closed.is_given && !is_field(&next.closed, input.data, config)) {
        drop(&next);
        put_text(answer, "closed_field: no type has a field of this name that is true or false");
        return SLUICE_DENY;
    }
    drop(state);
    *state = next;
    return SLUICE_OK;
}

/* One type of the answer; the name comes with its quotes. */
static void put_type(const struct state *state, const sluice_sink *answer, const char *name, size_t length, int is_frozen) {
    put(answer, name, length);
    if (is_frozen && state->closed.is_given)
        put_text(answer, ":{\"read\":\"TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,\"delete\":true,"
                         "\"role\":\"frozen where closed\",\"check_write\":true");
    else
        put_text(answer, is_frozen ? ":{\"read\":\"TRUEPREDICATE\",\"write\":\"FALSEPREDICATE\",\"insert\":false,\"delete\":false,"
                                     "\"role\":\"frozen\""
                                   : ":{\"read\":\"TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,\"delete\":true,"
                                     "\"role\":\"not frozen\"");
    /* It only takes away: where nobody else allows anything, nothing is allowed. */
    put_text(answer, ",\"grants\":false}");
}

/* The input is {"user":{"id":"…",…},"types":["…",…]}: the id is the first text, the types come last. */
static sluice_status open_session(void *opaque, sluice_text input, const sluice_sink *answer) {
    const struct state *state = opaque;
    const char *end = input.data + input.length;
    const char *id = find(input.data, end, "{\"user\":{\"id\":");
    const char *rest = find_last(input.data, end, "\"types\":[");
    const char *stop = rest ? memchr(rest, ']', (size_t)(end - rest)) : NULL;
    const char *id_end = id && id < end ? memchr(id + 1, '"', (size_t)(end - id) - 1) : NULL;
    if (!id_end || !stop) {
        put_text(answer, "there is no user or no types in the input");
        return SLUICE_FAILED;
    }
    int is_excepted = has(&state->except, id, (size_t)(id_end + 1 - id));
    put_text(answer, "{\"types\":{");
    while (rest < stop) {
        const char *comma = memchr(rest, ',', (size_t)(stop - rest));
        const char *next = comma ? comma : stop;
        size_t length = (size_t)(next - rest);
        int is_listed = !state->types.is_given || has(&state->types, rest, length);
        put_type(state, answer, rest, length, !is_excepted && is_listed);
        if (comma) put_text(answer, ",");
        rest = next + 1;
    }
    put_text(answer, "}}");
    return SLUICE_OK;
}

/* Whether a write is one to an object that is closed. Of the row before it only the one field is looked at, where it lies. */
static int is_closed(const struct state *state, const sluice_write *write) {
    if (state->types.is_given && !has_plain(&state->types, write->type->name)) return 0;
    uint32_t column = sluice_type_column(write->type, state->closed.text, state->closed.length, 0);
    int closed;
    return sluice_row_bool(&write->before, column, &closed) && closed;
}

static sluice_status check_write(void *opaque, const sluice_writes *writes, const sluice_sink *answer) {
    const struct state *state = opaque;
    if (!state->closed.is_given || has_plain(&state->except, writes->user_id)) {
        put_text(answer, "{\"writes\":\"allow\"}");
        return SLUICE_OK;
    }
    put_text(answer, "{\"writes\":[");
    for (uint32_t i = 0; i < writes->write_count; i++) {
        if (i) put_text(answer, ",");
        put_text(answer, is_closed(state, sluice_write_at(writes, i))
                             ? "{\"verdict\":\"deny\",\"reason\":\"It is closed, and stays as it is.\",\"rule\":\"closed_field\"}"
                             : "{\"verdict\":\"allow\"}");
    }
    put_text(answer, "]}");
    return SLUICE_OK;
}

sluice_status sluice_plugin_entry(const sluice_host *host, sluice_plugin *plugin, const sluice_sink *answer) {
    struct state *state = calloc(1, sizeof *state);
    (void)host, (void)answer;
    if (!state) return SLUICE_FAILED;
    plugin->size = sizeof *plugin;
    plugin->abi_major = SLUICE_PLUGIN_ABI_MAJOR;
    plugin->abi_minor = SLUICE_PLUGIN_ABI_MINOR;
    plugin->state = state;
    plugin->name = text("FreezeC");
    plugin->version = text("1.0");
    plugin->config_schema = text("{\"types\":{\"type\":\"list\",\"of\":{\"type\":\"text\"},\"help\":\"All types unless given.\"},"
                                 "\"except_users\":{\"type\":\"list\",\"of\":{\"type\":\"text\"},\"help\":\"Ids of users.\"},"
                                 "\"closed_field\":{\"type\":\"text\",\"help\":\"Objects in which it is true are frozen, not whole types.\"}}");
    plugin->configure = configure;
    plugin->open_session = open_session;
    plugin->check_write = check_write;
    return SLUICE_OK;
}
