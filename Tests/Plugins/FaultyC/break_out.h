/*
 * Everything that a plugin's process must not be able to do. Each is tried, and what came of it is told: "open" where it worked,
 * else the name of the error.
 */
#ifndef BREAK_OUT_H
#define BREAK_OUT_H

/* What came of opening a file while the library was being loaded. */
static int error_at_loading;

__attribute__((constructor)) static void try_at_loading(void) {
    int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    error_at_loading = file < 0 ? errno : 0;
    if (file >= 0) close(file);
}

static const char *name_of(int error) {
    static char other[32];
    switch (error) {
    case 0: return "open";
    case EPERM: return "EPERM";
    case EACCES: return "EACCES";
    case ENOSYS: return "ENOSYS";
    default: snprintf(other, sizeof other, "errno-%d", error); return other;
    }
}

static void tell(char *told, size_t size, const char *what, int error) {
    size_t length = strlen(told);
    snprintf(told + length, size - length, "%s%s=%s", length ? " " : "", what, name_of(error));
}

/* The error of a call that answers -1 when it fails. */
#define TRIED(call) (errno = 0, (long)(call) < 0 ? errno : 0)

static int try_opening(const char *path, int flags) {
    int file = open(path, flags | O_CLOEXEC, 0600);
    int error = file < 0 ? errno : 0;
    if (file >= 0) close(file);
    return error;
}

static int try_of_parent(const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)getppid(), name);
    return try_opening(path, O_RDONLY);
}

static int try_fork(void) {
    errno = 0;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0) return errno;
    waitpid(child, NULL, 0);
    return 0;
}

static int try_reading_parent(void) {
    char byte;
    struct iovec ours = {&byte, 1}, theirs = {(void *)try_reading_parent, 1};
    return TRIED(syscall(SYS_process_vm_readv, getppid(), &ours, 1UL, &theirs, 1UL, 0UL));
}

/* Has the parent signalled when there is something to read in a pipe: with SIGURG, which nobody minds. */
static int try_own(void) {
    int ends[2];
    if (pipe(ends) != 0) return errno;
    int error = TRIED(fcntl(ends[0], F_SETOWN, getppid()));
    if (error == 0) error = TRIED(fcntl(ends[0], F_SETSIG, SIGURG));
    close(ends[0]);
    close(ends[1]);
    return error;
}

static int try_memory(int protection, int flags) {
    void *block = mmap(NULL, 4096, protection, flags | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return errno;
    return TRIED(mprotect(block, 4096, PROT_READ | PROT_WRITE));
}

static void *do_nothing(void *argument) { return argument; }

static int try_thread(void) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, do_nothing, NULL);
    if (error == 0) pthread_join(thread, NULL);
    return error;
}

static void *wait_for_ever(void *argument) {
    for (;;) pause();
    return argument;
}

/* Starts threads with the smallest stacks until one cannot be, or there are many more than any plugin needs: their number and the error. */
static void multiply(char *told, size_t size) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    int count = 0, error = 0;
    for (; count < 10000 && error == 0; count += error == 0) {
        pthread_t thread;
        error = pthread_create(&thread, &small, wait_for_ever, NULL);
    }
    snprintf(told, size, "%d %s", count, error == EAGAIN ? "EAGAIN" : name_of(error));
}

static void break_out(char *told, size_t size) {
    static const struct rlimit much = {RLIM_INFINITY, RLIM_INFINITY};
    char *const nothing[] = {NULL};
    told[0] = 0;
    tell(told, size, "loading", error_at_loading);
    tell(told, size, "passwd", try_opening("/etc/passwd", O_RDONLY));
    tell(told, size, "create", try_opening("/tmp/faulty-was-here", O_WRONLY | O_CREAT));
    tell(told, size, "remove", TRIED(unlink("/tmp/faulty-was-here")));
    tell(told, size, "environment", try_of_parent("environ"));
    tell(told, size, "memory", try_of_parent("mem"));
    tell(told, size, "internet", TRIED(socket(AF_INET, SOCK_STREAM, 0)));
    tell(told, size, "local", TRIED(socket(AF_UNIX, SOCK_STREAM, 0)));
    tell(told, size, "fork", try_fork());
    tell(told, size, "exec", TRIED(execve("/bin/true", nothing, nothing)));
    tell(told, size, "trace", TRIED(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL)));
    tell(told, size, "read", try_reading_parent());
    tell(told, size, "kill", TRIED(kill(getppid(), 0)));
    tell(told, size, "own", try_own());
    tell(told, size, "limit", TRIED(setrlimit(RLIMIT_DATA, &much)));
    tell(told, size, "share", try_memory(PROT_READ | PROT_WRITE, MAP_SHARED));
    tell(told, size, "share-later", try_memory(PROT_READ, MAP_SHARED));
    tell(told, size, "stack", try_memory(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_GROWSDOWN));
    tell(told, size, "private-later", try_memory(PROT_READ, MAP_PRIVATE));
    tell(told, size, "namespace", TRIED(syscall(SYS_unshare, 0x10000000)));
    tell(told, size, "ring", TRIED(syscall(425, 8, NULL)));
    tell(told, size, "thread", try_thread());
}

#endif
