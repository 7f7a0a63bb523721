#ifndef C_SLUICE_VFS_H
#define C_SLUICE_VFS_H

#include <sqlite3.h>

/// A layer between SQLite and its files that finds out when a page of a database is not what was written.
///
/// The last 8 bytes of each page, which SQLite leaves alone when it is asked to, hold a sum of the others and of the page's
/// number. It is computed when a page is written to the database and compared when one is read. A change within 8 bytes that
/// belong together always changes the sum; others escape with a chance of 1 to 2^64. Files beside the database are SQLite's
/// affair: the frames of its log have sums of their own, which it checks when it takes the log over after a crash.

/// The layer's name, for sqlite3_open_v2.
#define SLUICE_VFS_NAME "sluice"

/// The extended result code of a page that is not as it was written: SQLITE_IOERR_DATA.
#define SLUICE_VFS_DAMAGED 8202

/// Makes the layer known to SQLite; harmless when it is. - Returns: a result code.
int sluice_vfs_register(void);

/// Has SQLite leave room for the sums, in a database that has no content yet; called after each opening for writing.
void sluice_vfs_prepare(sqlite3 *database);

#endif
