// wsrv CONNECTIONS FILE
//
// The least that a server can do: one thread, one epoll, one write per connection and flush. FILE is one server frame,
// ready made. Prints "port N", takes CONNECTIONS WebSockets, answers each client's first message with an empty end of a
// bootstrap, and then, for each line "K" on its standard input, writes the frame K times to every connection, the K
// joined in one write. Whoever drives it waits for the client in between, so that no socket's buffer is ever full.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void put(int fd, const char *bytes, size_t count) {
    if (write(fd, bytes, count) != (ssize_t)count) fail("a short write");
}

int main(int count, char **arguments) {
    if (count != 3) { fprintf(stderr, "usage: wsrv CONNECTIONS FILE\n"); return 2; }
    size_t connections = strtoull(arguments[1], 0, 10), open = 0;
    FILE *file = fopen(arguments[2], "r");
    if (!file) fail(arguments[2]);
    static char frame[1 << 16], buffer[1 << 16], joined[1 << 20];
    size_t size = fread(frame, 1, sizeof frame, file);
    fclose(file);
    struct rlimit files = {connections + 64, connections + 64};
    setrlimit(RLIMIT_NOFILE, &files);
    int server = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(server, (struct sockaddr *)&address, length) || listen(server, 4096)) fail("bind");
    getsockname(server, (struct sockaddr *)&address, &length);
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    const char *answer =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    const char end[] = {(char)0x82, 2, 0x22, 0};
    int queue = epoll_create1(0), *sockets = calloc(connections, sizeof *sockets);
    char *stage = calloc(connections + 128, 1);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = server};
    epoll_ctl(queue, EPOLL_CTL_ADD, server, &event);
    event.data.fd = 0;
    epoll_ctl(queue, EPOLL_CTL_ADD, 0, &event);
    struct epoll_event events[1024];
    for (;;) {
        int n = epoll_wait(queue, events, 1024, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == server) {
                int client = accept4(server, 0, 0, SOCK_NONBLOCK);
                if (client < 0 || open == connections) fail("accept");
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                event.data.fd = client;
                epoll_ctl(queue, EPOLL_CTL_ADD, client, &event);
                sockets[open++] = client;
                continue;
            }
            ssize_t got = read(fd, buffer, sizeof buffer - 1);
            if (got == 0) return 0;
            if (got < 0) continue;
            if (fd != 0) {
                if (stage[fd] == 0) put(fd, answer, strlen(answer));
                if (stage[fd] == 1) put(fd, end, sizeof end);
                if (stage[fd] < 2) stage[fd]++;
                continue;
            }
            buffer[got] = 0;
            size_t times = strtoull(buffer, 0, 10);
            if (times * size > sizeof joined) fail("too many frames at once");
            for (size_t k = 0; k < times; k++) memcpy(joined + k * size, frame, size);
            for (size_t k = 0; k < open; k++) put(sockets[k], joined, times * size);
        }
    }
}
