/*
 * A plugin that misbehaves on demand, for the tests of the plugin host. What it does is chosen by a
 * word in its input, such as the id of the user who opens a session: see `misbehave`. Otherwise it behaves.
 */
#define _GNU_SOURCE /* memmem */

#include "sluice_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "break_out.h"

struct state {
    const sluice_host *host;
    int configured; /* times that configure was called */
    int misspells;  /* whether it is configured to answer open_session in a form that there is not */
    int sessions;   /* times that open_session was called */
    /* Whether it is configured to refuse what is no configuration; to say nothing of how often it was configured; to answer every other
       session otherwise; to answer otherwise in each process; to give a verdict too few; to take three seconds for many writes; to keep
       16 KiB of each session; to fall over a session without a user; to give an identity of another form. */
    int is_strict, stays, wavers, differs, miscounts, tires, leaks, needs_user, misidentifies;
};

static sluice_text text(const char *literal) {
    sluice_text result = {literal, strlen(literal)};
    return result;
}

static void put(const sluice_sink *answer, const char *words) { answer->write(answer->context, text(words)); }

static int has(sluice_text input, const char *word) { return memmem(input.data, input.length, word, strlen(word)) != NULL; }

/* Answers a session without any right, whose role tells something. */
static void put_role(const sluice_sink *answer, const char *told) {
    put(answer, "{\"types\":{\"Store\":{\"read\":\"FALSEPREDICATE\",\"write\":\"FALSEPREDICATE\",\"insert\":false,"
                "\"delete\":false,\"role\":\"");
    put(answer, told);
    put(answer, "\"}}}");
}

/* As many of one verdict as there are. */
static void put_verdicts(const sluice_sink *answer, const char *list, const char *verdict, int count) {
    put(answer, list);
    for (int i = 0; i < count; i++) {
        if (i) put(answer, ",");
        put(answer, verdict);
    }
    put(answer, "]}");
}

/* Whether the input names a file behind the word, up to a semicolon, that is not there. */
static int lacks(sluice_text input, const char *word) {
    const char *named = memmem(input.data, input.length, word, strlen(word));
    if (!named) return 0;
    char name[1024] = "";
    const char *begin = named + strlen(word), *end = memchr(begin, ';', (size_t)(input.data + input.length - begin));
    if (end && (size_t)(end - begin) < sizeof name) memcpy(name, begin, (size_t)(end - begin));
    return access(name, F_OK) != 0;
}

/* Uses that much of this thread's processor time. */
static void spin(long milliseconds) {
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds);
}

/* Writes a message to the gateway by itself: its length, its kind, so many bytes of zero and so many of 'a'. */
static void forge(unsigned char kind, size_t zeros, size_t letters) {
    size_t length = 1 + zeros + letters;
    unsigned char *message = calloc(1, 4 + length);
    if (!message) return;
    for (int i = 0; i < 4; i++) message[i] = (unsigned char)(length >> (8 * i));
    message[4] = kind;
    memset(message + 5 + zeros, 'a', letters);
    for (size_t sent = 0; sent < 4 + length;) {
        ssize_t count = write(3, message + sent, 4 + length - sent);
        if (count < 0 && errno != EAGAIN) break;
        if (count > 0) sent += (size_t)count;
    }
    free(message);
}

