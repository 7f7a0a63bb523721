// Swift calls no variadic functions, so each kind of option has a function here.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

static inline bool sluice_curl_start(void) { return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; }

static inline CURLcode sluice_curl_text(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode sluice_curl_number(CURL *handle, CURLoption option, long value) { return curl_easy_setopt(handle, option, value); }

static inline CURLcode sluice_curl_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}

// Requires TLS 1.2 with a verified certificate.
static inline CURLcode sluice_curl_secure(CURL *handle) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_USE_SSL, (long)CURLUSESSL_ALL);
    if (code) return code;
    code = curl_easy_setopt(handle, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (code) return code;
    code = curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L);
    return code ? code : curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L);
}

static inline CURLcode sluice_curl_reader(CURL *handle, curl_read_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_READFUNCTION, callback);
    return code ? code : curl_easy_setopt(handle, CURLOPT_READDATA, context);
}

static inline CURLcode sluice_curl_progress(CURL *handle, curl_xferinfo_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, callback);
    if (code) return code;
    code = curl_easy_setopt(handle, CURLOPT_XFERINFODATA, context);
    return code ? code : curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
}

static inline CURLcode sluice_curl_error_buffer(CURL *handle, char *buffer) { return curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, buffer); }

static inline long sluice_curl_reply(CURL *handle) {
    long reply = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &reply);
    return reply;
}

// `true` for a loopback, private or link-local address (RFC 1918, RFC 4193, RFC 4291).
static inline bool sluice_is_private(const struct sockaddr *address) {
    if (address->sa_family == AF_INET) {
        uint32_t number = ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
        return number >> 24 == 127 || number >> 24 == 10 || number >> 20 == 0xAC1 || number >> 16 == 0xC0A8 || number >> 16 == 0xA9FE;
    }
    if (address->sa_family != AF_INET6) return false;
    const struct in6_addr *number = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(number)) {
        struct sockaddr_in inner = {.sin_family = AF_INET};
        __builtin_memcpy(&inner.sin_addr, &number->s6_addr[12], sizeof inner.sin_addr);
        return sluice_is_private((const struct sockaddr *)&inner);
    }
    return IN6_IS_ADDR_LOOPBACK(number) || IN6_IS_ADDR_LINKLOCAL(number) || (number->s6_addr[0] & 0xFE) == 0xFC;
}

static inline curl_socket_t sluice_private_socket(void *isRefused, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)purpose;
    if (sluice_is_private(&address->addr)) return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    *(bool *)isRefused = true;
    return CURL_SOCKET_BAD;
}

// Lets the handle connect to loopback, private and link-local addresses only.
static inline CURLcode sluice_curl_private_only(CURL *handle, bool *isRefused) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, sluice_private_socket);
    return code ? code : curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, isRefused);
}
