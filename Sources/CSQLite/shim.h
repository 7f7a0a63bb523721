// The system's SQLite: libsqlite3-dev on Debian, the SDK's own library on Apple's platforms.
#include <sqlite3.h>
