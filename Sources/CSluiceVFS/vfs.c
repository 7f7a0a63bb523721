#include "layer.h"

#include <errno.h>
#include <string.h>

enum { SUM_SIZE = 8, HEADER_SIZE = 100, LARGEST_PAGE = 65536 };

/// A database file. The file of the layer below follows it in memory.
typedef struct {
    sqlite3_file base;
    sluice_open_name open;
    /// 1 while the memory that connections share is mapped.
    int has_memory;
    /// Bytes of a page; 0 until it is known.
    int page_size;
    /// Of one page: what is written, or read to check a part of it.
    unsigned char *page;
} checked_file;

static sqlite3_file *below(sqlite3_file *file) { return (sqlite3_file *)((checked_file *)file + 1); }

// Sums

uint64_t sluice_word(const unsigned char *bytes) {
    uint64_t value = 0;
    for (int index = 7; index >= 0; index--) value = value << 8 | bytes[index];
    return value;
}

void sluice_put_word(unsigned char *bytes, uint64_t value) {
    for (int index = 0; index < 8; index++) bytes[index] = (unsigned char)(value >> 8 * index);
}

uint64_t sluice_sum(const unsigned char *bytes, int size, uint64_t start) {
    uint64_t state = 0x9E3779B97F4A7C15u ^ start;
    for (int offset = 0; offset < size; offset += 8) {
        state = (state ^ sluice_word(bytes + offset)) * 0xD6E8FEB86659FD93u;
        state ^= state >> 32;
    }
    return state;
}

static uint64_t sum(const unsigned char *page, int size, sqlite3_int64 number) {
    // The number is part of the sum: a page that was written to the place of another is found out.
    return sluice_sum(page, size - SUM_SIZE, (uint64_t)number);
}

static void put_sum(unsigned char *page, int size, sqlite3_int64 number) {
    sluice_put_word(page + size - SUM_SIZE, sum(page, size, number));
}

static int has_sum(const unsigned char *page, int size, sqlite3_int64 number) {
    return sum(page, size, number) == sluice_word(page + size - SUM_SIZE);
}

// Damage

static _Thread_local struct {
    char name[1024];
    sqlite3_int64 offset;
} last_damage;

int sluice_damaged(const char *name, sqlite3_int64 offset, int code) {
    // The variable is zeroed at first and its last byte never written, so the name always ends.
    strncpy(last_damage.name, name == NULL ? "" : name, sizeof last_damage.name - 1);
    last_damage.offset = offset;
    return code;
}

const char *sluice_vfs_damage(sqlite3_int64 *offset) {
    *offset = last_damage.offset;
    return last_damage.name;
}

// SQLite reports only a full disk as such. To the app, a quota and the largest size of a file are the same.
int sluice_written(int code) {
    return code == SQLITE_IOERR_WRITE && (errno == EDQUOT || errno == EFBIG) ? SQLITE_FULL : code;
}

static int damaged(sqlite3_file *file, sqlite3_int64 offset) {
    return sluice_damaged(((checked_file *)file)->open.name, offset, SLUICE_VFS_DAMAGED);
}

// Pages

/// Returns the page size in the first bytes of a database. 0 if they are not of a database with room for sums.
static int told_page_size(const unsigned char *header) {
    if (memcmp(header, "SQLite format 3", 16) != 0 || header[20] != SUM_SIZE) return 0;
    int size = header[16] << 8 | header[17];
    // The field has 16 bits, so 1 stands for 65,536 (https://www.sqlite.org/fileformat2.html).
    if (size == 1) size = LARGEST_PAGE;
    return size >= 512 && size <= LARGEST_PAGE && (size & (size - 1)) == 0 ? size : 0;
}

static int set_page_size(checked_file *file, int size) {
    if (size == file->page_size) return SQLITE_OK;
    unsigned char *page = sqlite3_realloc(file->page, size);
    if (page == NULL) return SQLITE_IOERR_NOMEM;
    file->page = page;
    file->page_size = size;
    return SQLITE_OK;
}

/// Reads the page size from the file. - Returns: SQLITE_IOERR_SHORT_READ if the file ends before it.
static int learn_page_size(sqlite3_file *file) {
    unsigned char header[HEADER_SIZE];
    int code = below(file)->pMethods->xRead(below(file), header, HEADER_SIZE, 0);
    if (code != SQLITE_OK) return code;
    int size = told_page_size(header);
    if (size > 0) return set_page_size((checked_file *)file, size);
    int is_foreign = memcmp(header, "SQLite format 3", 16) == 0 && header[20] == 0;
    return sluice_damaged(((checked_file *)file)->open.name, 0, is_foreign ? SLUICE_VFS_FOREIGN : SLUICE_VFS_DAMAGED);
}

