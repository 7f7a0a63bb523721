#include "layer.h"

#include <string.h>

// The names of the open databases. SQLite uses them for as long as a database is open: it opens the log when the first
// transaction needs it, and the last connection deletes the log and the shared memory when it closes. By then the file may have
// been moved or deleted, and the log at its name may be that of a new file. So the code that moves or deletes a file detaches its
// name first. Each use of a name is under the mutex: before the file is detached, or not at all. Reading the mark of a log is the
// exception: a mark of another log has other salts and is ignored.

enum { NAME = 1024 };

static sluice_open_name *first = NULL;

static sqlite3_mutex *mutex(void) { return sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP2); }

void sluice_names_enter(void) { sqlite3_mutex_enter(mutex()); }

void sluice_names_leave(void) { sqlite3_mutex_leave(mutex()); }

void sluice_names_add(sluice_open_name *added, const char *name) {
    *added = (sluice_open_name){.name = name, .is_detached = 0, .next = first};
    first = added;
}

void sluice_names_remove(sluice_open_name *removed) {
    sluice_names_enter();
    sluice_open_name **link = &first;
    while (*link != NULL && *link != removed) link = &(*link)->next;
    if (*link != NULL) *link = removed->next;
    sluice_names_leave();
}

int sluice_names_is_log_detached(const char *log) {
    // The name of a connection's database, which is one string with that of its log.
    const char *database = sqlite3_filename_database(log);
    for (sluice_open_name *open = first; open != NULL; open = open->next) {
        if (open->name == database) return open->is_detached;
    }
    return 0;
}

void sluice_vfs_detach(const char *path) {
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    char name[NAME];
    // SQLite opens a file by the name without symbolic links; beside it, the result says whether there is one.
    if (usual == NULL || (usual->xFullPathname(usual, path, NAME, name) & 0xFF) != SQLITE_OK) return;
    sluice_names_enter();
    for (sluice_open_name *open = first; open != NULL; open = open->next) {
        if (open->name != NULL && strcmp(open->name, name) == 0) open->is_detached = 1;
    }
    sluice_names_leave();
}