/* Returns whether it has answered in `status`. */
static int misbehave(struct state *state, sluice_text input, const sluice_sink *answer, sluice_status *status) {
    *status = SLUICE_OK;
    if (has(input, "do-crash")) raise(SIGSEGV);
    if (has(input, "do-abort")) abort();
    if (has(input, "do-exit")) _exit(3);
    if (has(input, "do-hang"))
        for (;;) pause();
    if (has(input, "do-loop"))
        for (volatile int i = 0;; i = !i) {}
    if (has(input, "do-spin")) spin(200);
    if (has(input, "do-nap"))
        for (;;) usleep(2000);
    if (has(input, "do-slow")) usleep(150 * 1000);
    if (has(input, "do-forge-a-count")) forge(7, 8, 300);
    if (has(input, "do-forge-a-line")) forge(3, 1, 1 << 20);
    if (has(input, "do-write-to-socket")) {
        if (write(3, "this is not a message, whoever reads it", 39) < 0) return 1;
    }
    if (has(input, "do-speak")) {
        state->host->log(state->host->context, SLUICE_LOG_WARNING, text("a word through the host"));
        fprintf(stderr, "a word on standard error\n");
    }
    if (has(input, "do-babble"))
        for (int i = 0; i < 100000; i++) fprintf(stderr, "babble %d\n", i);
    if (has(input, "do-garbage")) {
        put(answer, "{\"types\": oops");
        return 1;
    }
    if (has(input, "do-misspell")) {
        put(answer, "{\"types\":{\"Store\":{\"read\":\"TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,"
                    "\"delete\":true,\"readable_field\":[\"name\"]}}}");
        return 1;
    }
    if (has(input, "do-overflow")) {
        for (int i = 0; i < 40 * 1024; i++) {
            static char kilobyte[1024];
            sluice_text piece = {kilobyte, sizeof kilobyte};
            answer->write(answer->context, piece);
        }
        return 1;
    }
    if (has(input, "do-deny")) {
        put(answer, "not today");
        *status = SLUICE_DENY;
        return 1;
    }
    if (has(input, "do-fail")) {
        put(answer, "the directory service is down");
        *status = SLUICE_FAILED;
        return 1;
    }
    if (has(input, "do-look")) {
        size_t bytes;
        if (ask_user(state->host, state->host->context, "ann", 3, &bytes) == SLUICE_FAILED) {
            put(answer, "nobody told it who ann is");
            *status = SLUICE_FAILED;
            return 1;
        }
    }
    /* Until there is a file. */
    if (lacks(input, "do-await:")) {
        put(answer, "what it waits for is not there");
        *status = SLUICE_FAILED;
        return 1;
    }
    if (has(input, "do-odd-status")) {
        *status = (sluice_status)77;
        return 1;
    }
    if (has(input, "do-leak")) {
        for (;;) {
            char *block = malloc(1 << 20);
            if (!block) abort();
            memset(block, 1, 1 << 20);
        }
    }
    if (has(input, "do-multiply")) {
        char told[64] = "";
        multiply(told, sizeof told);
        put_role(answer, told);
        return 1;
    }
    if (has(input, "do-break-out")) {
        char told[2048];
        break_out(told, sizeof told);
        put_role(answer, told);
        return 1;
    }
    if (has(input, "do-ask")) {
        char told[2048];
        ask_everything(state->host, told, sizeof told);
        put_role(answer, told);
        return 1;
    }
    const char *path = memmem(input.data, input.length, "do-read:", 8);
    if (path) {
        char name[1024] = "", text_of_file[64] = "";
        const char *end = memchr(path, ';', (size_t)(input.data + input.length - path));
        if (end && (size_t)(end - path) < sizeof name) memcpy(name, path + 8, (size_t)(end - path) - 8);
        int file = open(name, O_RDONLY);
        if (file < 0 || read(file, text_of_file, sizeof text_of_file - 1) < 0) snprintf(text_of_file, sizeof text_of_file, "%s", name_of(errno));
        put_role(answer, text_of_file);
        return 1;
    }
    if (has(input, "do-share"))
        for (;;) {
            char *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            if (block == MAP_FAILED) abort();
            memset(block, 1, 1 << 20);
        }
    return 0;
}

static sluice_status configure(void *opaque, sluice_text input, const sluice_sink *answer) {
    struct state *state = opaque;
    sluice_status status;
    if (misbehave(state, input, answer, &status)) return status;
    if (state->is_strict && has(input, "no-plugin-knows-this-key")) return SLUICE_DENY;
    state->configured++;
    state->misspells = has(input, "configured-to-misspell");
    state->is_strict |= has(input, "configured-strictly");
    state->stays = has(input, "configured-to-stay");
    state->wavers = has(input, "configured-to-waver");
    state->differs = has(input, "configured-to-differ");
    state->miscounts = has(input, "configured-to-miscount");
    state->tires = has(input, "configured-to-tire");
    state->leaks = has(input, "configured-to-leak");
    state->needs_user = has(input, "configured-to-need-a-user");
    state->misidentifies = has(input, "configured-to-misidentify");
    if (lacks(input, "do-need:")) abort();
    if (has(input, "do-warn")) put(answer, "{\"warnings\":[\"a warning\"]}");
    return SLUICE_OK;
}

