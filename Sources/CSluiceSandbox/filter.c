#define _GNU_SOURCE

#if defined(__linux__)

#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define FAIL(error) (SECCOMP_RET_ERRNO | ((error) & SECCOMP_RET_DATA))
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))

struct builder {
    struct sock_filter *code;
    size_t length;
};

static void add(struct builder *filter, struct sock_filter step) {
    if (filter->length < SLUICE_FILTER_MOST) filter->code[filter->length++] = step;
}

static void load(struct builder *filter, size_t offset) {
    add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(struct builder *filter, uint32_t action) {
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Goes on with the next step when what is loaded is `value`, else passes `steps` over. */
static void when(struct builder *filter, uint32_t value, uint8_t steps) {
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, steps));
}

static void answer_call(struct builder *filter, int call, uint32_t action) {
    when(filter, (uint32_t)call, 1);
    answer(filter, action);
}

/* The low half of an argument: (argument & mask) == value allows the call, else it fails. */
static void allow_if_masked(struct builder *filter, int call, int argument, uint32_t mask, uint32_t value, int error) {
    when(filter, (uint32_t)call, 5);
    load(filter, ARGUMENT(argument));
    add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    when(filter, value, 1);
    answer(filter, SECCOMP_RET_ALLOW);
    answer(filter, FAIL(error));
}

/* Allows a call when its pointer argument is null. */
static void allow_if_null(struct builder *filter, int call, int argument) {
    when(filter, (uint32_t)call, 6);
    load(filter, ARGUMENT(argument));
    when(filter, 0, 3);
    load(filter, ARGUMENT(argument) + 4);
    when(filter, 0, 1);
    answer(filter, SECCOMP_RET_ALLOW);
    answer(filter, FAIL(EPERM));
}

static void allow_values(struct builder *filter, int call, int argument, const uint32_t *values, size_t count, int error) {
    when(filter, (uint32_t)call, (uint8_t)(2 * count + 2));
    load(filter, ARGUMENT(argument));
    for (size_t i = 0; i < count; i++) answer_call(filter, (int)values[i], SECCOMP_RET_ALLOW);
    answer(filter, FAIL(error));
}

static void load_bits(struct builder *filter, int argument, uint32_t bits) {
    load(filter, ARGUMENT(argument));
    add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
}

/*
 * Memory that grows like a stack, or is shared and can be written, is not counted by the limit of the process's data. What is shared
 * without a file can be made writable later; a file that was opened for reading cannot.
 */
static void allow_private_memory(struct builder *filter) {
    when(filter, SYS_mmap, 17);
    load_bits(filter, 3, MAP_GROWSDOWN);
    when(filter, MAP_GROWSDOWN, 1);
    answer(filter, FAIL(EPERM));
    load_bits(filter, 3, 0x0f);
    when(filter, MAP_PRIVATE, 1);
    answer(filter, SECCOMP_RET_ALLOW);
    load_bits(filter, 3, MAP_ANONYMOUS);
    when(filter, MAP_ANONYMOUS, 1);
    answer(filter, FAIL(EPERM));
    load_bits(filter, 2, PROT_WRITE);
    when(filter, 0, 1);
    answer(filter, SECCOMP_RET_ALLOW);
    answer(filter, FAIL(EPERM));
}

/* Calls that reach nothing outside of the process, or only what it has open. */
static const int harmless[] = {
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_close, SYS_close_range, SYS_lseek, SYS_dup, SYS_dup3,
    SYS_fstat, SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_fstatfs,
    SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_msync, SYS_mincore, SYS_membarrier, SYS_futex, SYS_rseq,
    SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_rt_sigpending, SYS_sigaltstack, SYS_restart_syscall, SYS_exit, SYS_exit_group,
    SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_times, SYS_getpid, SYS_gettid,
    SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getpgid, SYS_getsid,
    SYS_getrandom, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_get_priority_max,
    SYS_sched_get_priority_min, SYS_getcpu, SYS_getpriority, SYS_getrusage, SYS_getrlimit, SYS_sysinfo, SYS_uname, SYS_ppoll,
    SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_pipe2, SYS_timerfd_create,
    SYS_timerfd_settime, SYS_timerfd_gettime, SYS_timer_settime, SYS_recvfrom, SYS_getsockopt, SYS_getsockname, SYS_landlock_create_ruleset,
    SYS_landlock_add_rule, SYS_landlock_restrict_self, SYS_seccomp,
#if defined(__x86_64__)
    /* The older forms, which newer processors left out. */
    SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_dup2, SYS_poll, SYS_select, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd,
    SYS_pipe, SYS_time, SYS_pause, SYS_alarm, SYS_getpgrp, SYS_arch_prctl,
#endif
};

