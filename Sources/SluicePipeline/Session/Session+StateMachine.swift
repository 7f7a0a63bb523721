package import SluiceCore

/// What a session may do when: pure, so that every (state, message) pair can be tried.
package struct SessionState: Sendable {
    package enum Phase: Hashable, Sendable {
        case awaitingHello
        case open
        case closed
    }

    package enum Message: String, CaseIterable, Sendable {
        case hello, subscribe, upload, ingest, mark, refreshToken, reportError
    }

    package private(set) var phase: Phase = .awaitingHello
    /// The newest subscription version asked for.
    package private(set) var requested: UInt64 = 0
    /// The version whose view is live.
    package private(set) var active: UInt64 = 0
    private var lastChangeset: UInt64 = 0
    /// `true` once a token has been given ahead of a Hello.
    private var hasToken = false
    private var reports = 0
    /// How many of a session's reports are logged.
    package static let reports = 16

    package init() {}

    /// Throws `badMessageOrder` for a message that has no place here.
    package mutating func receive(_ message: Message) throws(SluiceError) {
        switch (phase, message) {
        case (.awaitingHello, .hello):
            phase = .open
        case (.open, .subscribe), (.open, .upload), (.open, .ingest), (.open, .mark), (.open, .refreshToken),
            (.open, .reportError):
            break
        case (.awaitingHello, .refreshToken) where !hasToken:
            // A Hello that is too large for a peer that has not authenticated is sent behind its token.
            hasToken = true
        case (.awaitingHello, _):
            throw SluiceError(.badMessageOrder, "The first message was \(message.rawValue), not hello.")
        case (.open, .hello):
            throw SluiceError(.badMessageOrder, "A second hello came in one session.")
        case (.closed, _):
            throw SluiceError(.badMessageOrder, "\(message.rawValue) came after the session had ended.")
        }
    }

    package mutating func begin(changeset: UInt64) { lastChangeset = changeset }

    /// Takes a new subscription version.
    /// - Throws: `badMessageOrder` unless it is higher than those before, `badSyntax` beyond the 63 bits that JSON and databases have.
    package mutating func request(_ version: UInt64) throws(SluiceError) {
        guard version <= UInt64(Int64.max) else { throw SluiceError(.badSyntax, "No subscription set has the version \(version).") }
        guard version > requested else {
            throw SluiceError(.badMessageOrder, "Subscription set version \(version) came after version \(requested).")
        }
        requested = version
    }

    /// A bootstrap ended, of the newest version or of one before it.
    package mutating func complete(_ version: UInt64) { if phase == .open { active = version } }

    /// Whether what the client reports is logged: one that reports without end fills no log.
    package mutating func takeReport() -> Bool {
        reports += 1
        return reports <= Self.reports
    }

    /// Whether a changeset is new (UP-3: a resend is recognised by its number).
    /// - Throws: `badClientFile` when numbers are missing: the client has heard that they took effect, and the database, restored from an
    ///   older backup, does not have them (RST-1).
    package mutating func take(changeset number: UInt64) throws(SluiceError) -> Bool {
        guard number > lastChangeset else { return false }
        guard number == lastChangeset + 1 else {
            throw SluiceError(
                .badClientFile, "Changeset \(number) came after \(lastChangeset): \(number - lastChangeset - 1) are not in the database.")
        }
        lastChangeset = number
        return true
    }

    package mutating func close() { phase = .closed }
}
