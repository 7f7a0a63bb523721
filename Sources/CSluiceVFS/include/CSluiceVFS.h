#ifndef C_SLUICE_VFS_H
#define C_SLUICE_VFS_H

#include <sqlite3.h>

/// A layer between SQLite and its files that finds out when a page of a database is not what was written.
///
/// The last 8 bytes of each page, which SQLite leaves alone when it is asked to, hold a sum of the others and of the page's
/// number. It is computed when a page is written to the database and compared when one is read. A change within 8 bytes that
/// belong together always changes the sum; others escape with a chance of 1 to 2^64.
///
/// The frames of the log beside the database ("-wal") have sums of SQLite's, which it looks at only when it takes the log over
/// after a crash, to find its end. The layer compares them whenever a page is read, and tells a log that was damaged from one
/// that a crash has left incomplete: see log.c.

/// The layer's name, for sqlite3_open_v2.
#define SLUICE_VFS_NAME "sluice"

/// The extended result code of a page that is not as it was written: SQLITE_IOERR_DATA.
#define SLUICE_VFS_DAMAGED 8202

/// The result code of a database of SQLite's whose pages have no sums; among SQLITE_IOERR's, one that SQLite does not have.
#define SLUICE_VFS_FOREIGN 16138

/// What follows the log's name in that of the small file which says how much of the log has reached the disk.
#define SLUICE_VFS_MARK_ENDING ".synced"

/// Where the last read of this thread that ended with one of these codes found it: the file's name, valid until the next, and
/// the offset in it.
const char *sluice_vfs_damage(sqlite3_int64 *offset);

/// Makes the layer known to SQLite; harmless when it is. - Returns: a result code.
int sluice_vfs_register(void);

/// Has the connections of this process that have the database at a path open leave alone what lies there from now on, and beside it.
/// Called before the file is moved or deleted; they can be closed at any time after.
void sluice_vfs_detach(const char *path);

/// Has SQLite leave room for the sums, in a database that has no content yet; called after each opening for writing.
void sluice_vfs_prepare(sqlite3 *database);

#endif
