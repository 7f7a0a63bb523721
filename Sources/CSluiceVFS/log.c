#include "layer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The log of a database: its write-ahead log, "-wal" (https://www.sqlite.org/fileformat2.html#walformat). It has a header of
// 32 bytes, and frames of 24 bytes and a page each. The checksum of a frame continues that of the frame before, so the sums form
// a chain from the header on. SQLite checks the chain when it recovers a log after a crash, and takes the first broken link for
// the end of the log. When it reads a page of a log that it knows, it checks no sum.
//
// This layer compares each page that is read with its link of the chain. A file beside the log, the mark, has the end of the log
// as of the last sync. A broken link before the mark was whole once: it is damage. A broken link behind the mark is the rest of
// a commit that was never acknowledged. The mark is written after the sync of the log and is not synced itself: it may have less
// than the disk, never more.

enum { HEADER = 32, FRAME_HEADER = 24, MARK = 32, LARGEST_PAGE = 65536, NAME = 1024 };

/// Means that no frame's page was written without its header.
#define NONE INT64_MAX

typedef struct {
    /// The salts of the header. They differ between one filling of the log and the next.
    unsigned char salts[8];
    /// The end of the last frame. 0: there is no mark.
    sqlite3_int64 end;
} extent;

/// An open log. The file of the layer below follows it in memory.
typedef struct {
    sqlite3_file base;
    const char *name;
    /// The header as it was read last; its first byte is 0 before that.
    unsigned char header[HEADER];
    /// The mark as of the last read of a header, if it is of this filling.
    extent known;
    /// The last commit written through this file, and the last one in the mark.
    extent committed, marked;
    /// The last written frame header, and its offset.
    unsigned char frame_header[FRAME_HEADER];
    sqlite3_int64 frame_header_at;
    /// The offset from which sums are out of date: a transaction has overwritten pages that it had already put into the log.
    sqlite3_int64 stale;
    /// Bytes of a page that was written; 0 before that.
    int page_size;
    /// The file of the mark; -1: not open.
    int mark;
} log_file;

static sqlite3_file *below(sqlite3_file *file) { return (sqlite3_file *)((log_file *)file + 1); }

static int read_below(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    return below(file)->pMethods->xRead(below(file), bytes, count, offset);
}

// SQLite's sums

