// wsload PORT PATH CONNECTIONS HELLOS [UPLOADS [BATCH]]
//
// One thread, one epoll: opens WebSockets on 127.0.0.1, sends each a record of HELLOS (client frames, ready made), and
// counts what comes back. Of a message it reads the sluice.v1 skeleton: field 4 is the end of a bootstrap, field 5 are
// commits, in them fields 1 are commits, in those fields 3 are changes; field 6 acknowledges uploads up to its field 1.
// If PATH is that of Realm's sync protocol, it speaks that (realm.c), and HELLOS has queries.
//
// A file of records has, one after another, four bytes of length (little-endian) and as many bytes. Record n of either file
// belongs to connection n modulo CONNECTIONS; when HELLOS has fewer they are used again and again.
//
// Prints "ready" and the bytes received when every connection has had its bootstrap, then "got CHANGES MESSAGES BYTES" each
// time that every connection has, on average, one change more. With UPLOADS, whose records have BATCH changesets each, it
// reads lines "COUNT WINDOW" instead: every connection then sends its next COUNT records, at most WINDOW of them
// unacknowledged, and "acked SECONDS P50 P99" tells, in seconds, how long all of it took and one record until it was
// acknowledged. If WSLOAD_TIMES names a file, it writes the time of each change to it, seconds of CLOCK_MONOTONIC as a
// double. Ends when a connection ends, which is a failure.
#define _GNU_SOURCE
#include "wsload.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static unsigned long long changes, messages, total, reached, ready_count;
static unsigned long long connections;
static struct connection *all;
static struct record *hellos, *uploads;
static size_t hello_count, upload_count;
size_t batch = 1;
int uploading;
static int is_realm;
static FILE *times;
// Of the round of uploads under way.
static size_t goal, window, waits_count;
static double *waits;

void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Writes everything. The sockets do not block, so it waits for a full one.
void put(int fd, const void *bytes, size_t count) {
    for (size_t at = 0; at < count;) {
        ssize_t n = write(fd, (const char *)bytes + at, count - at);
        if (n > 0) at += (size_t)n;
        if (n >= 0 || errno == EINTR) continue;
        if (errno != EAGAIN) fail("write");
        struct pollfd poll_for = {.fd = fd, .events = POLLOUT};
        poll(&poll_for, 1, -1);
    }
}

struct record hello_of(struct connection *c) { return hellos[(size_t)(c - all) % hello_count]; }

void count_message(void) { messages++; }

void changed(void) {
    changes++;
    if (!times) return;
    double time = now();
    if (fwrite(&time, sizeof time, 1, times) != 1) fail("WSLOAD_TIMES");
}

void bootstrapped(struct connection *c) {
    if (c->ready) return;
    c->ready = 1;
    if (++ready_count < connections) return;
    printf("ready %llu\n", total);
    fflush(stdout);
}

static struct record *records(const char *path, size_t *count) {
    FILE *file = fopen(path, "r");
    if (!file || fseek(file, 0, SEEK_END)) fail(path);
    size_t size = (size_t)ftell(file);
    unsigned char *bytes = malloc(size + 1);
    rewind(file);
    if (!bytes || fread(bytes, 1, size, file) != size) fail(path);
    fclose(file);
    struct record *list = 0;
    *count = 0;
    for (size_t at = 0; at + 4 <= size;) {
        size_t length = bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | (size_t)bytes[at + 3] << 24;
        if (!(*count & (*count - 1)) && !(list = realloc(list, (*count ? *count * 2 : 1) * sizeof *list))) fail("realloc");
        list[(*count)++] = (struct record){(char *)bytes + at + 4, length};
        at += 4 + length;
    }
    if (!*count) { fprintf(stderr, "wsload: %s has no record\n", path); exit(1); }
    return list;
}

static const unsigned char *varint(const unsigned char *p, const unsigned char *end, uint64_t *value) {
    *value = 0;
    for (int shift = 0; p < end && shift < 64; shift += 7) {
        *value |= (uint64_t)(*p & 127) << shift;
        if (!(*p++ & 128)) return p;
    }
    fprintf(stderr, "wsload: a message is malformed\n");
    exit(1);
}