/// Reads and checks the page of a part, and copies the part. Such parts are the header, and fields of it.
static int read_part(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    checked_file *own = (checked_file *)file;
    sqlite3_int64 number = offset / own->page_size;
    int start = (int)(offset - number * own->page_size);
    if (start + count > own->page_size) return SQLITE_IOERR_READ;
    int code = below(file)->pMethods->xRead(below(file), own->page, own->page_size, number * own->page_size);
    if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? damaged(file, number * own->page_size) : code;
    if (!has_sum(own->page, own->page_size, number)) return damaged(file, number * own->page_size);
    memcpy(bytes, own->page + start, (size_t)count);
    return SQLITE_OK;
}

static int checked_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    checked_file *own = (checked_file *)file;
    // The first page says how large all are, and another connection may have made the file since.
    if (own->page_size == 0 || offset == 0) {
        int code = learn_page_size(file);
        if (code == SQLITE_IOERR_SHORT_READ) {
            sqlite3_int64 size = 0;
            code = below(file)->pMethods->xFileSize(below(file), &size);
            if (code != SQLITE_OK) return code;
            if (size > 0) return damaged(file, 0);
            memset(bytes, 0, (size_t)count);
            return SQLITE_IOERR_SHORT_READ;
        }
        if (code != SQLITE_OK) return code;
    }
    // A sum covers a whole page, so the page of a part is read and checked as a whole.
    if (count != own->page_size || offset % own->page_size != 0) return read_part(file, bytes, count, offset);
    int code = below(file)->pMethods->xRead(below(file), bytes, count, offset);
    if (code != SQLITE_OK) return code;
    return has_sum(bytes, count, offset / count) ? SQLITE_OK : damaged(file, offset);
}

static int checked_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    checked_file *own = (checked_file *)file;
    if (offset == 0 && count >= HEADER_SIZE) {
        int size = told_page_size(bytes);
        if (size == 0 || size != count) return SQLITE_IOERR_WRITE;
        int code = set_page_size(own, size);
        if (code != SQLITE_OK) return code;
    } else if (own->page_size == 0) {
        int code = learn_page_size(file);
        // SQLite may write a new database's pages before its first one; they are as large as this.
        if (code == SQLITE_IOERR_SHORT_READ) code = set_page_size(own, count);
        if (code != SQLITE_OK) return code;
    }
    // SQLite writes whole pages; anything else would have no sum.
    if (count != own->page_size || offset % count != 0) return SQLITE_IOERR_WRITE;
    // The caller's buffer is SQLite's cache and must not change, so the sum is put into a copy.
    memcpy(own->page, bytes, (size_t)count);
    put_sum(own->page, count, offset / count);
    return sluice_written(below(file)->pMethods->xWrite(below(file), own->page, count, offset));
}

// Forwarded to the layer below

static int checked_close(sqlite3_file *file) {
    sqlite3_free(((checked_file *)file)->page);
    int code = below(file)->pMethods->xClose(below(file));
    sluice_names_remove(&((checked_file *)file)->open);
    return code;
}

static int checked_truncate(sqlite3_file *file, sqlite3_int64 size) {
    return below(file)->pMethods->xTruncate(below(file), size);
}

static int checked_sync(sqlite3_file *file, int flags) { return below(file)->pMethods->xSync(below(file), flags); }

static int checked_size(sqlite3_file *file, sqlite3_int64 *size) { return below(file)->pMethods->xFileSize(below(file), size); }

static int checked_lock(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }

static int checked_unlock(sqlite3_file *file, int level) { return below(file)->pMethods->xUnlock(below(file), level); }

static int checked_reserved(sqlite3_file *file, int *result) {
    return below(file)->pMethods->xCheckReservedLock(below(file), result);
}

static int checked_control(sqlite3_file *file, int operation, void *argument) {
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int checked_sector(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }

/// Only characteristics under which SQLite still writes whole pages.
static int checked_characteristics(sqlite3_file *file) {
    return below(file)->pMethods->xDeviceCharacteristics(below(file)) & (SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_SEQUENTIAL);
}

/// The first mapping opens a file by its name.
static int checked_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory) {
    checked_file *own = (checked_file *)file;
    if (own->has_memory) return below(file)->pMethods->xShmMap(below(file), page, size, extend, memory);
    sluice_names_enter();
    int code = SQLITE_IOERR_SHMOPEN;
    // Memory that is mapped already belongs to this file, whatever is at its name now. A new one would be opened by name.
    if (!own->open.is_detached) code = below(file)->pMethods->xShmMap(below(file), page, size, extend, memory);
    own->has_memory = code == SQLITE_OK;
    sluice_names_leave();
    return code;
}

static int checked_shared_lock(sqlite3_file *file, int offset, int count, int flags) {
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void checked_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }

