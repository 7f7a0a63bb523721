#ifndef SLUICE_SPAWN_H
#define SLUICE_SPAWN_H

#include <spawn.h>

/// Adds the close of every descriptor from `first` on to the actions of a `posix_spawn`. They are closed in the child, so that none which
/// another thread opens meanwhile is left.
///
/// Returns an error number; 0 if there is none.
int sluice_spawn_close_from(posix_spawn_file_actions_t *actions, int first);

#endif
