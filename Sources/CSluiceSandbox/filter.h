/* Filters of system calls, in the kernel's bytecode. */
#ifndef SLUICE_FILTER_H
#define SLUICE_FILTER_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

enum { SLUICE_FILTER_MOST = 512 };

/* What a plugin's process may call, everything else failing with EPERM. Returns its length, 0 on a processor it does not know. */
size_t sluice_filter(struct sock_filter *code, uint32_t process);

/* Refuses these calls and allows all others. Returns its length; 0 when there are too many. */
size_t sluice_refusing_filter(struct sock_filter *code, const int *calls, size_t count, int error);

/* Asks the listener about each new thread, and allows all other calls. Returns its length, 0 on a processor it does not know. */
size_t sluice_thread_filter(struct sock_filter *code);

#endif
