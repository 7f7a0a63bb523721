#include <zlib.h>

// Macros with a cast do not cross into Swift. 16 beyond the window's bits: gzip's header and checksum.
static inline int sluice_gunzip_start(z_stream *stream) { return inflateInit2(stream, MAX_WBITS + 16); }
static inline int sluice_gzip_start(z_stream *stream, int level) {
    return deflateInit2(stream, level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
}
