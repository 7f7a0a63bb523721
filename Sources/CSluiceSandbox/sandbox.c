#define _GNU_SOURCE
#include "sluice_sandbox.h"

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"

/* Landlock's interface, written out: the headers of a build machine may be older than the kernel. */
struct ruleset {
    uint64_t files;
    uint64_t network;
    uint64_t scopes;
};

struct beneath {
    uint64_t access;
    int32_t parent;
} __attribute__((packed));

enum { READ_FILE = 1 << 2, READ_FOLDER = 1 << 3, BOTH_WAYS_OF_TCP = 3, BOTH_SCOPES = 3 };
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, RULE_BENEATH = 1, ASK_VERSION = 1 };

/* Every right over files that a version of Landlock knows. */
static uint64_t all_rights(long version) {
    uint64_t rights = (1ULL << 13) - 1;
    if (version >= 2) rights |= 1ULL << 13; /* linking and renaming across folders */
    if (version >= 3) rights |= 1ULL << 14; /* truncating */
    if (version >= 5) rights |= 1ULL << 15; /* ioctl on devices */
    return rights;
}

static void allow_reading(int ruleset, const char *path) {
    int file = open(path, O_PATH | O_CLOEXEC);
    if (file < 0) return;
    struct beneath rule = {READ_FILE | READ_FOLDER, file};
    if (syscall(ADD_RULE, ruleset, RULE_BENEATH, &rule, 0) != 0) {
        rule.access = READ_FILE; /* it is no folder */
        syscall(ADD_RULE, ruleset, RULE_BENEATH, &rule, 0);
    }
    close(file);
}

/* The folder of a library that this program has loaded: a plugin's libraries are likely to be there too. */
static int allow_its_folder(struct dl_phdr_info *info, size_t size, void *ruleset) {
    (void)size;
    const char *end = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    char folder[4096];
    if (!end || end == info->dlpi_name || !strstr(end, ".so") || (size_t)(end - info->dlpi_name) >= sizeof folder) return 0;
    memcpy(folder, info->dlpi_name, (size_t)(end - info->dlpi_name));
    folder[end - info->dlpi_name] = 0;
    allow_reading(*(int *)ruleset, folder);
    return 0;
}

/* `first`: the first time, when libraries are still to be loaded. */
static int restrict_files(const char *const *paths, size_t count, int first) {
    long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 1) return -1;
    struct ruleset rules = {all_rights(version), version >= 4 ? BOTH_WAYS_OF_TCP : 0, version >= 6 && first ? BOTH_SCOPES : 0};
    size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int ruleset = (int)syscall(CREATE_RULESET, &rules, size, 0);
    if (ruleset < 0) return -1;
    for (size_t i = 0; i < count; i++) allow_reading(ruleset, paths[i]);
    if (first) dl_iterate_phdr(allow_its_folder, &ruleset);
    int result = (int)syscall(RESTRICT_SELF, ruleset, 0);
    close(ruleset);
    return result;
}

/* Root without its privileges is a user like any other. */
static int give_up_privileges(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof none);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_capset, &header, none);
}

static int install(struct sock_filter *code, size_t length) {
    struct sock_fprog program = {(unsigned short)length, code};
    /* All threads, should there be others already. */
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

unsigned sluice_sandbox_enter(const char *const *paths, size_t count) {
    unsigned missing = 0;
    if (give_up_privileges() != 0) missing |= SLUICE_SANDBOX_PRIVILEGES;
    /* What is written to files counts, what is written to sockets does not. */
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    if (restrict_files(paths, count, 1) != 0) missing |= SLUICE_SANDBOX_LANDLOCK;
    struct sock_filter code[SLUICE_FILTER_MOST];
    size_t length = sluice_filter(code, (uint32_t)getpid());
    if (length == 0 || install(code, length) != 0) missing |= SLUICE_SANDBOX_SECCOMP;
    return missing;
}

unsigned sluice_sandbox_seal(const char *folder) {
    if (restrict_files(&folder, folder ? 1 : 0, 0) == 0) return 0;
    /* Then nothing is opened at all. */
    const int opening[] = {
#ifdef SYS_open
        SYS_open,
#endif
        SYS_openat};
    unsigned missing = SLUICE_SANDBOX_LANDLOCK;
    if (sluice_sandbox_refuse(opening, sizeof opening / sizeof *opening, EACCES) != 0) missing |= SLUICE_SANDBOX_SECCOMP;
    return missing;
}

int sluice_sandbox_refuse(const int *calls, size_t count, int error) {
    struct sock_filter code[SLUICE_FILTER_MOST];
    size_t length = sluice_refusing_filter(code, calls, count, error);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return length == 0 ? -1 : install(code, length);
}

int sluice_sealed_file(const char *name, const void *bytes, size_t length) {
    enum { CLOSE_ON_EXEC = 1, SEALABLE = 2, NEVER_A_PROGRAM = 8 };
    int file = (int)syscall(SYS_memfd_create, name, CLOSE_ON_EXEC | SEALABLE | NEVER_A_PROGRAM);
    if (file < 0 && errno == EINVAL) file = (int)syscall(SYS_memfd_create, name, CLOSE_ON_EXEC | SEALABLE);
    if (file < 0) return -1;
    for (size_t done = 0; done < length;) {
        ssize_t count = write(file, (const char *)bytes + done, length - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) goto failed;
        done += (size_t)count;
    }
    if (fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return file;
failed:;
    int error = errno;
    close(file);
    errno = error;
    return -1;
}

void sluice_end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); }

void sluice_close_from(int descriptor) {
    if (syscall(SYS_close_range, (unsigned)descriptor, ~0U, 0) == 0) return;
    long most = sysconf(_SC_OPEN_MAX);
    for (long file = descriptor; file < (most < 0 ? 65536 : most); file++) close((int)file);
}

#endif
