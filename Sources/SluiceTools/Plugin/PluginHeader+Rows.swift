extension PluginHeader {
    /// The text of sluice_rows.h, which sluice_plugin.h includes. A test compares it with Sources/CSluicePlugin/include.
    static let rows = #"""
        /*
         * sluice_rows.h: the writes of check_write and the objects of ingest (sluice_plugin.h), and how to read their rows in place.
         *
         * A row is an array of 16-byte cells, one for each column of its type in the same order, over an arena of bytes that all rows of
         * a batch share. Whatever a pointer here leads to is valid during the call only. The gateway has made all of it and the host has
         * checked each offset and length, so nothing has to be checked again; the functions below answer 0 when a cell holds something
         * else than is asked for, also for a column that there is not.
         *
         *     uint32_t size = sluice_type_column(write->type, "size", 4, 0);
         *     int64_t value;
         *     if (sluice_row_int(&write->after, size, &value) && value > 100) ...
         */
        #ifndef SLUICE_ROWS_H
        #define SLUICE_ROWS_H

        #include <stddef.h>
        #include <stdint.h>
        #include <string.h>

        /* Clang says which pointers may be null, and Swift reads it; other compilers need not know. */
        #if !defined(__clang__)
        #define _Nullable
        #define _Nonnull
        #endif

        #ifdef __cplusplus
        extern "C" {
        #endif

        typedef struct sluice_text {
            const char *_Nullable data;
            size_t length;
        } sluice_text;

        /* What a cell holds. Tags beyond these may come with later versions; a plugin takes them for something that it cannot read. */
        typedef enum sluice_tag {
            SLUICE_TAG_ABSENT = 0,      /* the row says nothing of the column */
            SLUICE_TAG_NULL = 1,
            SLUICE_TAG_BOOL = 2,        /* bits: 0 or 1 */
            SLUICE_TAG_INT = 3,         /* bits: the number, two's complement */
            SLUICE_TAG_FLOAT = 4,       /* bits: IEEE 754, the lower 32 */
            SLUICE_TAG_DOUBLE = 5,      /* bits: IEEE 754 */
            SLUICE_TAG_DECIMAL = 6,     /* its digits as text, such as 12.50, -1E+6, NaN or Infinity */
            SLUICE_TAG_STRING = 7,      /* UTF-8 */
            SLUICE_TAG_BINARY = 8,      /* bytes */
            SLUICE_TAG_DATE = 9,        /* bits: seconds since 1970, signed; length: nanoseconds, signed and of the same sign */
            SLUICE_TAG_OBJECT_ID = 10,  /* bits: the first 8 of its 12 bytes, the first of them highest; length: the other 4 */
            SLUICE_TAG_UUID = 11,       /* 16 bytes */
            SLUICE_TAG_LIST = 12,       /* cells: the elements of a list or set */
            SLUICE_TAG_DICTIONARY = 13, /* cells: key, value, key, value, …, the keys as strings in the order of their bytes; also embedded objects */
            SLUICE_TAG_LINK = 14        /* cells: type and key of what a mixed property links to; a typed link is just its target's key */
        } sluice_tag;

        /* Text, bytes and cells lie in the arena: `bits` is where they begin there, `length` how many bytes or cells there are. */
        typedef struct sluice_cell {
            uint8_t tag;
            uint8_t reserved[3];
            uint32_t length;
            uint64_t bits;
        } sluice_cell;

        /* The cells of a row, or those inside a list, dictionary or link. */
        typedef struct sluice_row {
            const sluice_cell *_Nullable cells; /* null: there is no row */
            const uint8_t *_Nonnull arena;
            uint32_t count;
            uint32_t reserved;
        } sluice_row;

        #define SLUICE_NO_COLUMN 0xFFFFFFFFu

        /* A type that writes of the batch are of. The kinds of its properties are those that configure was told. */
        typedef struct sluice_type {
            sluice_text name;
            const sluice_text *_Nullable columns; /* names */
            uint32_t column_count;
            uint32_t primary_key; /* a column */
        } sluice_type;

        typedef enum sluice_operation { SLUICE_INSERT = 0, SLUICE_UPDATE = 1, SLUICE_DELETE = 2 } sluice_operation;

        typedef struct sluice_write {
            const sluice_type *_Nonnull type;
            uint32_t operation; /* sluice_operation */
            uint32_t reserved;
            sluice_row before; /* no row in an insert */
            sluice_row after;  /* no row in a delete */
        } sluice_write;

        /* The writes of one changeset, or asymmetric objects of one type: inserts, of which no user is told. */
        typedef struct sluice_writes {
            uint32_t size;       /* sizeof(sluice_writes) of the host: members beyond it are not there */
            uint32_t write_size; /* bytes from one write to the next: see sluice_write_at */
            uint32_t type_size;  /* bytes from one type to the next */
            uint32_t write_count;
            uint32_t type_count;
            uint32_t reserved;
            sluice_text user_id;
            sluice_text user_type; /* normal, server or system */
            sluice_text user;      /* all of the user, as JSON: the "user" of open_session */
            const sluice_type *_Nullable types;
            const sluice_write *_Nullable writes;
            const uint8_t *_Nonnull arena;
            size_t arena_length;
        } sluice_writes;

        /* `index` is below write_count. */
        static inline const sluice_write *_Nonnull sluice_write_at(const sluice_writes *_Nonnull batch, uint32_t index) {
            return (const sluice_write *)(const void *)((const char *)batch->writes + (size_t)index * batch->write_size);
        }

        /* `index` is below type_count. */
        static inline const sluice_type *_Nonnull sluice_type_at(const sluice_writes *_Nonnull batch, uint32_t index) {
            return (const sluice_type *)(const void *)((const char *)batch->types + (size_t)index * batch->type_size);
        }

        static inline int sluice_text_is(sluice_text text, const char *_Nullable data, size_t length) {
            return text.length == length && (length == 0 || memcmp(text.data, data, length) == 0);
        }

        /*
         * The column of this name; SLUICE_NO_COLUMN when there is none. `hint` is looked at first: keep what it was the last time, and
         * looking costs one comparison. Columns move when the schema changes, so a number alone is not to be kept.
         */
        static inline uint32_t sluice_type_column(const sluice_type *_Nonnull type, const char *_Nullable name, size_t length, uint32_t hint) {
            if (hint < type->column_count && sluice_text_is(type->columns[hint], name, length)) return hint;
            for (uint32_t column = 0; column < type->column_count; column++)
                if (sluice_text_is(type->columns[column], name, length)) return column;
            return SLUICE_NO_COLUMN;
        }

        /* The cell of a column; one that is absent when there is no row or no such column. */
        static inline sluice_cell sluice_row_cell(const sluice_row *_Nonnull row, uint32_t column) {
            static const sluice_cell absent = {SLUICE_TAG_ABSENT, {0, 0, 0}, 0, 0};
            return row->cells && column < row->count ? row->cells[column] : absent;
        }

        /* Whether it is null or absent, which rules take for the same. */
        static inline int sluice_row_is_null(const sluice_row *_Nonnull row, uint32_t column) {
            return sluice_row_cell(row, column).tag <= SLUICE_TAG_NULL;
        }

        static inline int sluice_row_bool(const sluice_row *_Nonnull row, uint32_t column, int *_Nonnull value) {
            sluice_cell cell = sluice_row_cell(row, column);
            if (cell.tag != SLUICE_TAG_BOOL) return 0;
            *value = cell.bits != 0;
            return 1;
        }

        static inline int sluice_row_int(const sluice_row *_Nonnull row, uint32_t column, int64_t *_Nonnull value) {
            sluice_cell cell = sluice_row_cell(row, column);
            if (cell.tag != SLUICE_TAG_INT) return 0;
            memcpy(value, &cell.bits, sizeof *value);
            return 1;
        }

        /* A float, a double, or an int as the double that is nearest to it. */
        static inline int sluice_row_double(const sluice_row *_Nonnull row, uint32_t column, double *_Nonnull value) {
            sluice_cell cell = sluice_row_cell(row, column);
            int64_t whole;
            float narrow;
            uint32_t low = (uint32_t)cell.bits;
            switch (cell.tag) {
            case SLUICE_TAG_INT:
                memcpy(&whole, &cell.bits, sizeof whole);
                *value = (double)whole;
                return 1;
            case SLUICE_TAG_FLOAT:
                memcpy(&narrow, &low, sizeof narrow);
                *value = narrow;
                return 1;
            case SLUICE_TAG_DOUBLE: memcpy(value, &cell.bits, sizeof *value); return 1;
            default: return 0;
            }
        }

        /* A string, or a decimal's digits. */
        static inline int sluice_row_text(const sluice_row *_Nonnull row, uint32_t column, sluice_text *_Nonnull value) {
            sluice_cell cell = sluice_row_cell(row, column);
            if (cell.tag != SLUICE_TAG_STRING && cell.tag != SLUICE_TAG_DECIMAL) return 0;
            value->data = (const char *)(row->arena + cell.bits);
            value->length = cell.length;
            return 1;
        }

        /* Binary data, or a UUID's 16 bytes. */
        static inline int sluice_row_bytes(const sluice_row *_Nonnull row, uint32_t column, const uint8_t *_Nullable *_Nonnull bytes,
                                           size_t *_Nonnull length) {
            sluice_cell cell = sluice_row_cell(row, column);
            if (cell.tag != SLUICE_TAG_BINARY && cell.tag != SLUICE_TAG_UUID) return 0;
            *bytes = row->arena + cell.bits;
            *length = cell.length;
            return 1;
        }

        /* Both parts have the same sign. */
        static inline int sluice_row_date(const sluice_row *_Nonnull row, uint32_t column, int64_t *_Nonnull seconds, int32_t *_Nonnull nanoseconds) {
            sluice_cell cell = sluice_row_cell(row, column);
            if (cell.tag != SLUICE_TAG_DATE) return 0;
            memcpy(seconds, &cell.bits, sizeof *seconds);
            memcpy(nanoseconds, &cell.length, sizeof *nanoseconds);
            return 1;
        }

        /* Writes 12 bytes. */
        static inline int sluice_row_object_id(const sluice_row *_Nonnull row, uint32_t column, uint8_t *_Nonnull bytes) {
            sluice_cell cell = sluice_row_cell(row, column);
            if (cell.tag != SLUICE_TAG_OBJECT_ID) return 0;
            for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(cell.bits >> (56 - 8 * i));
            for (int i = 0; i < 4; i++) bytes[8 + i] = (uint8_t)(cell.length >> (24 - 8 * i));
            return 1;
        }

        /* What is inside a list, dictionary or link, as a row: its columns are the elements; keys and values in turn; type and key. */
        static inline int sluice_row_inside(const sluice_row *_Nonnull row, uint32_t column, sluice_row *_Nonnull inside) {
            sluice_cell cell = sluice_row_cell(row, column);
            if (cell.tag != SLUICE_TAG_LIST && cell.tag != SLUICE_TAG_DICTIONARY && cell.tag != SLUICE_TAG_LINK) return 0;
            inside->cells = (const sluice_cell *)(const void *)(row->arena + cell.bits);
            inside->arena = row->arena;
            inside->count = cell.length;
            inside->reserved = 0;
            return 1;
        }

        /* Where the value of a key is in the inside of a dictionary or an embedded object; SLUICE_NO_COLUMN when it has no such key. */
        static inline uint32_t sluice_row_key(const sluice_row *_Nonnull inside, const char *_Nullable key, size_t length) {
            sluice_text found;
            for (uint32_t column = 0; column + 1 < inside->count; column += 2)
                if (sluice_row_text(inside, column, &found) && sluice_text_is(found, key, length)) return column + 1;
            return SLUICE_NO_COLUMN;
        }

        /* Whether a column holds the same in two rows of one batch, to the bit: what an update leaves as it was. Absent is null. */
        static inline int sluice_row_same(const sluice_row *_Nonnull left, const sluice_row *_Nonnull right, uint32_t column) {
            sluice_cell l = sluice_row_cell(left, column), r = sluice_row_cell(right, column);
            sluice_row inside_left, inside_right;
            if (l.tag <= SLUICE_TAG_NULL && r.tag <= SLUICE_TAG_NULL) return 1;
            if (l.tag != r.tag || l.length != r.length) return 0;
            switch (l.tag) {
            case SLUICE_TAG_DECIMAL:
            case SLUICE_TAG_STRING:
            case SLUICE_TAG_BINARY:
            case SLUICE_TAG_UUID: return memcmp(left->arena + l.bits, right->arena + r.bits, l.length) == 0;
            case SLUICE_TAG_LIST:
            case SLUICE_TAG_DICTIONARY:
            case SLUICE_TAG_LINK:
                sluice_row_inside(left, column, &inside_left);
                sluice_row_inside(right, column, &inside_right);
                for (uint32_t i = 0; i < l.length; i++)
                    if (!sluice_row_same(&inside_left, &inside_right, i)) return 0;
                return 1;
            default: return l.bits == r.bits;
            }
        }

        #ifdef __cplusplus
        }
        #endif

        #endif

        """#
}
