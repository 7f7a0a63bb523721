import Logging
import SluiceCore
import SluiceNet

/// Takes over changed TLS files of the client port, and warns before a certificate expires.
///
/// It looks at the files every five seconds. Connections keep the settings of their handshake. Files that are not usable change nothing and
/// are logged once.
struct CertificateWatch: Sendable {
    private static let interval: UInt64 = 5_000_000_000

    let files: TLSFiles
    /// Reads the files again and returns the end of the certificate, in seconds since 1970; nil while the server does not serve.
    let renew: @Sendable () throws(SluiceError) -> Int64?
    let metrics: Metrics
    let environment: any Environment
    let logger: Logger

    func run() async throws {
        var known: FileStamps?
        var alarm = CertificateAlarm()
        while !Task.isCancelled {
            // Before the files are read: a change during the read is another change.
            let stamps = FileStamps(of: files.paths)
            if stamps != known, take(&alarm, isFirst: known == nil) { known = stamps }
            if alarm.isDue(at: environment.wallMilliseconds() / 1_000) {
                logger.warning(
                    "The certificate of the client port expires soon.",
                    metadata: ["file": "\(files.certificateChain)", "hours": "\(alarm.hours(at: environment.wallMilliseconds() / 1_000))"])
            }
            try await environment.sleep(nanoseconds: Self.interval)
        }
    }

    /// - Returns: `false` if the server does not serve yet.
    private func take(_ alarm: inout CertificateAlarm, isFirst: Bool) -> Bool {
        do {
            guard let end = try renew() else { return false }
            alarm = CertificateAlarm(end: end)
            metrics.number(.certificateEnd).set(Double(end))
            if !isFirst {
                logger.notice("The TLS files have changed.", metadata: ["file": "\(files.certificateChain)", "expires": "\(end)"])
            }
        } catch {
            logger.error(
                "The TLS files have changed and are not usable. The client port keeps the earlier ones.",
                metadata: ["error": .string(error.description)])
        }
        return true
    }
}

/// Decides when the end of a certificate is logged: from `days` before it, once a day. Pure.
package struct CertificateAlarm: Sendable {
    /// The days before the end of a certificate from which on there is a warning, here and in `sluice check`.
    package static let days: Int64 = 14
    private static let early = days * 86_400
    private static let pause: Int64 = 86_400

    /// The end, in seconds since 1970; nil while it is not known.
    private let end: Int64?
    private var warned: Int64?

    init(end: Int64? = nil) { self.end = end }

    /// Returns `true` if a warning is due, which the caller gives.
    mutating func isDue(at now: Int64) -> Bool {
        guard let end, end - now < Self.early, warned.map({ now - $0 >= Self.pause }) ?? true else { return false }
        warned = now
        return true
    }

    /// Returns the whole hours until the end; negative after it.
    func hours(at now: Int64) -> Int64 { ((end ?? now) - now) / 3_600 }
}