static uint32_t big_endian(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t number(const unsigned char *bytes, int is_big) {
    if (is_big) return big_endian(bytes);
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

typedef struct {
    uint32_t first, second;
} chain;

static chain stored(const unsigned char *bytes) { return (chain){big_endian(bytes), big_endian(bytes + 4)}; }

static int is_equal(chain left, chain right) { return left.first == right.first && left.second == right.second; }

static chain go_on(chain from, const unsigned char *bytes, int count, int is_big) {
    for (int index = 0; index < count; index += 8) {
        from.first += number(bytes + index, is_big) + from.second;
        from.second += number(bytes + index + 4, is_big) + from.first;
    }
    return from;
}

static int is_big_endian(const unsigned char *header) { return header[3] & 1; }

static int is_whole_header(const unsigned char *header) {
    if ((big_endian(header) & ~1u) != 0x377f0682u) return 0;
    return is_equal(go_on((chain){0, 0}, header, 24, is_big_endian(header)), stored(header + 24));
}

// The mark

static int mark_name(char *name, const char *log) {
    int length = snprintf(name, NAME, "%s" SLUICE_VFS_MARK_ENDING, log);
    return length > 0 && length < NAME;
}

static extent read_mark(const char *log) {
    extent none = {{0}, 0};
    char name[NAME];
    unsigned char bytes[MARK];
    if (!mark_name(name, log)) return none;
    int mark = open(name, O_RDONLY | O_CLOEXEC);
    if (mark < 0) return none;
    ssize_t count = pread(mark, bytes, MARK, 0);
    close(mark);
    // A torn mark is no mark: fewer faults are found, none is invented.
    if (count != MARK || sluice_sum(bytes, 24, 1) != sluice_word(bytes + 24)) return none;
    extent said = {{0}, (sqlite3_int64)sluice_word(bytes + 16)};
    memcpy(said.salts, bytes + 8, 8);
    return said;
}

static int open_mark(const char *log) {
    char name[NAME];
    int mark = -1;
    if (!mark_name(name, log)) return mark;
    // Under the mutex: a database that is moved between the question and the opening would get its mark at another's name.
    sluice_names_enter();
    if (!sluice_names_is_log_detached(log)) mark = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    sluice_names_leave();
    return mark;
}

/// Writes the mark. If that fails, for want of room or rights, the mark stays as it is: fewer faults are found.
static void write_mark(log_file *own) {
    if (own->mark < 0) own->mark = open_mark(own->name);
    if (own->mark < 0) return;
    unsigned char bytes[MARK] = "sluice 1";
    memcpy(bytes + 8, own->committed.salts, 8);
    sluice_put_word(bytes + 16, (uint64_t)own->committed.end);
    sluice_put_word(bytes + 24, sluice_sum(bytes, 24, 1));
    // `marked` changes on success only, so the next sync tries again.
    if (pwrite(own->mark, bytes, MARK, 0) == MARK) own->marked = own->committed;
}

void sluice_log_forget(const char *log) {
    char name[NAME];
    if (mark_name(name, log)) unlink(name);
}

// Reading

static int damaged(log_file *own, sqlite3_int64 offset) { return sluice_damaged(own->name, offset, SLUICE_VFS_DAMAGED); }

/// Returns 1 if a frame is the next link of the chain under the known header.
static int is_link(log_file *own, const unsigned char *before, const unsigned char *head, const unsigned char *page, int count) {
    // A frame's sum covers the first 8 bytes of its header and the page. The salts are covered by the sum of the log's header.
    int is_big = is_big_endian(own->header);
    chain sum = go_on(stored(before), head, 8, is_big);
    return is_equal(go_on(sum, page, count, is_big), stored(head + 16));
}

/// Compares a page of a frame with the chain.
static int check_frame(sqlite3_file *file, const unsigned char *page, int count, sqlite3_int64 start) {
    log_file *own = (log_file *)file;
    unsigned char head[FRAME_HEADER], before[8];
    int code = read_below(file, head, FRAME_HEADER, start);
    if (code == SQLITE_OK) {
        // The sum before: at the end of the previous frame's header, or of the log's header for the first frame.
        sqlite3_int64 link = start == HEADER ? HEADER - 8 : start - count - 8;
        code = read_below(file, before, 8, link);
    }
    if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? damaged(own, start) : code;
    if (own->header[0] != 0 && is_link(own, before, head, page, count)) return SQLITE_OK;
    // The header decides the order of bytes, and another machine may have begun the log anew with the other order. Only a link
    // that breaks under the current header is damage.
    code = read_below(file, own->header, HEADER, 0);
    if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? damaged(own, 0) : code;
    return is_link(own, before, head, page, count) ? SQLITE_OK : damaged(own, start);
}

/// Checks a frame of a recovery, in which SQLite reads header and page at once.
static int check_taken_over(sqlite3_file *file, const unsigned char *frame, int count, sqlite3_int64 start) {
    log_file *own = (log_file *)file;
    // Behind the mark SQLite decides: a broken link there is the end of the log.
    if (start + count > own->known.end) return SQLITE_OK;
    if (memcmp(frame + 8, own->known.salts, 8) == 0) return check_frame(file, frame + FRAME_HEADER, count - FRAME_HEADER, start);
    unsigned char salts[8];
    int code = read_below(file, salts, 8, 16);
    if (code != SQLITE_OK) return code;
    // The header is still of this filling, so each frame before the mark must have its salts.
    if (memcmp(salts, own->known.salts, 8) == 0) return damaged(own, start);
    // Another connection has begun the log anew since the mark was read.
    own->known.end = 0;
    return SQLITE_OK;
}

/// Checks the header, which SQLite reads when a recovery begins.
static int check_header(sqlite3_file *file, const unsigned char *header) {
    log_file *own = (log_file *)file;
    memcpy(own->header, header, HEADER);
    own->known = read_mark(own->name);
    // Without a mark, damage and the rest of a crash look alike.
    if (own->known.end == 0) return SQLITE_OK;
    if (!is_whole_header(header)) return damaged(own, 0);
    if (memcmp(header + 16, own->known.salts, 8) != 0) {
        // The mark is of an earlier filling and proves nothing about this one.
        own->known.end = 0;
        return SQLITE_OK;
    }
    sqlite3_int64 size = 0;
    int code = below(file)->pMethods->xFileSize(below(file), &size);
    if (code != SQLITE_OK) return code;
    // A file that ends before the mark has lost frames that were synced.
    return size < own->known.end ? damaged(own, size) : SQLITE_OK;
}

static int is_page_size(int count) { return count >= 512 && count <= LARGEST_PAGE && (count & (count - 1)) == 0; }

static int log_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    log_file *own = (log_file *)file;
    int code = read_below(file, bytes, count, offset);
    // SQLite has no call that names the kind of a read. Offset and size do: a header, a page, or a frame of a recovery.
    if (code == SQLITE_OK && offset == 0 && count == HEADER) return check_header(file, bytes);
    if (is_page_size(count)) {
        sqlite3_int64 start = offset - FRAME_HEADER;
        if (start < HEADER || (start - HEADER) % (count + FRAME_HEADER) != 0 || start >= own->stale) return code;
        // SQLite reads only pages that its index lists, so a file that ends before one is damaged.
        if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? damaged(own, start) : code;
        return check_frame(file, bytes, count, start);
    }
    int is_frame = is_page_size(count - FRAME_HEADER) && offset >= HEADER && (offset - HEADER) % count == 0;
    return code == SQLITE_OK && is_frame ? check_taken_over(file, bytes, count, offset) : code;
}

// Writing

static void note_header(log_file *own, const unsigned char *bytes) {
    memcpy(own->header, bytes, HEADER);
    // A header begins a filling. Ends of the one before are void.
    own->known.end = own->committed.end = own->marked.end = 0;
    own->stale = NONE;
}

static void note_page(log_file *own, int count, sqlite3_int64 start) {
    own->page_size = count;
    if (own->frame_header_at != start) {
        // The page alone: SQLite overwrites a page of the same transaction in place, and computes the sums from there on when the
        // transaction commits (walRewriteChecksums).
        if (start < own->stale) own->stale = start;
        return;
    }
    // Only the last frame of a commit has the size of the database in its header. The end moves only there: frames of a transaction
    // that may still roll back must not be before the mark.
    if (big_endian(own->frame_header + 4) == 0) return;
    memcpy(own->committed.salts, own->frame_header + 8, 8);
    own->committed.end = start + FRAME_HEADER + count;
    if (own->stale > start) own->stale = NONE;
}

static void note_frame_header(log_file *own, const unsigned char *bytes, sqlite3_int64 start) {
    memcpy(own->frame_header, bytes, FRAME_HEADER);
    own->frame_header_at = start;
    // Headers are rewritten from left to right: what is before this one is right again.
    if (own->stale != start) return;
    own->stale += FRAME_HEADER + own->page_size;
    if (own->stale >= own->committed.end && memcmp(own->committed.salts, bytes + 8, 8) == 0) own->stale = NONE;
}

static int log_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    log_file *own = (log_file *)file;
    int code = sluice_written(below(file)->pMethods->xWrite(below(file), bytes, count, offset));
    if (code != SQLITE_OK) return code;
    if (offset == 0 && count == HEADER) note_header(own, bytes);
    if (count == FRAME_HEADER) note_frame_header(own, bytes, offset);
    if (is_page_size(count)) note_page(own, count, offset - FRAME_HEADER);
    return SQLITE_OK;
}

