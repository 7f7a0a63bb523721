#include "layer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The log of a database (its write-ahead log, "-wal"): a header of 32 bytes and frames of 24 bytes and a page each. A frame's
// sum goes on from the one before it, so that the sums are a chain from the header on. SQLite walks the chain when it takes a
// log over after a crash, and takes the first link that does not hold for the log's end; when it reads a page of a log that
// it knows it does not look at the sums.
//
// So here each page that is read is compared with its link of the chain, and beside the log a mark says up to where it had
// reached the disk when that was last asked for. What does not hold before the mark was whole once: it is damage. What does not
// hold behind it is what a crash leaves of a commit that nobody was told of. The mark is written after the log is on the disk
// and is never waited for: it may say less than there is, never more.

enum { HEADER = 32, FRAME_HEADER = 24, MARK = 32, LARGEST_PAGE = 65536, NAME = 1024 };

/// Means that no frame's page was written without its header.
#define NONE INT64_MAX

typedef struct {
    /// Two numbers that tell one filling of the log from the next.
    unsigned char salts[8];
    /// Where the last frame ends; 0: there is no mark.
    sqlite3_int64 end;
} extent;

/// An open log. The file of the layer below follows it in memory.
typedef struct {
    sqlite3_file base;
    const char *name;
    /// The header as it was read last; its first byte is 0 before that.
    unsigned char header[HEADER];
    /// What the mark said when a header was read last, if it is about this filling.
    extent known;
    /// The last commit that was written here, and what was marked of it.
    extent committed, marked;
    /// The frame header that was written last, and where.
    unsigned char frame_header[FRAME_HEADER];
    sqlite3_int64 frame_header_at;
    /// From here on sums wait to be made anew: a transaction has changed pages that it had put into the log before.
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
    if (count != MARK || sluice_sum(bytes, 24, 1) != sluice_word(bytes + 24)) return none;
    extent said = {{0}, (sqlite3_int64)sluice_word(bytes + 16)};
    memcpy(said.salts, bytes + 8, 8);
    return said;
}

static int open_mark(const char *log) {
    char name[NAME];
    int mark = -1;
    if (!mark_name(name, log)) return mark;
    sluice_names_enter();
    if (!sluice_names_is_log_detached(log)) mark = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    sluice_names_leave();
    return mark;
}

/// Without room for it, or in a folder of somebody else's, there is none: then less is found out.
static void write_mark(log_file *own) {
    if (own->mark < 0) own->mark = open_mark(own->name);
    if (own->mark < 0) return;
    unsigned char bytes[MARK] = "sluice 1";
    memcpy(bytes + 8, own->committed.salts, 8);
    sluice_put_word(bytes + 16, (uint64_t)own->committed.end);
    sluice_put_word(bytes + 24, sluice_sum(bytes, 24, 1));
    if (pwrite(own->mark, bytes, MARK, 0) == MARK) own->marked = own->committed;
}

void sluice_log_forget(const char *log) {
    char name[NAME];
    if (mark_name(name, log)) unlink(name);
}

// Reading

static int damaged(log_file *own, sqlite3_int64 offset) { return sluice_damaged(own->name, offset, SLUICE_VFS_DAMAGED); }

/// Whether a frame is the next link of the chain, with the header that is known.
static int is_link(log_file *own, const unsigned char *before, const unsigned char *head, const unsigned char *page, int count) {
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
        // The sum of the frame before stands at the end of its header, that of the first is the header's.
        sqlite3_int64 link = start == HEADER ? HEADER - 8 : start - count - 8;
        code = read_below(file, before, 8, link);
    }
    if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? damaged(own, start) : code;
    if (own->header[0] != 0 && is_link(own, before, head, page, count)) return SQLITE_OK;
    // The header tells the order of bytes; another machine may have begun the log.
    code = read_below(file, own->header, HEADER, 0);
    if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? damaged(own, 0) : code;
    return is_link(own, before, head, page, count) ? SQLITE_OK : damaged(own, start);
}