/* The role tells how often this instance was configured. */
static sluice_status open_session(void *opaque, sluice_text input, const sluice_sink *answer) {
    struct state *state = opaque;
    sluice_status status;
    if (misbehave(state, input, answer, &status)) return status;
    if (state->misspells) {
        put(answer, "{\"typs\":{}}");
        return SLUICE_OK;
    }
    state->sessions++;
    if (state->needs_user && !has(input, "\"user\"")) raise(SIGSEGV);
    if (state->leaks) {
        char *kept = malloc(16 << 10);
        if (kept) memset(kept, 1, 16 << 10);
        status = kept ? SLUICE_OK : SLUICE_FAILED;
    }
    int told = state->stays ? 0 : state->configured;
    if (state->wavers) told = state->sessions % 2;
    if (state->differs) told = getpid();
    char line[2048];
    if (has(input, "do-escape")) {
        put(answer, "{\"types\":{\"Order\":{\"read\":\"FALSEPREDICATE) OR (TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,"
                    "\"delete\":true}}}");
        return SLUICE_OK;
    }
    const char *harbour = ",\"Port\":{\"read\":\"TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,\"delete\":true},"
                          "\"Ship\":{\"read\":\"TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,\"delete\":true}";
    const char *order = has(input, "do-misbind")
        ? ",\"Order\":{\"read\":\"TRUEPREDICATE\",\"write\":\"nothing == 1\",\"insert\":true,\"delete\":true}"
        : ",\"Order\":{\"read\":\"TRUEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,\"delete\":true,"
                        "\"writable_fields\":[\"_id\",\"store\",\"title\",\"size\"],\"check_write\":true}";
    const char *reading = has(input, "do-misbind")
        ? ",\"Reading\":{\"read\":\"FALSEPREDICATE\",\"write\":\"nothing == 1\",\"insert\":true,\"delete\":false}"
        : ",\"Reading\":{\"read\":\"FALSEPREDICATE\",\"write\":\"TRUEPREDICATE\",\"insert\":true,\"delete\":false}";
    snprintf(line, sizeof line,
             "{\"types\":{\"Store\":{\"read\":\"size > 1\",\"write\":\"TRUEPREDICATE\",\"insert\":true,\"delete\":false,"
             "\"readable_fields\":[\"_id\",\"name\"],\"role\":\"configured %d\",\"check_write\":true}%s%s%s}}",
             told, has(input, "\"Order\"") ? order : "", has(input, "\"Reading\"") ? reading : "", has(input, "\"Port\"") ? harbour : "");
    put(answer, line);
    return status;
}

static sluice_status check_subscription(void *opaque, sluice_text input, const sluice_sink *answer) {
    sluice_status status;
    if (misbehave(opaque, input, answer, &status)) return status;
    if (has(input, "do-narrow")) put(answer, "{\"queries\":[{\"type\":\"Store\",\"query\":\"size < 100\"}]}");
    if (has(input, "do-small")) put(answer, "{\"queries\":[{\"type\":\"Order\",\"query\":\"size < 100\"}]}");
    if (has(input, "do-port") && has(input, "{\"type\":\"Port\",\"query\":\"TRUEPREDICATE\"}"))
        put(answer, "{\"queries\":[{\"type\":\"Port\",\"query\":\"name != 'B'\"}]}");
    if (has(input, "do-stray")) put(answer, "{\"queries\":[{\"type\":\"Other\",\"query\":\"TRUEPREDICATE\"}]}");
    return SLUICE_OK;
}

static const char three[] =
    "{\"writes\":[{\"verdict\":\"allow\"},{\"verdict\":\"deny\",\"reason\":\"the second is not allowed\",\"rule\":\"clause 2\","
    "\"fields\":[\"size\",\"name\"]},{\"verdict\":\"amend\",\"set\":{\"size\":7}}]}";

/* What a plugin behind this one sees tells it that the write was amended before. */
static const char *amendment(sluice_text input) {
    if (has(input, "do-amend the key")) return "{\"verdict\":\"amend\",\"set\":{\"_id\":\"another\"}}";
    if (has(input, "do-amend an order")) return "{\"verdict\":\"amend\",\"set\":{\"title\":\"amended\",\"secret\":\"amended\"}}";
    if (has(input, "amended once")) return "{\"verdict\":\"amend\",\"set\":{\"name\":\"amended twice\"}}";
    return "{\"verdict\":\"amend\",\"set\":{\"name\":\"amended once\",\"size\":7}}";
}