static int log_sync(sqlite3_file *file, int flags) {
    log_file *own = (log_file *)file;
    int code = below(file)->pMethods->xSync(below(file), flags);
    // After the sync, so that the mark never covers bytes that a crash could still take.
    int is_news = own->committed.end != own->marked.end || memcmp(own->committed.salts, own->marked.salts, 8) != 0;
    if (code == SQLITE_OK && own->committed.end > 0 && is_news) write_mark(own);
    return code;
}

static int log_close(sqlite3_file *file) {
    log_file *own = (log_file *)file;
    if (own->mark >= 0) close(own->mark);
    return below(file)->pMethods->xClose(below(file));
}

// Forwarded to the layer below

static int log_truncate(sqlite3_file *file, sqlite3_int64 size) { return below(file)->pMethods->xTruncate(below(file), size); }

static int log_file_size(sqlite3_file *file, sqlite3_int64 *size) { return below(file)->pMethods->xFileSize(below(file), size); }

static int log_lock(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }

static int log_unlock(sqlite3_file *file, int level) { return below(file)->pMethods->xUnlock(below(file), level); }

static int log_reserved(sqlite3_file *file, int *result) { return below(file)->pMethods->xCheckReservedLock(below(file), result); }

static int log_control(sqlite3_file *file, int operation, void *argument) {
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int log_sector(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }

static int log_characteristics(sqlite3_file *file) { return below(file)->pMethods->xDeviceCharacteristics(below(file)); }

static const sqlite3_io_methods methods = {
    // Without shared memory, which belongs to the database file, and without reads in place, which would pass the check.
    .iVersion = 1,
    .xClose = log_close,
    .xRead = log_read,
    .xWrite = log_write,
    .xTruncate = log_truncate,
    .xSync = log_sync,
    .xFileSize = log_file_size,
    .xLock = log_lock,
    .xUnlock = log_unlock,
    .xCheckReservedLock = log_reserved,
    .xFileControl = log_control,
    .xSectorSize = log_sector,
    .xDeviceCharacteristics = log_characteristics,
};

int sluice_log_size(void) { return (int)sizeof(log_file); }

int sluice_log_open(sqlite3_vfs *lower, const char *name, sqlite3_file *file, int flags, int *result) {
    log_file *own = (log_file *)file;
    memset(own, 0, sizeof *own);
    own->name = name;
    own->mark = -1;
    own->stale = NONE;
    own->frame_header_at = -1;
    // Under the mutex, as in `open_mark`.
    sluice_names_enter();
    int code = SQLITE_CANTOPEN;
    if (!sluice_names_is_log_detached(name)) code = lower->xOpen(lower, name, below(file), flags, result);
    sluice_names_leave();
    // Without methods SQLite does not close what was not opened.
    own->base.pMethods = below(file)->pMethods == NULL ? NULL : &methods;
    return code;
}