/* A build machine's headers may be older than calls that C libraries try first: those are told that there is no such call. */
enum { CLONE3 = 435, OPENAT2 = 437, FACCESSAT2 = 439 };

/* Opening for reading only, whatever else the flags say. */
static void allow_opening(struct builder *filter) {
    const uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    allow_if_masked(filter, SYS_openat, 2, writing, 0, EACCES);
#ifdef SYS_open
    allow_if_masked(filter, SYS_open, 1, writing, 0, EACCES);
#endif
}

static void begin(struct builder *filter) {
#ifdef ARCHITECTURE
    load(filter, offsetof(struct seccomp_data, arch));
    when(filter, ARCHITECTURE, 1);
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
    answer(filter, SECCOMP_RET_KILL_THREAD);
    load(filter, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    /* The calls of the x32 interface have numbers of their own. */
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
    answer(filter, FAIL(ENOSYS));
#endif
#endif
}

size_t sluice_filter(struct sock_filter *code, uint32_t process) {
#ifndef ARCHITECTURE
    (void)code, (void)process;
    return 0;
#else
    struct builder filter = {code, 0};
    const uint32_t thread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
    const uint32_t names[] = {PR_SET_NAME, PR_GET_NAME, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, 0x53564d41 /* PR_SET_VMA */};
    /* Nobody is told by a signal what becomes of a descriptor: that signal could be any, and go to the gateway. */
    const uint32_t descriptors[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL};
    const uint32_t terminals[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO};
    begin(&filter);
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) answer_call(&filter, harmless[i], SECCOMP_RET_ALLOW);
    answer_call(&filter, CLONE3, FAIL(ENOSYS)); /* its flags are behind a pointer; the C library falls back to clone */
    answer_call(&filter, OPENAT2, FAIL(ENOSYS));
    answer_call(&filter, FACCESSAT2, FAIL(ENOSYS));
    allow_opening(&filter);
    allow_private_memory(&filter);
    allow_if_masked(&filter, SYS_clone, 0, thread, thread, EPERM);
    allow_if_masked(&filter, SYS_tgkill, 0, ~0U, process, EPERM);
    allow_if_masked(&filter, SYS_kill, 0, ~0U, process, EPERM);
    allow_if_null(&filter, SYS_sendto, 4);   /* an answer on the socket that there is */
    allow_if_null(&filter, SYS_prlimit64, 2); /* asking, not setting */
    allow_values(&filter, SYS_prctl, 0, names, sizeof names / sizeof *names, EPERM);
    allow_values(&filter, SYS_fcntl, 1, descriptors, sizeof descriptors / sizeof *descriptors, EPERM);
    allow_values(&filter, SYS_ioctl, 1, terminals, sizeof terminals / sizeof *terminals, ENOTTY);
    answer(&filter, FAIL(EPERM));
    return filter.length < SLUICE_FILTER_MOST ? filter.length : 0;
#endif
}

size_t sluice_thread_filter(struct sock_filter *code) {
    struct builder filter = {code, 0};
#ifdef ARCHITECTURE
    begin(&filter);
    answer_call(&filter, SYS_clone, SECCOMP_RET_USER_NOTIF);
    answer_call(&filter, CLONE3, FAIL(ENOSYS));
    answer(&filter, SECCOMP_RET_ALLOW);
#endif
    return filter.length < SLUICE_FILTER_MOST ? filter.length : 0;
}

size_t sluice_refusing_filter(struct sock_filter *code, const int *calls, size_t count, int error) {
    struct builder filter = {code, 0};
#ifdef ARCHITECTURE
    begin(&filter);
    for (size_t i = 0; i < count; i++) answer_call(&filter, calls[i], FAIL((uint32_t)error));
    answer(&filter, SECCOMP_RET_ALLOW);
#else
    (void)calls, (void)count, (void)error;
#endif
    return filter.length < SLUICE_FILTER_MOST ? filter.length : 0;
}

#endif
