/*
 * What the host's functions answer, asked rightly and wrongly. Each question is tried, and what came of it is told: the status and,
 * where it was SLUICE_OK, the answer's length.
 */
#ifndef ASK_H
#define ASK_H

static sluice_status status_at_loading;

static void count_bytes(void *context, sluice_text piece) { *(size_t *)context += piece.length; }

static sluice_status ask_user(const sluice_host *host, void *context, const char *user, size_t length, size_t *bytes) {
    sluice_sink sink = {bytes, count_bytes};
    sluice_text name = {user, length};
    *bytes = 0;
    return host->custom_data(context, name, &sink);
}

static sluice_status ask_predicate(const sluice_host *host, const char *type, const char *predicate, size_t *bytes) {
    sluice_sink sink = {bytes, count_bytes};
    sluice_text name = {type, strlen(type)}, text = {predicate, strlen(predicate)};
    *bytes = 0;
    return host->parse_predicate(host->context, name, text, &sink);
}

static void *ask_on_a_thread(void *host) {
    size_t bytes;
    return (void *)(intptr_t)ask_user(host, ((const sluice_host *)host)->context, "ann", 3, &bytes);
}

static void tell_status(char *told, size_t size, const char *what, sluice_status status, size_t bytes) {
    const char *words[] = {"ok", "deny", "failed"};
    size_t length = strlen(told);
    snprintf(told + length, size - length, "%s%s=%s%s", length ? " " : "", what, status <= SLUICE_FAILED ? words[status] : "odd",
             bytes ? "+" : "");
}

static void ask_everything(const sluice_host *host, char *told, size_t size) {
    size_t bytes = 0;
    sluice_status status;
    told[0] = 0;
    tell_status(told, size, "loading", status_at_loading, 0);
    status = ask_user(host, host->context, "ann", 3, &bytes), tell_status(told, size, "user", status, bytes);
    status = ask_user(host, host->context, "nobody", 6, &bytes), tell_status(told, size, "nobody", status, bytes);
    status = ask_user(host, host->context, NULL, 1000, &bytes), tell_status(told, size, "null", status, bytes);
    status = ask_user(host, NULL, "ann", 3, &bytes), tell_status(told, size, "no-context", status, bytes);
    status = ask_user(host, &bytes, "ann", 3, &bytes), tell_status(told, size, "bad-context", status, bytes);
    status = ask_user(host, host->context, "ann", SIZE_MAX, &bytes), tell_status(told, size, "oversized", status, bytes);
    status = ask_predicate(host, "Store", "size > 1", &bytes), tell_status(told, size, "predicate", status, bytes);
    status = ask_predicate(host, "Store", "size >", &bytes), tell_status(told, size, "bad-predicate", status, bytes);
    pthread_t thread;
    void *answer = NULL;
    if (pthread_create(&thread, NULL, ask_on_a_thread, (void *)host) == 0) pthread_join(thread, &answer);
    tell_status(told, size, "thread", (sluice_status)(intptr_t)answer, 0);
    sluice_text good = {"asked", 5}, bad = {"A name", 6}, endless = {"a", SIZE_MAX};
    tell_status(told, size, "count", host->count(host->context, good, 3), 0);
    tell_status(told, size, "bad-name", host->count(host->context, bad, 1), 0);
    tell_status(told, size, "endless-name", host->count(host->context, endless, 1), 0);
    tell_status(told, size, "count-nowhere", host->count(NULL, good, 1), 0);
    for (int i = 0; i < 100; i++) {
        char name[16];
        sluice_text text = {name, (size_t)snprintf(name, sizeof name, "counter_%d", i)};
        status = host->count(host->context, text, 1);
    }
    tell_status(told, size, "many-counters", status, 0);
    host->log(&bytes, SLUICE_LOG_ERROR, good); /* nobody hears it */
}

#endif
