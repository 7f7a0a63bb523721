#include <isa-l/igzip_lib.h>
#include <stdlib.h>

// The room for the compressed form of a body. It suffices for bytes that cannot be compressed.
static inline size_t sluice_compressed_bound(size_t count) { return count + count / 8 + 1024; }

// Compresses a body to one stream (RFC 1950). Returns the number of bytes, or 0 without memory or room.
static inline size_t sluice_compress(const unsigned char *input, size_t count, unsigned char *output, size_t room) {
    if (count > UINT32_MAX) return 0;
    struct isal_zstream *stream = malloc(sizeof *stream);
    unsigned char *level = malloc(ISAL_DEF_LVL1_DEFAULT);
    size_t length = 0;
    if (stream && level) {
        isal_deflate_init(stream);
        stream->level = 1;
        stream->level_buf = level;
        stream->level_buf_size = ISAL_DEF_LVL1_DEFAULT;
        stream->gzip_flag = IGZIP_ZLIB;
        stream->end_of_stream = 1;
        stream->flush = NO_FLUSH;
        stream->next_in = (unsigned char *)input;
        stream->avail_in = (uint32_t)count;
        stream->next_out = output;
        stream->avail_out = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
        if (isal_deflate(stream) == COMP_OK && stream->internal_state.state == ZSTATE_END) length = stream->total_out;
    }
    free(level);
    free(stream);
    return length;
}
