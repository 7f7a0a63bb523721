#ifndef C_SLUICE_VFS_LAYER_H
#define C_SLUICE_VFS_LAYER_H

#include "CSluiceVFS.h"

#include <stdint.h>

/// What the two kinds of files of the layer share.

/// Each step maps different sums to different sums, so a difference in one word cannot vanish.
/// - Parameter size: a multiple of 8.
uint64_t sluice_sum(const unsigned char *bytes, int size, uint64_t start);

/// Eight bytes, the lowest first.
uint64_t sluice_word(const unsigned char *bytes);
void sluice_put_word(unsigned char *bytes, uint64_t value);

/// Remembers where a file is not as it was written, for `sluice_vfs_damage`. - Returns: the code.
int sluice_damaged(const char *name, sqlite3_int64 offset, int code);

/// What a write has come to: the code, or that there is no room.
int sluice_written(int code);

// Names: names.c

/// The name that a connection has its database open by.
typedef struct sluice_open_name {
    const char *name;
    /// 1 once the file has been moved or deleted: the files at the name and beside it are another's.
    int is_detached;
    struct sluice_open_name *next;
} sluice_open_name;

/// The mutex that is held while something goes by a name.
void sluice_names_enter(void);
void sluice_names_leave(void);

/// Under the mutex, with the opening of the file.
void sluice_names_add(sluice_open_name *added, const char *name);
void sluice_names_remove(sluice_open_name *removed);
/// Returns 1 if the database that a log belongs to is detached. The caller holds the mutex.
/// - Parameter log: as SQLite gave it, no copy.
int sluice_names_is_log_detached(const char *log);

// The log: log.c

/// Bytes of an open log, without the file of the layer below, which follows it.
int sluice_log_size(void);
int sluice_log_open(sqlite3_vfs *lower, const char *name, sqlite3_file *file, int flags, int *result);
/// A log is deleted: its mark means nothing any more.
void sluice_log_forget(const char *name);

#endif