static int checked_unmap(sqlite3_file *file, int remove) {
    checked_file *own = (checked_file *)file;
    sluice_names_enter();
    // Removal goes by name. Behind the name of a detached file is the memory of another.
    int code = below(file)->pMethods->xShmUnmap(below(file), remove && !own->open.is_detached);
    own->has_memory = 0;
    sluice_names_leave();
    return code;
}

/// Version 2: without reading pages in place, past the check.
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = checked_close,
    .xRead = checked_read,
    .xWrite = checked_write,
    .xTruncate = checked_truncate,
    .xSync = checked_sync,
    .xFileSize = checked_size,
    .xLock = checked_lock,
    .xUnlock = checked_unlock,
    .xCheckReservedLock = checked_reserved,
    .xFileControl = checked_control,
    .xSectorSize = checked_sector,
    .xDeviceCharacteristics = checked_characteristics,
    .xShmMap = checked_map,
    .xShmLock = checked_shared_lock,
    .xShmBarrier = checked_barrier,
    .xShmUnmap = checked_unmap,
};

// The layer

static sqlite3_vfs *lower(sqlite3_vfs *vfs) { return vfs->pAppData; }

static int checked_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *result) {
    if ((flags & SQLITE_OPEN_WAL) != 0) return sluice_log_open(lower(vfs), name, file, flags, result);
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return lower(vfs)->xOpen(lower(vfs), name, file, flags, result);
    checked_file *own = (checked_file *)file;
    memset(own, 0, sizeof *own);
    // Opening and listing in one step: a move between the two would miss this file.
    sluice_names_enter();
    int code = lower(vfs)->xOpen(lower(vfs), name, below(file), flags, result);
    // Without methods SQLite does not close what was not opened.
    own->base.pMethods = below(file)->pMethods == NULL ? NULL : &methods;
    if (own->base.pMethods != NULL) sluice_names_add(&own->open, name);
    sluice_names_leave();
    return code;
}

static int checked_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    size_t length = strlen(name);
    if (length <= 4 || strcmp(name + length - 4, "-wal") != 0) return lower(vfs)->xDelete(lower(vfs), name, sync);
    sluice_names_enter();
    int code = SQLITE_OK;
    if (!sluice_names_is_log_detached(name)) {
        sluice_log_forget(name);
        code = lower(vfs)->xDelete(lower(vfs), name, sync);
    }
    sluice_names_leave();
    return code;
}

static int checked_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    return lower(vfs)->xAccess(lower(vfs), name, flags, result);
}

static int checked_path(sqlite3_vfs *vfs, const char *name, int size, char *path) {
    return lower(vfs)->xFullPathname(lower(vfs), name, size, path);
}

static int checked_random(sqlite3_vfs *vfs, int count, char *bytes) { return lower(vfs)->xRandomness(lower(vfs), count, bytes); }

static int checked_sleep(sqlite3_vfs *vfs, int microseconds) { return lower(vfs)->xSleep(lower(vfs), microseconds); }

static int checked_time(sqlite3_vfs *vfs, double *now) { return lower(vfs)->xCurrentTime(lower(vfs), now); }

static int checked_error(sqlite3_vfs *vfs, int size, char *text) { return lower(vfs)->xGetLastError(lower(vfs), size, text); }

static int checked_time64(sqlite3_vfs *vfs, sqlite3_int64 *now) { return lower(vfs)->xCurrentTimeInt64(lower(vfs), now); }

static sqlite3_vfs layer = {
    .iVersion = 2,
    .zName = SLUICE_VFS_NAME,
    .xOpen = checked_open,
    .xDelete = checked_delete,
    .xAccess = checked_access,
    .xFullPathname = checked_path,
    .xRandomness = checked_random,
    .xSleep = checked_sleep,
    .xCurrentTime = checked_time,
    .xGetLastError = checked_error,
    .xCurrentTimeInt64 = checked_time64,
};

int sluice_vfs_register(void) {
    int code = sqlite3_initialize();
    if (code != SQLITE_OK) return code;
    sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(mutex);
    if (layer.pAppData == NULL) {
        sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
        if (usual == NULL) {
            code = SQLITE_ERROR;
        } else {
            // SQLite allocates one size for all files, so it is that of the larger kind.
            int own = sluice_log_size() > (int)sizeof(checked_file) ? sluice_log_size() : (int)sizeof(checked_file);
            layer.szOsFile = own + usual->szOsFile;
            layer.mxPathname = usual->mxPathname;
            layer.pAppData = usual;
            code = sqlite3_vfs_register(&layer, 0);
            if (code != SQLITE_OK) layer.pAppData = NULL;
        }
    }
    sqlite3_mutex_leave(mutex);
    return code;
}

void sluice_vfs_prepare(sqlite3 *database) {
    int bytes = SUM_SIZE;
    sqlite3_file_control(database, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
}
