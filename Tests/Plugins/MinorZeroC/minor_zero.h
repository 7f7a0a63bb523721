/*
 * sluice_plugin.h as minor version 0 of the interface had it, without its explanations. Plugins that were built with it must load for as
 * long as the major version is 1, so this copy never changes.
 */
#ifndef SLUICE_PLUGIN_H
#define SLUICE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "sluice_rows.h" /* sluice_text, and the rows of check_write and ingest */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of this interface. A plugin with another major number is refused with error plugin-abi-mismatch (501). A later minor
 * number only appends members to the tables, which carry their size.
 */
#define SLUICE_PLUGIN_ABI_MAJOR 1u
#define SLUICE_PLUGIN_ABI_MINOR 0u

/* Results of a hook. Anything else counts as SLUICE_FAILED. */
typedef enum sluice_status {
    SLUICE_OK = 0,     /* the answer is in the sink */
    SLUICE_DENY = 1,   /* denied; the sink may hold a reason, as plain text */
    SLUICE_FAILED = 2  /* the plugin could not decide: counts as denied; the sink may hold what happened, as plain text */
} sluice_status;

typedef enum sluice_log_level {
    SLUICE_LOG_DEBUG = 0,
    SLUICE_LOG_INFO = 1,
    SLUICE_LOG_WARNING = 2,
    SLUICE_LOG_ERROR = 3
} sluice_log_level;

/* Where a hook puts its answer. May be called several times: the pieces are joined. */
typedef struct sluice_sink {
    void *_Nullable context;
    void (*_Nonnull write)(void *_Nullable context, sluice_text piece);
} sluice_sink;

/* What the gateway offers a plugin. Valid for the life of the process. */
typedef struct sluice_host {
    uint32_t size; /* sizeof(sluice_host) of the host: members beyond it are not there */
    uint32_t abi_major;
    uint32_t abi_minor;
    uint32_t reserved;
    void *_Nullable context;
    /* Writes a line to the gateway's log. From any thread. */
    void (*_Nonnull log)(void *_Nullable context, sluice_log_level level, sluice_text message);

    /*
     * Misuse of the following is answered with SLUICE_FAILED and the reason, and does no harm: a context that is not the host's, a text
     * that is too long, a question outside of a hook or on another thread than the hook's.
     */

    /* Adds to the counter sluice_plugin_counts_total{name="PLUGIN.name"}. `name`: 1 to 64 of a-z, 0-9 and _. From any thread. */
    sluice_status (*_Nonnull count)(void *_Nullable context, sluice_text name, uint64_t amount);

    /*
     * The custom data of a user. Asks the gateway, which takes a fraction of a millisecond or more; waiting counts by the clock only.
     * SLUICE_OK: the object, as JSON. SLUICE_DENY: there is no such user. SLUICE_FAILED: it could not be had; the sink says why.
     */
    sluice_status (*_Nonnull custom_data)(void *_Nullable context, sluice_text user_id, const sluice_sink *_Nonnull answer);

    /*
     * Holds a predicate against the query language and the app's schema, as `open_session` answers it. Asks the gateway.
     * SLUICE_OK: its canonical text. SLUICE_DENY: what is wrong with it, or that there is no such type. SLUICE_FAILED: as above.
     */
    sluice_status (*_Nonnull parse_predicate)(void *_Nullable context, sluice_text type, sluice_text predicate,
                                              const sluice_sink *_Nonnull answer);
} sluice_host;

/*
 * What a plugin offers. Members that are null are hooks that the plugin does not have: the next plugin of the chain is
 * asked. Every hook gets `state`, as the plugin set it.
 */
