#define _GNU_SOURCE
#include "sluice_spawn.h"

#if defined(__GLIBC__)

// glibc declares it for programs with `_GNU_SOURCE` alone, so that Swift does not see it.
int sluice_spawn_close_from(posix_spawn_file_actions_t *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

#else

#include <unistd.h>

int sluice_spawn_close_from(posix_spawn_file_actions_t *actions, int first) {
    int end = getdtablesize();
    for (int descriptor = first; descriptor < end; descriptor += 1) {
        int problem = posix_spawn_file_actions_addclose(actions, descriptor);
        if (problem != 0) return problem;
    }
    return 0;
}

#endif
