/*
 * sluice_sandbox.h: shuts the process that hosts a plugin in, by means of the Linux kernel.
 *
 * Two steps, since a library has to find the libraries that it needs: `sluice_sandbox_enter` before the plugin is loaded,
 * `sluice_sandbox_seal` afterwards. What is given up cannot be had back.
 */
#ifndef SLUICE_SANDBOX_H
#define SLUICE_SANDBOX_H

#include <stddef.h>
#include <stdint.h>

/* What a kernel may lack, as bits of an answer. */
enum {
    SLUICE_SANDBOX_SECCOMP = 1,  /* no filter of system calls: network, processes and signals are open */
    SLUICE_SANDBOX_LANDLOCK = 2, /* no rules about files: libraries are read from anywhere, the plugin's folder not at all */
    SLUICE_SANDBOX_PRIVILEGES = 4, /* privileges could not be given up */
    SLUICE_SANDBOX_THREADS = 8 /* nobody counts the threads (Linux before 5.5) */
};

/*
 * Gives up all privileges, the network, other processes, and every file but those at or below `paths` and in the folders of
 * the libraries that are loaded already, which may be read.
 * To be called while the process has one thread. Paths that are not there are passed over.
 * Returns what the kernel lacks.
 */
unsigned sluice_sandbox_enter(const char *const *paths, size_t count);

/*
 * From here on only files below `folder` may be read, or none when it is null. To be called after `sluice_sandbox_enter`.
 * Returns what the kernel lacks.
 */
unsigned sluice_sandbox_seal(const char *folder);

/* Has every later system call of these numbers fail with `error`, in this process and those it starts. 0 or -1. */
int sluice_sandbox_refuse(const int *calls, size_t count, int error);

/*
 * Has each new thread of this process, and of those it starts, wait for an answer of the process at the other end of `socket`, which
 * closes. To be called before `sluice_sandbox_enter`, as the filter there forbids to send. 0, or -1 when the kernel lacks it.
 */
int sluice_threads_hand_over(int socket);

/* Waits for `sluice_threads_hand_over` at the other end. Returns a descriptor for `sluice_threads_count`; -1 when there is none. */
int sluice_threads_take_over(int socket);

/* Allows new threads while a process has fewer than `most`; others fail with EAGAIN. Blocks until the process has ended. */
void sluice_threads_count(int asked, long most);

/* A file in memory with these bytes, which nobody can change any more; closed on exec. -1 with errno when there is none. */
int sluice_sealed_file(const char *name, const void *bytes, size_t length);

/* Has the kernel end this process when the thread that started it ends. */
void sluice_end_with_parent(void);

/* Closes every descriptor from this one on. */
void sluice_close_from(int descriptor);

#endif