typedef struct sluice_plugin {
    uint32_t size; /* sizeof(sluice_plugin) of the plugin */
    uint32_t abi_major;
    uint32_t abi_minor;
    uint32_t reserved;
    void *_Nullable state;
    sluice_text name;    /* static */
    sluice_text version; /* static */

    /*
     * What "config" may hold, as JSON; static. The gateway checks the configuration against it before `configure`, so that a
     * misspelt key is an error with its line. Null: anything. "{}": nothing.
     *     {key: {"type": "bool"|"int"|"number"|"text"|"list"|"map"|"object"|"any", "required": bool (default false),
     *            "of": as a key (of each element of a list, each value of a map), "keys": as here (of an object),
     *            "one_of": [text], "min": number, "max": number, "help": text}}
     */
    sluice_text config_schema;

    /*
     * configure: called once after loading and again whenever the app directory changes.
     * in:  {"app_id": text, "directory": {relative path: file content as text, ...}, "config": any JSON,
     *       "schema": {Type: {"kind": "top_level"|"embedded"|"asymmetric", "primary_key": text,
     *                         "properties": {name: {"type": text, "optional": bool, "collection": text}}}},
     *       "queryable_fields": {"global": [text], "types": {Type: [text]}, "indexed": text or null},
     *       "development": bool, "custom_data_fields": null or [column of the table of custom user data]}
     * out: nothing, or {"warnings": [text]}
     */
    sluice_status (*_Nullable configure)(void *_Nullable state, sluice_text input, const sluice_sink *_Nonnull answer);

    /*
     * open_session: called when a session starts and when its user's data changed.
     * in:  {"user": {"id": text, "type": text, "data": object, "custom_data": object, "identities": [...],
     *                "functions": [{"name": text, "arguments": [...], "result": any JSON}]},
     *       "types": [text]}
     *      "functions": the results of the functions that the app's rules call; missing if they call none. The arguments are those of
     *      the rules, before names such as %%user.id are replaced.
     * out: {"types": {Type: {"read": query text, "write": query text, "insert": bool, "delete": bool,
     *                        "readable_fields": null (all) or [name], "writable_fields": null (all) or [name],
     *                        "role": text (for explain), "check_write": bool (default false),
     *                        "grants": bool (default true)}}}
     * "grants" false: the plugin only takes away; a type that no plugin grants is denied.
     * A type that is missing in the answer is denied. "FALSEPREDICATE" denies, "TRUEPREDICATE" allows all.
     */
    sluice_status (*_Nullable open_session)(void *_Nullable state, sluice_text input, const sluice_sink *_Nonnull answer);

    /*
     * check_subscription
     * in:  {"user": as above, "queries": [{"type": text, "query": canonical text}]}; the types of which objects come along by links are
     *      among them, with TRUEPREDICATE
     * out: nothing (accepted), or {"queries": [{"type":…, "query":…}]} (narrowed: ANDed to what was asked); SLUICE_DENY
     *      with the reason refuses the whole set.
     */
    sluice_status (*_Nullable check_subscription)(void *_Nullable state, sluice_text input, const sluice_sink *_Nonnull answer);

    /*
     * check_write: called for the types that asked for it (open_session, "check_write": true), once per changeset, or for each part of
     * one with more than 4 MiB of images. The writes and their user are rows (sluice_rows.h).
     * out: {"writes": "allow"}, which allows all of them, or {"writes": [{"verdict": "allow"} |
     *       {"verdict": "deny", "reason": text, "rule": text, "fields": [text]} | {"verdict": "amend", "set": object}]}, as many as
     *      came in. "reason" is for the user, "rule" for operators alone: the part of the plugin that decided; "fields" are the
     *      properties at fault, which apps are told. All three may be left out. Also
     *      "records": [{"stream": text, "key": text or null, "record": any JSON}]: the gateway appends them to the topics
     *      <app>.records.<stream>, and the writes go on only when it has (see docs/plugin-abi.md).
     */
    sluice_status (*_Nullable check_write)(void *_Nullable state, const sluice_writes *_Nonnull writes, const sluice_sink *_Nonnull answer);

    /*
     * ingest: called with batches of asymmetric objects of one type, in order. Each is an insert of the batch's one type with the
     * object in `after`; user_id, user_type and user are empty texts.
     * out: {"objects": "accept"}, which accepts all of them as they are, or {"objects": [{"verdict": "accept"} |
     *       {"verdict": "accept", "object": object (transformed)} | {"verdict": "accept", "set": object (the members to set)} |
     *       {"verdict": "route", "type": text, "object": object} |
     *       {"verdict": "split", "objects": [{"type": text, "object": object}, ...]} (all of them or none) |
     *       {"verdict": "drop", "reason": text} | {"verdict": "reject", "reason": text}, ...]}, as many as came in.
     *      "records" as with check_write.
     */
    sluice_status (*_Nullable ingest)(void *_Nullable state, const sluice_writes *_Nonnull objects, const sluice_sink *_Nonnull answer);

    /*
     * user_changed: the user's data changed; the gateway calls open_session afterwards for each of the user's sessions.
     * in:  {"user": as above}
     */
    sluice_status (*_Nullable user_changed)(void *_Nullable state, sluice_text input, const sluice_sink *_Nonnull answer);
} sluice_plugin;

/*
 * The one exported function. Fills `plugin` (zeroed, with size and abi set to the host's) and returns SLUICE_OK, or puts
 * a reason into `answer` and returns SLUICE_FAILED.
 */
sluice_status sluice_plugin_entry(const sluice_host *_Nonnull host, sluice_plugin *_Nonnull plugin,
                                  const sluice_sink *_Nonnull answer);

#ifdef __cplusplus
}
#endif

#endif
