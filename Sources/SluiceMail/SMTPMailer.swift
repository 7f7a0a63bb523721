import Dispatch
package import Logging
package import SluiceCore
package import SluicePorts
import Synchronization

/// Sends mails to a mail server by SMTP, one at a time, on a thread of its own.
///
/// Mails wait in memory. A gateway that ends loses those that wait, and their links can be requested again.
package final class SMTPMailer: Mailer {
    /// The outcome of a step.
    package enum Outcome: String, CaseIterable, Sendable {
        case sent
        /// An attempt failed, and the mail waits for the next one.
        case deferred
        /// The server refused the mail for good.
        case refused
        /// The queue was full, or the mail has waited too long.
        case dropped
    }

    private let server: MailServer
    private let transfer: MailTransfer
    private let environment: any Environment
    private let logger: Logger
    private let report: @Sendable (Outcome) -> Void
    private let state = Mutex(MailQueue())
    private let arrived: AsyncEvent
    private let thread = DispatchQueue(label: "sluice.mail")
    private static let pauseMilliseconds = 60_000

    /// - Parameter report: Receives each outcome, for the metrics.
    package init(
        _ server: MailServer, deadlines: MailDeadlines = MailDeadlines(), environment: any Environment, logger: Logger,
        report: @escaping @Sendable (Outcome) -> Void
    ) {
        self.server = server
        transfer = MailTransfer(server: server, deadlines: deadlines)
        self.environment = environment
        self.logger = logger
        self.report = report
        arrived = AsyncEvent(environment: environment)
    }

    package func send(_ mail: Mail) {
        let id = (0..<2).map { _ in String(environment.random(), radix: 16) }.joined(separator: ".")
        let now = environment.monotonicNanoseconds()
        guard state.withLock({ $0.add(mail, id: id, now: now) }) else {
            return drop(mail, "\(Limits.waitingMails) mails wait for the mail server")
        }
        arrived.fire()
    }

    /// Sends until cancellation.
    package func run() async throws {
        while !Task.isCancelled {
            let seen = arrived.count
            let now = environment.monotonicNanoseconds()
            switch state.withLock({ $0.next(now: now) }) {
            case .send(let entry): await attempt(entry)
            case .drop(let entry): drop(entry.mail, "it could not be sent within \(Limits.mailPatienceSeconds / 60) minutes")
            case .wait(let time):
                let pause = time.map { Int(($0 - now) / 1_000_000) + 1 } ?? Self.pauseMilliseconds
                await arrived.wait(after: seen, milliseconds: pause)
            }
        }
        let left = state.withLock(\.count)
        if left > 0 { logger.warning("Mails are lost, as the gateway ends.", metadata: ["mails": "\(left)"]) }
    }

    private func attempt(_ entry: MailQueue.Entry) async {
        let text = MailText.encode(entry.mail, from: server.sender, seconds: environment.wallMilliseconds() / 1_000, id: entry.id)
        let failure = await transferring(text, to: entry.mail.recipient)
        guard let failure else {
            state.withLock { $0.finish(entry) }
            return report(.sent)
        }
        // A cancelled attempt is no failure of the server.
        if Task.isCancelled { return }
        var metadata = describe(entry.mail)
        metadata["error"] = .string(failure.text)
        if failure.isPermanent {
            state.withLock { $0.finish(entry) }
            logger.error("The mail server refused a mail.", metadata: metadata)
            return report(.refused)
        }
        let (now, random) = (environment.monotonicNanoseconds(), environment.random())
        state.withLock { $0.retry(entry, now: now, random: random) }
        logger.warning("A mail could not be sent. The gateway retries.", metadata: metadata)
        report(.deferred)
    }

    /// Runs the blocking transfer on the thread of mails.
    ///
    /// - Returns: The failure; nil if the server has accepted the mail.
    private func transferring(_ text: [UInt8], to recipient: MailAddress) async -> MailFailure? {
        let isCancelled = Cancellation()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                thread.async { [transfer] in
                    do throws(MailFailure) {
                        try transfer.send(text, to: recipient) { isCancelled.isSet }
                        continuation.resume(returning: nil)
                    } catch {
                        continuation.resume(returning: error)
                    }
                }
            }
        } onCancel: {
            isCancelled.set()
        }
    }

    private func drop(_ mail: Mail, _ reason: String) {
        var metadata = describe(mail)
        metadata["reason"] = .string(reason)
        logger.error("A mail was dropped.", metadata: metadata)
        report(.dropped)
    }

    /// The domain alone: a log is no place for the addresses of users.
    private func describe(_ mail: Mail) -> Logger.Metadata {
        ["server": .string(server.url.text), "domain": .string(String(mail.recipient.domain)), "subject": .string(mail.subject)]
    }
}

/// A cancellation that a thread outside of tasks can see.
private final class Cancellation: Sendable {
    private let flag = Atomic(false)

    var isSet: Bool { flag.load(ordering: .relaxed) }
    func set() { flag.store(true, ordering: .relaxed) }
}
