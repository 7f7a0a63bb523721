#define _GNU_SOURCE
#include "sluice_sandbox.h"

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"

/*
 * No limit of the kernel counts the threads of one process: RLIMIT_NPROC counts those of its user, and not at all for root. So a filter
 * has the kernel ask the gateway about each new thread (seccomp_unotify(2)).
 */

/* One descriptor in a message of one byte. */
union passed {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
};

static struct msghdr message(struct iovec *byte, union passed *passed) {
    struct msghdr message = {.msg_iov = byte, .msg_iovlen = 1, .msg_control = passed->bytes, .msg_controllen = sizeof passed->bytes};
    return message;
}

static int pass(int socket, int file) {
    char nothing = 0;
    struct iovec byte = {&nothing, 1};
    union passed passed;
    memset(&passed, 0, sizeof passed);
    struct msghdr letter = message(&byte, &passed);
    struct cmsghdr *header = CMSG_FIRSTHDR(&letter);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
    return sendmsg(socket, &letter, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int sluice_threads_hand_over(int socket) {
    struct sock_filter code[SLUICE_FILTER_MOST];
    struct sock_fprog program = {(unsigned short)sluice_thread_filter(code), code};
    int asked = -1;
    if (program.len > 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        asked = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    int result = asked < 0 ? -1 : pass(socket, asked);
    if (asked >= 0) close(asked);
    close(socket);
    return result;
}

int sluice_threads_take_over(int socket) {
    char nothing;
    struct iovec byte = {&nothing, 1};
    union passed passed;
    struct msghdr letter = message(&byte, &passed);
    ssize_t count;
    do count = recvmsg(socket, &letter, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
    struct cmsghdr *header = count == 1 ? CMSG_FIRSTHDR(&letter) : NULL;
    if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) return -1;
    int file;
    memcpy(&file, CMSG_DATA(header), sizeof file);
    return file;
}

/* The number of threads of a thread's process; -1 once it has ended. */
static long threads_of(pid_t thread) {
    char path[64], status[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t length = read(file, status, sizeof status - 1);
    close(file);
    status[length < 0 ? 0 : length] = 0;
    const char *line = strstr(status, "\nThreads:");
    return line ? strtol(line + strlen("\nThreads:"), NULL, 10) : -1;
}

void sluice_threads_count(int asked, long most) {
    for (;;) {
        struct pollfd ready = {asked, POLLIN, 0};
        if (poll(&ready, 1, -1) < 0 && errno != EINTR) return;
        /* The last process with the filter has ended. */
        if (ready.revents & (POLLHUP | POLLERR | POLLNVAL)) return;
        if (!(ready.revents & POLLIN)) continue;
        struct seccomp_notif question;
        memset(&question, 0, sizeof question);
        /* The thread may have ended before its question is read, or before it is answered. */
        if (ioctl(asked, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) continue;
        long threads = threads_of((pid_t)question.pid);
        struct seccomp_notif_resp answer = {.id = question.id};
        if (threads >= 0 && threads < most) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        else answer.error = -EAGAIN;
        ioctl(asked, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

#endif
