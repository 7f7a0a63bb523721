// pginsert CONNINFO TABLE FIRST COUNT CONNECTIONS WINDOW NOTE
//
// The least that durable single-row transactions cost: COUNT rows like those of the benchmarks' Item, with the keys
// FIRST … and a note of NOTE bytes, through CONNECTIONS connections, each row a prepared INSERT and a transaction of its
// own, in libpq's pipeline mode with at most WINDOW of them unanswered on each connection. Prints "inserted SECONDS".
#define _GNU_SOURCE
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct connection {
    PGconn *pq;
    int waiting;
};

static const char *note;
static long next, end, done;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(PGconn *pq) {
    fprintf(stderr, "pginsert: %s\n", PQerrorMessage(pq));
    exit(1);
}

static void refill(struct connection *c, int window) {
    while (next < end && c->waiting < window) {
        char key[24], store[24], quantity[24], price[32], name[64];
        const char *values[] = {key, store, quantity, price, name, note, "2023-11-14 22:13:20+00"};
        snprintf(key, sizeof key, "%ld", next);
        snprintf(store, sizeof store, "%ld", next % 100);
        snprintf(quantity, sizeof quantity, "%ld", next % 1000);
        snprintf(price, sizeof price, "%.2f", (double)next / 100);
        snprintf(name, sizeof name, "item %027ld", next);
        if (!PQsendQueryPrepared(c->pq, "row", 7, values, 0, 0, 0) || !PQpipelineSync(c->pq)) fail(c->pq);
        next++;
        c->waiting++;
    }
    if (PQflush(c->pq) < 0) fail(c->pq);
}

static void take(struct connection *c) {
    if (!PQconsumeInput(c->pq)) fail(c->pq);
    while (c->waiting && !PQisBusy(c->pq)) {
        PGresult *result = PQgetResult(c->pq);
        // Between two statements there is none.
        if (!result) continue;
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_PIPELINE_SYNC) {
            c->waiting--;
            done++;
        } else if (status != PGRES_COMMAND_OK) {
            fail(c->pq);
        }
        PQclear(result);
    }
}

int main(int count, char **arguments) {
    if (count != 8) {
        fprintf(stderr, "usage: pginsert CONNINFO TABLE FIRST COUNT CONNECTIONS WINDOW NOTE\n");
        return 2;
    }
    next = atol(arguments[3]);
    long total = atol(arguments[4]);
    end = next + total;
    int connections = atoi(arguments[5]), window = atoi(arguments[6]), size = atoi(arguments[7]);
    char *text = malloc((size_t)size + 1), sql[512];
    memset(text, 'n', (size_t)size);
    text[size] = 0;
    note = text;
    snprintf(sql, sizeof sql,
        "INSERT INTO %s (\"_id\", store, quantity, price, name, note, updated) VALUES ($1, $2, $3, $4, $5, $6, $7)", arguments[2]);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    struct pollfd *sockets = calloc((size_t)connections, sizeof *sockets);
    for (int i = 0; i < connections; i++) {
        all[i].pq = PQconnectdb(arguments[1]);
        if (PQstatus(all[i].pq) != CONNECTION_OK) fail(all[i].pq);
        PGresult *result = PQprepare(all[i].pq, "row", sql, 7, 0);
        if (PQresultStatus(result) != PGRES_COMMAND_OK) fail(all[i].pq);
        PQclear(result);
        if (PQsetnonblocking(all[i].pq, 1) || !PQenterPipelineMode(all[i].pq)) fail(all[i].pq);
        sockets[i] = (struct pollfd){.fd = PQsocket(all[i].pq), .events = POLLIN};
    }
    double begin = now();
    for (int i = 0; i < connections; i++) refill(&all[i], window);
    while (done < total) {
        poll(sockets, (nfds_t)connections, -1);
        for (int i = 0; i < connections; i++) {
            if (!sockets[i].revents) continue;
            take(&all[i]);
            refill(&all[i], window);
        }
    }
    printf("inserted %.6f\n", now() - begin);
    for (int i = 0; i < connections; i++) PQfinish(all[i].pq);
    return 0;
}