static const char odd_field[] = "{\"writes\":[{\"verdict\":\"deny\",\"reason\":\"no\",\"fields\":[\"name\",\"nmae\"]}]}";

/* All the text of a batch, wherever in its rows it is, so that its words are found. */
struct words {
    char *data;
    size_t length, room;
};

static void add(struct words *words, const char *data, size_t length) {
    if (words->length + length + 1 > words->room) {
        words->room = 2 * (words->length + length + 1);
        words->data = realloc(words->data, words->room);
        if (!words->data) abort();
    }
    if (length) memcpy(words->data + words->length, data, length);
    words->length += length;
    words->data[words->length++] = ' ';
}

static void add_row(struct words *words, const sluice_row *row) {
    sluice_text value;
    sluice_row inside;
    for (uint32_t column = 0; column < row->count; column++) {
        if (sluice_row_text(row, column, &value)) add(words, value.data, value.length);
        if (sluice_row_inside(row, column, &inside)) add_row(words, &inside);
    }
}

static void add_rows(struct words *words, const sluice_writes *batch) {
    for (uint32_t i = 0; i < batch->write_count; i++) {
        add_row(words, &sluice_write_at(batch, i)->before);
        add_row(words, &sluice_write_at(batch, i)->after);
    }
}

static sluice_status check_write(void *opaque, const sluice_writes *batch, const sluice_sink *answer) {
    struct state *state = opaque;
    struct words words = {0};
    sluice_status status;
    add(&words, batch->user.data, batch->user.length);
    add_rows(&words, batch);
    sluice_text input = {words.data, words.length};
    if (!misbehave(state, input, answer, &status)) {
        int count = has(input, "one alone") ? 1 : (int)batch->write_count;
        if (state->miscounts && count) count--;
        if (state->tires && count >= 1000) spin(3000);
        if (has(input, "do-three")) {
            put(answer, three);
        } else if (has(input, "all together")) {
            put(answer, "{\"writes\":\"allow\"}");
        } else if (has(input, "none of them")) {
            put(answer, "{\"writes\":\"deny\"}");
        } else if (has(input, "odd field")) {
            put(answer, odd_field);
        } else if (has(input, "do-amend")) {
            put_verdicts(answer, "{\"writes\":[", amendment(input), (int)batch->write_count);
        } else {
            put_verdicts(answer, "{\"writes\":[", "{\"verdict\":\"allow\"}", count);
        }
    }
    free(words.data);
    return status;
}

static void judge(sluice_text input, int count, const sluice_sink *answer) {
    if (has(input, "do-keep")) {
        /* A record of a few bytes, or of more than a producer takes. */
        static char kilobyte[1024];
        sluice_text piece = {kilobyte, sizeof kilobyte};
        memset(kilobyte, 'x', sizeof kilobyte);
        put(answer, "{\"records\":[{\"stream\":\"seen\",\"key\":\"k\",\"record\":{\"text\":\"");
        for (int i = 0; has(input, "do-keep too much") && i < 21 * 1024; i++) answer->write(answer->context, piece);
        put_verdicts(answer, "\"}}],\"objects\":[", "{\"verdict\":\"accept\"}", count);
        return;
    }
    if (has(input, "do-set")) {
        put(answer, "{\"objects\":[{\"verdict\":\"accept\",\"set\":{\"value\":2.5}},{\"verdict\":\"accept\",\"set\":{\"value\":\"hot\"}},"
                    "{\"verdict\":\"accept\",\"set\":{\"odd\":1}}]}");
        return;
    }
    if (has(input, "do-both")) {
        put(answer, "{\"objects\":[{\"verdict\":\"accept\",\"set\":{\"value\":2.5},\"object\":{\"_id\":\"a\",\"value\":1}}]}");
        return;
    }
    if (!has(input, "do-each") && !has(input, "one alone")) {
        put_verdicts(answer, "{\"objects\":[", "{\"verdict\":\"accept\"}", count);
        return;
    }
    put(answer, "{\"objects\":[{\"verdict\":\"accept\"},{\"verdict\":\"accept\",\"object\":{\"_id\":\"b\",\"value\":2.5}},"
                "{\"verdict\":\"route\",\"type\":\"Rare\",\"object\":{\"_id\":\"c\",\"note\":\"rare\"}},{\"verdict\":\"drop\",\"reason\":\"old\"},"
                "{\"verdict\":\"reject\",\"reason\":\"too hot\"},{\"verdict\":\"accept\",\"object\":{\"_id\":\"f\",\"value\":\"hot\"}},"
                "{\"verdict\":\"split\",\"objects\":[{\"type\":\"Rare\",\"object\":{\"_id\":\"g1\",\"note\":\"rare\"}},"
                "{\"type\":\"Reading\",\"object\":{\"_id\":\"g2\",\"value\":1}}]},"
                "{\"verdict\":\"split\",\"objects\":[{\"type\":\"Rare\",\"object\":{\"_id\":\"h1\"}},"
                "{\"type\":\"Nothing\",\"object\":{\"_id\":\"h2\"}}]}]}");
}