// Counts the changes of a message; depth 0 is the server message, 1 the commits, 2 a commit.
static void walk(const unsigned char *p, const unsigned char *end, int depth) {
    static const uint64_t wanted[] = {5, 1, 3};
    while (p < end) {
        uint64_t tag, length;
        p = varint(p, end, &tag);
        switch (tag & 7) {
        case 0: p = varint(p, end, &length); continue;
        case 1: p += 8; continue;
        case 5: p += 4; continue;
        case 2: break;
        default: fprintf(stderr, "wsload: wire type %d\n", (int)(tag & 7)); exit(1);
        }
        p = varint(p, end, &length);
        if (tag >> 3 == wanted[depth]) {
            if (depth == 2) changed();
            else walk(p, p + length, depth + 1);
        }
        p += length;
    }
}

// Joins records into one write; one without bytes sends the rest.
static void gather(int fd, struct record record) {
    static char joined[1 << 16];
    static size_t filled;
    if (filled && (!record.count || filled + record.count > sizeof joined)) {
        put(fd, joined, filled);
        filled = 0;
    }
    if (record.count > sizeof joined) return put(fd, record.bytes, record.count);
    if (record.count) memcpy(joined + filled, record.bytes, record.count);
    filled += record.count;
}

// Sends what the window has room for.
static void upload(struct connection *c) {
    while (c->sent < goal && c->sent - c->acked < window) {
        size_t index = c->sent * connections + (size_t)(c - all);
        if (index >= upload_count) { fprintf(stderr, "wsload: there are no more uploads\n"); exit(1); }
        c->since[c->sent % window] = now();
        if (is_realm) realm_upload(c, uploads[index]);
        else gather(c->fd, uploads[index]);
        c->sent++;
    }
    gather(c->fd, (struct record){0});
}

void acknowledged(struct connection *c, size_t count) {
    if (!uploads) return;
    for (double time = now(); c->acked < count; c->acked++) waits[waits_count++] = time - c->since[c->acked % window];
    upload(c);
}

// Reads the number of the last changeset that a message acknowledges.
static void read_acknowledgement(struct connection *c, const unsigned char *p, size_t length) {
    uint64_t number;
    const unsigned char *field, *end = p + length;
    p = varint(p, end, &number);
    field = varint(p, end, &number) + 1;
    varint(field, end, &number);
    acknowledged(c, (size_t)number / batch);
}

static void message(struct connection *c, const unsigned char *p, size_t length) {
    if (!length) return;
    int field = p[0] >> 3;
    if (field == 7 || field == 10 || field == 11) {
        fprintf(stderr, "wsload: the server says an error: %.*s\n", (int)length, (const char *)p);
        exit(1);
    }
    if (field == 6 && uploads) read_acknowledgement(c, p, length);
    if (field == 4) bootstrapped(c);
    if (field != 5) return;
    count_message();
    walk(p, p + length, 0);
}

// A server closes a connection whose pings are not answered.
static void pong(int fd, const unsigned char *p, size_t length) {
    unsigned char frame[6 + 125] = {0x8a, 0x80 | (unsigned char)length};
    memcpy(frame + 6, p, length);
    if (write(fd, frame, 6 + length) < 0) fail("pong");
}

// Handles the whole frames in the connection's buffer and keeps the rest.
static void frames(struct connection *c) {
    size_t at = 0;
    while (c->count - at >= 2) {
        unsigned char *p = c->bytes + at;
        size_t head = 2, length = p[1] & 127;
        if (length == 126) head = 4;
        if (length == 127) head = 10;
        if (c->count - at < head) break;
        if (head == 4) length = (size_t)p[2] << 8 | p[3];
        if (head == 10) for (length = 0, head = 2; head < 10; head++) length = length << 8 | p[head];
        if (c->count - at < head + length) break;
        if ((p[0] & 15) == 9) pong(c->fd, p + head, length);
        if ((p[0] & 15) == 8) { fprintf(stderr, "wsload: the server closed a connection\n"); exit(1); }
        if ((p[0] & 15) == 2) (is_realm ? realm_message : message)(c, p + head, length);
        at += head + length;
    }
    memmove(c->bytes, c->bytes + at, c->count - at);
    c->count -= at;
    if (is_realm) realm_confirm(c);
}

