#include <zlib.h>

// Macros with a cast do not cross into Swift. 16 beyond the window's bits: gzip's header and checksum.
static inline int sluice_gunzip_start(z_stream *stream) { return inflateInit2(stream, MAX_WBITS + 16); }
static inline int sluice_gzip_start(z_stream *stream, int level) {
    return deflateInit2(stream, level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
}

// Compresses a piece of a raw stream (RFC 1951). A piece before the last one ends at a byte, and the next may follow it. Returns the number of
// bytes, or 0 without memory or room.
static inline size_t sluice_deflate_piece(const unsigned char *input, size_t count, unsigned char *output, size_t room, int is_last) {
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    stream.next_in = (unsigned char *)input;
    stream.avail_in = (uInt)count;
    stream.next_out = output;
    stream.avail_out = (uInt)room;
    int status = deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
    size_t length = stream.total_out;
    int is_done = is_last ? status == Z_STREAM_END : status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0;
    deflateEnd(&stream);
    return is_done ? length : 0;
}
