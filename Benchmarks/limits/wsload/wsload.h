// The connections of wsload, which main.c opens and reads, and the functions of Realm's protocol (realm.c).
#ifndef WSLOAD_H
#define WSLOAD_H

#include <stddef.h>
#include <stdint.h>

struct connection {
    int fd, upgraded, ready;
    unsigned char *bytes; // the bytes of a frame that is not whole yet
    size_t count, room;
    size_t sent, acked; // records of uploads
    double *since;      // the times at which the unacknowledged ones were sent, a ring of the window
    // Realm's protocol: the last server version received, 1 if it was not confirmed yet, and the downloads integrated.
    uint64_t version, integrated;
    int owes;
};

struct record {
    const char *bytes;
    size_t count;
};

extern size_t batch;  // changesets in a record of uploads
extern int uploading; // 1 if there are uploads

void fail(const char *what);
void put(int fd, const void *bytes, size_t count);
struct record hello_of(struct connection *c);
// Counts a change that has arrived.
void changed(void);
void count_message(void);
// Counts the connection's bootstrap; later calls do nothing.
void bootstrapped(struct connection *c);
// Records that this many records of uploads are acknowledged, and sends more.
void acknowledged(struct connection *c, size_t records);

void realm_begin(struct connection *c);
void realm_message(struct connection *c, const unsigned char *p, size_t length);
void realm_upload(struct connection *c, struct record record);
// Confirms the versions received, unless an upload has done so.
void realm_confirm(struct connection *c);

#endif
