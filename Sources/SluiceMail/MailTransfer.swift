import CCurl
import SluiceCore
import SluicePorts

/// The failure of one attempt to send a mail.
struct MailFailure: Error, Hashable, Sendable {
    /// The library's description, such as `Login denied`.
    var text: String
    /// The reply code of the server to the mail; 0 if there was none, or the log-in or TLS failed.
    var reply: Int

    /// `true` if a repetition would fail as well: the server refused the mail with a code from 500.
    var isPermanent: Bool { (500..<600).contains(reply) }
}

/// The times for one attempt to send a mail, in milliseconds.
package struct MailDeadlines: Hashable, Sendable {
    /// For the connection, up to the log-in.
    package var connect = Limits.mailConnectSeconds * 1_000
    /// For the whole attempt.
    package var attempt = Limits.mailAttemptSeconds * 1_000

    package init() {}
}

/// Sends mails by libcurl, each on a connection of its own. The calls block.
struct MailTransfer: Sendable {
    let server: MailServer
    let deadlines: MailDeadlines

    /// The library's own set-up, once for the process.
    private static let isReady = sluice_curl_start()

    /// - Parameter isCancelled: Asked about once a second. `true` ends the attempt.
    func send(_ text: [UInt8], to recipient: MailAddress, isCancelled: @escaping @Sendable () -> Bool) throws(MailFailure) {
        guard Self.isReady, let handle = unsafe curl_easy_init() else { throw MailFailure(text: "libcurl has no memory", reply: 0) }
        let transfer = unsafe CurlTransfer(handle, MailBody(text, isCancelled: isCancelled))
        defer { transfer.close() }
        try transfer.configure(server, recipient, deadlines)
        try transfer.perform()
    }
}

/// One transfer of libcurl, with the memory that it refers to.
@safe private final class CurlTransfer {
    private let handle: UnsafeMutableRawPointer
    private let body: MailBody
    private let errors: UnsafeMutablePointer<CChar>
    /// `true` once an address was refused because it is public.
    private let isRefused: UnsafeMutablePointer<Bool>
    private var recipients: UnsafeMutablePointer<curl_slist>?

    init(_ handle: UnsafeMutableRawPointer, _ body: MailBody) {
        unsafe self.handle = unsafe handle
        self.body = body
        unsafe errors = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errors.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        unsafe isRefused = .allocate(capacity: 1)
        unsafe isRefused.initialize(to: false)
    }

    func close() {
        unsafe curl_easy_cleanup(handle)
        unsafe curl_slist_free_all(recipients)
        unsafe errors.deallocate()
        unsafe isRefused.deallocate()
    }

    func configure(_ server: MailServer, _ recipient: MailAddress, _ deadlines: MailDeadlines) throws(MailFailure) {
        unsafe recipients = unsafe curl_slist_append(nil, recipient.text)
        let context = unsafe Unmanaged.passUnretained(body).toOpaque()
        unsafe try require(sluice_curl_error_buffer(handle, errors))
        unsafe try require(sluice_curl_list(handle, CURLOPT_MAIL_RCPT, recipients))
        unsafe try require(sluice_curl_reader(handle, readMail, context))
        unsafe try require(sluice_curl_progress(handle, checkCancellation, context))
        try set(CURLOPT_URL, server.url.text)
        try set(CURLOPT_MAIL_FROM, server.sender.address.text)
        // The environment names no proxy for it.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_UPLOAD, 1)
        // Signals of a timeout would reach any thread.
        try set(CURLOPT_NOSIGNAL, 1)
        try set(CURLOPT_CONNECTTIMEOUT_MS, deadlines.connect)
        try set(CURLOPT_TIMEOUT_MS, deadlines.attempt)
        try secure(server)
        guard let credentials = server.credentials else { return }
        try set(CURLOPT_USERNAME, credentials.user)
        try set(CURLOPT_PASSWORD, credentials.password)
    }

    private func secure(_ server: MailServer) throws(MailFailure) {
        if server.allowsPlaintext, !server.url.isTLSFromStart { return unsafe try require(sluice_curl_private_only(handle, isRefused)) }
        unsafe try require(sluice_curl_secure(handle))
        if let authorities = server.authorities { try set(CURLOPT_CAINFO, authorities) }
    }

    func perform() throws(MailFailure) { unsafe try require(curl_easy_perform(handle)) }

    private func set(_ option: CURLoption, _ value: String) throws(MailFailure) {
        unsafe try require(sluice_curl_text(handle, option, value))
    }

    private func set(_ option: CURLoption, _ value: Int) throws(MailFailure) {
        unsafe try require(sluice_curl_number(handle, option, value))
    }

    private func require(_ code: CURLcode) throws(MailFailure) {
        guard code != CURLE_OK else { return }
        if unsafe isRefused.pointee {
            throw MailFailure(
                text: "allow_plaintext needs a loopback, private or link-local address, and the server has another one", reply: 0)
        }
        let text = unsafe String(cString: errors)
        let words = text.isEmpty ? unsafe curl_easy_strerror(code).map { unsafe String(cString: $0) } ?? "error \(code.rawValue)" : text
        throw MailFailure(text: words, reply: isAboutMail(code) ? unsafe sluice_curl_reply(handle) : 0)
    }

    /// `true` if the server's last reply is about the mail. One to the connection or the log-in is not: the mail can be sent once the
    /// operator has corrected the setting, or the server accepts the gateway again.
    private func isAboutMail(_ code: CURLcode) -> Bool {
        switch code {
        case CURLE_LOGIN_DENIED, CURLE_USE_SSL_FAILED, CURLE_REMOTE_ACCESS_DENIED: false
        // libcurl's error for the greeting, and for the reply to the whole mail.
        case CURLE_WEIRD_SERVER_REPLY: body.isRead
        default: true
        }
    }
}

/// The bytes of a mail, as libcurl reads them on the thread of the transfer.
private final class MailBody {
    private var rest: ArraySlice<UInt8>
    /// `true` once the server has begun to receive the mail.
    private(set) var isRead = false
    let isCancelled: @Sendable () -> Bool

    init(_ text: [UInt8], isCancelled: @escaping @Sendable () -> Bool) {
        rest = text[...]
        self.isCancelled = isCancelled
    }

    /// Copies the next bytes.
    ///
    /// - Returns: Their number; 0 at the end.
    func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        isRead = true
        let piece = rest.prefix(target.count)
        unsafe target.copyBytes(from: piece)
        rest = rest.dropFirst(piece.count)
        return piece.count
    }
}

private func readMail(_ target: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?) -> Int {
    guard let context = unsafe context else { return 0 }
    let body = unsafe Unmanaged<MailBody>.fromOpaque(context).takeUnretainedValue()
    return unsafe body.read(into: UnsafeMutableRawBufferPointer(start: target, count: size * count))
}

/// - Returns: 1 to end the transfer.
private func checkCancellation(
    _ context: UnsafeMutableRawPointer?, _ downTotal: curl_off_t, _ down: curl_off_t, _ upTotal: curl_off_t, _ up: curl_off_t
) -> Int32 {
    guard let context = unsafe context else { return 1 }
    return unsafe Unmanaged<MailBody>.fromOpaque(context).takeUnretainedValue().isCancelled() ? 1 : 0
}