static sluice_status ingest(void *opaque, const sluice_writes *batch, const sluice_sink *answer) {
    struct words words = {0};
    sluice_status status;
    /* A batch without objects names its type nevertheless. */
    for (uint32_t i = 0; i < batch->type_count; i++) add(&words, sluice_type_at(batch, i)->name.data, sluice_type_at(batch, i)->name.length);
    add_rows(&words, batch);
    sluice_text input = {words.data, words.length};
    if (!misbehave(opaque, input, answer, &status)) judge(input, (int)batch->write_count, answer);
    free(words.data);
    return status;
}

static sluice_status user_changed(void *opaque, sluice_text input, const sluice_sink *answer) {
    struct state *state = opaque;
    sluice_status status;
    if (misbehave(state, input, answer, &status)) return status;
    state->configured += 100;
    return SLUICE_OK;
}

/* Answers with what it was given. An odd form where it is asked for one. */
static sluice_status call_function(void *opaque, sluice_text input, const sluice_sink *answer) {
    sluice_status status;
    if (misbehave(opaque, input, answer, &status)) return status;
    if (has(input, "do-nothing")) return SLUICE_OK;
    put(answer, "{\"given\":");
    answer->write(answer->context, input);
    put(answer, "}");
    return SLUICE_OK;
}

/* Knows Ann, whose payload names her, and takes the rest of its words for odd identities. */
static sluice_status authenticate(void *opaque, sluice_text input, const sluice_sink *answer) {
    sluice_status status;
    if (misbehave(opaque, input, answer, &status)) return status;
    if (((struct state *)opaque)->misidentifies) put(answer, "{\"id\":1}");
    else if (has(input, "do-no-id")) put(answer, "{\"name\":\"Ann\"}");
    else if (has(input, "do-empty-id")) put(answer, "{\"id\":\"\"}");
    else if (has(input, "do-odd-name")) put(answer, "{\"id\":\"ann\",\"name\":1}");
    else if (has(input, "do-odd-key")) put(answer, "{\"id\":\"ann\",\"nme\":\"Ann\"}");
    else if (has(input, "\"ann\"")) put(answer, "{\"id\":\"ann\",\"name\":\"Ann\"}");
    else {
        put(answer, "It knows Ann alone.");
        return SLUICE_DENY;
    }
    return SLUICE_OK;
}

sluice_status sluice_plugin_entry(const sluice_host *host, sluice_plugin *plugin, const sluice_sink *answer) {
    (void)answer;
    struct state *state = calloc(1, sizeof *state);
    if (!state) return SLUICE_FAILED;
    state->host = host;
    size_t bytes;
    status_at_loading = ask_user(host, host->context, "ann", 3, &bytes);
    uint32_t room = plugin->size;
    plugin->size = sizeof *plugin;
    plugin->abi_major = SLUICE_PLUGIN_ABI_MAJOR;
    plugin->abi_minor = SLUICE_PLUGIN_ABI_MINOR;
    plugin->state = state;
    plugin->name = text("FaultyC");
    plugin->version = text("0.1");
    plugin->configure = configure;
    plugin->open_session = open_session;
    plugin->check_subscription = check_subscription;
    plugin->check_write = check_write;
    plugin->ingest = ingest;
    plugin->user_changed = user_changed;
    if (SLUICE_HAS(sluice_plugin, call_function, room)) plugin->call_function = call_function;
    if (SLUICE_HAS(sluice_plugin, authenticate, room)) plugin->authenticate = authenticate;
    return SLUICE_OK;
}
