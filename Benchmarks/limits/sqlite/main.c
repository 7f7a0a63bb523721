// sqlite PATH ROWS NOTE [BATCH]
//
// Inserts rows like those of the benchmarks' Item, with a note of NOTE bytes, into a new SQLite file: one prepared
// statement, one transaction, write-ahead log, synchronous = NORMAL. Prints the seconds from BEGIN to COMMIT.
//
// With BATCH it upserts ROWS times, a transaction for each BATCH of them; the second half meets the keys of the first.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static sqlite3 *database;

static void check(int status) {
    if (status == SQLITE_OK || status == SQLITE_DONE) return;
    fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(database));
    exit(1);
}

int main(int count, char **arguments) {
    if (count != 4 && count != 5) { fprintf(stderr, "usage: sqlite PATH ROWS NOTE [BATCH]\n"); return 2; }
    int rows = atoi(arguments[2]), size = atoi(arguments[3]);
    int batch = count == 5 ? atoi(arguments[4]) : rows, keys = count == 5 ? rows / 2 : rows;
    char *note = malloc((size_t)size + 1), name[64];
    memset(note, 'n', (size_t)size);
    check(sqlite3_open(arguments[1], &database));
    check(sqlite3_exec(database,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
        "CREATE TABLE item (_id INTEGER PRIMARY KEY, store INTEGER, quantity INTEGER, price REAL, name TEXT, note TEXT,"
        " updated INTEGER)", 0, 0, 0));
    sqlite3_stmt *insert;
    check(sqlite3_prepare_v2(database, count == 4 ? "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?)" :
        "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (_id) DO UPDATE SET store = excluded.store,"
        " quantity = excluded.quantity, price = excluded.price, name = excluded.name, note = excluded.note,"
        " updated = excluded.updated", -1, &insert, 0));
    double start = now();
    check(sqlite3_exec(database, "BEGIN", 0, 0, 0));
    for (int i = 0; i < rows; i++) {
        if (i && i % batch == 0) check(sqlite3_exec(database, "COMMIT; BEGIN", 0, 0, 0));
        int length = snprintf(name, sizeof name, "item %026d", i);
        sqlite3_bind_int64(insert, 1, i % keys);
        sqlite3_bind_int64(insert, 2, i % 100);
        sqlite3_bind_int64(insert, 3, i % 1000);
        sqlite3_bind_double(insert, 4, i / 100.0);
        sqlite3_bind_text(insert, 5, name, length, SQLITE_STATIC);
        sqlite3_bind_text(insert, 6, note, size, SQLITE_STATIC);
        sqlite3_bind_int64(insert, 7, 1700000000000000LL + i);
        check(sqlite3_step(insert));
        check(sqlite3_reset(insert));
    }
    check(sqlite3_exec(database, "COMMIT", 0, 0, 0));
    printf("%.6f\n", now() - start);
    sqlite3_finalize(insert);
    sqlite3_close(database);
    return 0;
}
