/*
 * The plugin host as it runs on a kernel that lacks a part of the sandbox: which one is this program's own name, such as
 * `without-landlock`. Refuses the part's system calls as an old kernel does, and becomes the host.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sluice_sandbox.h"

int main(int count, char **arguments) {
    static const int landlock[] = {444, 445, 446};
    static const int seccomp[] = {SYS_seccomp};
    static char host[4096];
    const char *host_name = "sluice-plugin-host";
    ssize_t length = readlink("/proc/self/exe", host, sizeof host - 32);
    if (count < 1 || length < 0) return 64;
    host[length] = 0;
    strcpy(strrchr(host, '/') + 1, host_name);
    if (strstr(arguments[0], "without-landlock") && sluice_sandbox_refuse(landlock, 3, ENOSYS) != 0) return 65;
    if (strstr(arguments[0], "without-seccomp") && sluice_sandbox_refuse(seccomp, 1, ENOSYS) != 0) return 65;
    execv(host, arguments);
    return 66;
}
