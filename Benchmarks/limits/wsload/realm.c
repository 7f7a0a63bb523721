// Clients of Realm's sync protocol: a header line of text and a body in each message. A changeset is counted, not decoded.
//
// The record of a connection is the JSON of its queries. Each client asks for a new file, takes the bootstrap of its empty set and sends
// its queries. It confirms newer server versions by an empty UPLOAD, once for all messages that were read at once. Integrating a
// DOWNLOAD makes a new version of the client, as its own changesets do.
#define _GNU_SOURCE
#include "wsload.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

// Clients compress bodies above this size.
static const size_t plain_bytes = 1024;

static void broken(const unsigned char *p, size_t length) {
    fprintf(stderr, "wsload: the server says: %.*s\n", (int)(length < 400 ? length : 400), (const char *)p);
    exit(1);
}

// Sends a header and a body as one masked frame.
static void send_message(struct connection *c, const void *body, size_t count, const char *format, ...) {
    char header[512];
    va_list list;
    va_start(list, format);
    size_t length = (size_t)vsnprintf(header, sizeof header, format, list);
    va_end(list);
    size_t all = length + count, head = 2;
    unsigned char *frame = malloc(all + 14);
    if (!frame) fail("malloc");
    frame[0] = 0x82;
    if (all < 126) {
        frame[1] = 0x80 | (unsigned char)all;
    } else if (all < 65536) {
        frame[1] = 0x80 | 126;
        for (; head < 4; head++) frame[head] = (unsigned char)(all >> 8 * (3 - head));
    } else {
        frame[1] = 0x80 | 127;
        for (; head < 10; head++) frame[head] = (unsigned char)(all >> 8 * (9 - head));
    }
    memset(frame + head, 0, 4);
    memcpy(frame + head + 4, header, length);
    memcpy(frame + head + 4 + length, body, count);
    put(c->fd, frame, head + 4 + all);
    free(frame);
}

void realm_begin(struct connection *c) {
    static const char body[] = "{\"schemaVersion\":0,\"sessionReason\":0}";
    send_message(c, body, sizeof body - 1, "bind 1 %zu 0 1 0\n", sizeof body - 1);
}

// Reads numbers that are separated by spaces.
static const char *numbers(const char *text, uint64_t *into, int count) {
    for (int i = 0; i < count; i++) {
        char *end;
        into[i] = strtoull(text, &end, 10);
        if (end == text) { fprintf(stderr, "wsload: a number is missing at %.40s\n", text); exit(1); }
        text = end;
    }
    return text;
}

static unsigned long long client_version(struct connection *c) { return 1 + c->sent * batch + c->integrated; }

// Counts the entries of a DOWNLOAD's body.
static void entries(const unsigned char *body, size_t size, size_t compressed) {
    static unsigned char *plain;
    static size_t room;
    if (compressed) {
        if (room < size && !(plain = realloc(plain, room = size))) fail("realloc");
        uLongf length = size;
        if (uncompress(plain, &length, body, compressed) != Z_OK) { fprintf(stderr, "wsload: a body is damaged\n"); exit(1); }
        body = plain;
    }
    for (const unsigned char *p = body, *end = body + size; p < end;) {
        uint64_t fields[6];
        p = (const unsigned char *)numbers((const char *)p, fields, 6) + 1 + fields[5];
        changed();
    }
}

static void download(struct connection *c, const char *header, const unsigned char *body) {
    uint64_t fields[9], sizes[3];
    char *text = (char *)numbers(header, fields, 9);
    strtod(text, &text);
    numbers(text, sizes, 3);
    uint64_t query = fields[7], state = fields[8];
    if (state == 0) return;
    if (fields[1] > c->version) c->owes = 1;
    c->version = fields[1];
    // The acknowledgements of uploads are counted by versions.
    if (c->owes && !uploading) c->integrated++;
    if (state == 2) {
        count_message();
        if (c->ready && sizes[1]) entries(body, sizes[1], sizes[0] ? sizes[2] : 0);
        if (fields[5] > 1) acknowledged(c, (size_t)(fields[5] - 1) / batch);
    } else if (query == 0) {
        struct record queries = hello_of(c);
        send_message(c, queries.bytes, queries.count, "query 1 1 %zu\n", queries.count);
    } else {
        bootstrapped(c);
    }
}

void realm_message(struct connection *c, const unsigned char *p, size_t length) {
    const unsigned char *line = memchr(p, '\n', length);
    if (!line) broken(p, length);
    const char *text = (const char *)p;
    uint64_t fields[3];
    if (!strncmp(text, "download ", 9)) {
        download(c, text + 9, line + 1);
    } else if (!strncmp(text, "ident ", 6)) {
        numbers(text + 6, fields, 3);
        send_message(c, "{}", 2, "ident 1 %llu %llu 0 0 0 0 0 2\n", (unsigned long long)fields[1], (unsigned long long)fields[2]);
    } else if (strncmp(text, "mark ", 5) && strncmp(text, "pong ", 5) && strncmp(text, "log_message ", 12)) {
        broken(p, length);
    }
}

static unsigned long long milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    // The protocol counts from 2015-01-01.
    return (unsigned long long)(t.tv_sec - 1420070400) * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

// A record has one changeset or more, each with four bytes of length (little-endian).
void realm_upload(struct connection *c, struct record record) {
    size_t room = record.count + batch * 96, size = 0;
    char *body = malloc(room);
    if (!body) fail("malloc");
    unsigned long long version = client_version(c), time = milliseconds();
    for (size_t at = 0; at + 4 <= record.count;) {
        const unsigned char *p = (const unsigned char *)record.bytes + at;
        size_t length = p[0] | p[1] << 8 | p[2] << 16 | (size_t)p[3] << 24;
        size += (size_t)sprintf(body + size, "%llu %llu %llu 0 %zu ", ++version, (unsigned long long)c->version, time, length);
        memcpy(body + size, p + 4, length);
        size += length;
        at += 4 + length;
    }
    uLongf packed = size > plain_bytes ? compressBound(size) : 0;
    unsigned char *bytes = packed ? malloc(packed) : 0;
    if (packed && (!bytes || compress2(bytes, &packed, (unsigned char *)body, size, 1) != Z_OK)) fail("compress2");
    int is_packed = packed && packed < size;
    send_message(c, is_packed ? (void *)bytes : body, is_packed ? packed : size, "upload 1 %d %zu %zu %llu %llu 0\n", is_packed, size,
        is_packed ? (size_t)packed : 0, version, (unsigned long long)c->version);
    free(bytes);
    free(body);
    c->owes = 0;
}

void realm_confirm(struct connection *c) {
    if (!c->owes) return;
    c->owes = 0;
    send_message(c, "", 0, "upload 1 0 0 0 %llu %llu 0\n", client_version(c), (unsigned long long)c->version);
}