/// A frame as SQLite reads it when it takes the log over.
static int check_taken_over(sqlite3_file *file, const unsigned char *frame, int count, sqlite3_int64 start) {
    log_file *own = (log_file *)file;
    if (start + count > own->known.end) return SQLITE_OK;
    if (memcmp(frame + 8, own->known.salts, 8) == 0) return check_frame(file, frame + FRAME_HEADER, count - FRAME_HEADER, start);
    unsigned char salts[8];
    int code = read_below(file, salts, 8, 16);
    if (code != SQLITE_OK) return code;
    if (memcmp(salts, own->known.salts, 8) == 0) return damaged(own, start);
    // Another connection has begun the log anew since the mark was read.
    own->known.end = 0;
    return SQLITE_OK;
}

/// The header, which SQLite reads when it begins to take the log over.
static int check_header(sqlite3_file *file, const unsigned char *header) {
    log_file *own = (log_file *)file;
    memcpy(own->header, header, HEADER);
    own->known = read_mark(own->name);
    if (own->known.end == 0) return SQLITE_OK;
    if (!is_whole_header(header)) return damaged(own, 0);
    if (memcmp(header + 16, own->known.salts, 8) != 0) {
        own->known.end = 0;
        return SQLITE_OK;
    }
    sqlite3_int64 size = 0;
    int code = below(file)->pMethods->xFileSize(below(file), &size);
    if (code != SQLITE_OK) return code;
    return size < own->known.end ? damaged(own, size) : SQLITE_OK;
}

static int is_page_size(int count) { return count >= 512 && count <= LARGEST_PAGE && (count & (count - 1)) == 0; }

static int log_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    log_file *own = (log_file *)file;
    int code = read_below(file, bytes, count, offset);
    if (code == SQLITE_OK && offset == 0 && count == HEADER) return check_header(file, bytes);
    if (is_page_size(count)) {
        sqlite3_int64 start = offset - FRAME_HEADER;
        if (start < HEADER || (start - HEADER) % (count + FRAME_HEADER) != 0 || start >= own->stale) return code;
        if (code != SQLITE_OK) return code == SQLITE_IOERR_SHORT_READ ? damaged(own, start) : code;
        return check_frame(file, bytes, count, start);
    }
    int is_frame = is_page_size(count - FRAME_HEADER) && offset >= HEADER && (offset - HEADER) % count == 0;
    return code == SQLITE_OK && is_frame ? check_taken_over(file, bytes, count, offset) : code;
}

// Writing

static void note_header(log_file *own, const unsigned char *bytes) {
    memcpy(own->header, bytes, HEADER);
    own->known.end = own->committed.end = own->marked.end = 0;
    own->stale = NONE;
}

static void note_page(log_file *own, int count, sqlite3_int64 start) {
    own->page_size = count;
    if (own->frame_header_at != start) {
        // The page alone: its sum is made anew when the transaction is committed.
        if (start < own->stale) own->stale = start;
        return;
    }
    // The header of a commit's last frame says how large the database is from then on.
    if (big_endian(own->frame_header + 4) == 0) return;
    memcpy(own->committed.salts, own->frame_header + 8, 8);
    own->committed.end = start + FRAME_HEADER + count;
    if (own->stale > start) own->stale = NONE;
}

static void note_frame_header(log_file *own, const unsigned char *bytes, sqlite3_int64 start) {
    memcpy(own->frame_header, bytes, FRAME_HEADER);
    own->frame_header_at = start;
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
    int is_news = own->committed.end != own->marked.end || memcmp(own->committed.salts, own->marked.salts, 8) != 0;
    if (code == SQLITE_OK && own->committed.end > 0 && is_news) write_mark(own);
    return code;
}

static int log_close(sqlite3_file *file) {
    log_file *own = (log_file *)file;
    if (own->mark >= 0) close(own->mark);
    return below(file)->pMethods->xClose(below(file));
}

// What is handed on

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
    sluice_names_enter();
    int code = SQLITE_CANTOPEN;
    if (!sluice_names_is_log_detached(name)) code = lower->xOpen(lower, name, below(file), flags, result);
    sluice_names_leave();
    // Without methods SQLite does not close what was not opened.
    own->base.pMethods = below(file)->pMethods == NULL ? NULL : &methods;
    return code;
}