// Takes the answer to the upgrade out of the buffer when all of it is there, and says hello.
static void upgraded(struct connection *c) {
    unsigned char *end = memmem(c->bytes, c->count, "\r\n\r\n", 4);
    if (end == NULL) return;
    if (memcmp(c->bytes, "HTTP/1.1 101", 12)) { fprintf(stderr, "wsload: %.*s\n", (int)c->count, (char *)c->bytes); exit(1); }
    c->count -= (size_t)(end + 4 - c->bytes);
    memmove(c->bytes, end + 4, c->count);
    c->upgraded = 1;
    if (is_realm) realm_begin(c);
    else put(c->fd, hello_of(c).bytes, hello_of(c).count);
}

static void receive(struct connection *c) {
    for (;;) {
        if (c->room - c->count < 16384) {
            c->room = c->room ? c->room * 2 : 32768;
            if (!(c->bytes = realloc(c->bytes, c->room))) fail("realloc");
        }
        size_t space = c->room - c->count;
        ssize_t n = read(c->fd, c->bytes + c->count, space);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) fail("read");
        if (n == 0) { fprintf(stderr, "wsload: a connection ended\n"); exit(1); }
        total += (unsigned long long)n;
        c->count += (size_t)n;
        if (!c->upgraded) upgraded(c);
        if (c->upgraded) frames(c);
        if ((size_t)n < space) return;
    }
}

// A gateway limits the requests of an address, so each 500 connections come from an address of their own.
static void begin_connection(struct connection *c, int number, int port, const char *path, int queue) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)}, own = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 256 * (1 + (uint32_t)number / 500));
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&own, sizeof own)) fail("bind");
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    char text[4096];
    int n = snprintf(text, sizeof text,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: %s\r\n\r\n", path,
        is_realm ? "com.mongodb.realm-query-sync#14" : "sluice.v1");
    if (write(fd, text, (size_t)n) != n) fail("write");
    c->fd = fd;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event);
}

static void poll_once(int queue) {
    struct epoll_event events[1024];
    int n = epoll_wait(queue, events, 1024, -1);
    for (int i = 0; i < n; i++) receive(events[i].data.ptr);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void upload_rounds(int queue) {
    size_t count, done = 0;
    while (scanf("%zu %zu", &count, &window) == 2) {
        goal = done + count;
        waits = calloc(connections * count, sizeof *waits);
        waits_count = 0;
        for (size_t i = 0; i < connections; i++) all[i].since = calloc(window, sizeof *all[i].since);
        double begin = now();
        for (size_t i = 0; i < connections; i++) upload(&all[i]);
        while (waits_count < connections * count) poll_once(queue);
        double seconds = now() - begin;
        qsort(waits, waits_count, sizeof *waits, ascending);
        printf("acked %.6f %.6f %.6f\n", seconds, waits[waits_count / 2], waits[waits_count * 99 / 100]);
        fflush(stdout);
        for (size_t i = 0; i < connections; i++) free(all[i].since);
        free(waits);
        done = goal;
    }
}

int main(int count, char **arguments) {
    if (count < 5 || count > 7) { fprintf(stderr, "usage: wsload PORT PATH CONNECTIONS HELLOS [UPLOADS [BATCH]]\n"); return 2; }
    is_realm = strstr(arguments[2], "/realm-sync") != 0;
    const char *file = getenv("WSLOAD_TIMES");
    if (file && !(times = fopen(file, "w"))) fail(file);
    connections = strtoull(arguments[3], 0, 10);
    hellos = records(arguments[4], &hello_count);
    if (count > 5) uploads = records(arguments[5], &upload_count);
    uploading = count > 5;
    if (count > 6) batch = strtoull(arguments[6], 0, 10);
    struct rlimit files = {connections + 64, connections + 64};
    setrlimit(RLIMIT_NOFILE, &files);
    int queue = epoll_create1(0);
    all = calloc(connections, sizeof *all);
    // A server that is asked for everything at once may rightly say that it is busy.
    const size_t at_once = 256;
    for (size_t i = 0; i < connections; i++) {
        begin_connection(&all[i], (int)i, atoi(arguments[1]), arguments[2], queue);
        while (i + 1 - ready_count >= at_once) poll_once(queue);
    }
    if (uploads) {
        while (ready_count < connections) poll_once(queue);
        upload_rounds(queue);
        return 0;
    }
    for (;;) {
        poll_once(queue);
        if (changes / connections > reached) {
            reached = changes / connections;
            if (times) fflush(times);
            printf("got %llu %llu %llu\n", changes, messages, total);
            fflush(stdout);
        }
    }
}
