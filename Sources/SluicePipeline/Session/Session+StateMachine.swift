package import SluiceCore

/// The protocol state of a session. Pure, so that tests can try every pair of state and message.
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
    /// The newest requested subscription version.
    package private(set) var requested: UInt64 = 0
    /// The version of the live view.
    package private(set) var active: UInt64 = 0
    private var lastChangeset: UInt64 = 0
    /// `true` once a token has arrived ahead of a Hello.
    private var hasToken = false
    private var reports = 0
    /// The number of client reports that a session logs.
    package static let reports = 16

    package init() {}

    /// Checks a message against the phase and advances the phase.
    /// - Throws: `badMessageOrder` for a message that is invalid in this phase.
    package mutating func receive(_ message: Message) throws(SluiceError) {
        switch (phase, message) {
        case (.awaitingHello, .hello):
            phase = .open
        case (.open, .subscribe), (.open, .upload), (.open, .ingest), (.open, .mark), (.open, .refreshToken),
            (.open, .reportError):
            break
        case (.awaitingHello, .refreshToken) where !hasToken:
            // A Hello too large for an unauthenticated peer follows its token.
            hasToken = true
        case (.awaitingHello, _):
            throw SluiceError(.badMessageOrder, "The first message was \(message.rawValue), not hello.")
        case (.open, .hello):
            throw SluiceError(.badMessageOrder, "The client sent a second Hello.")
        case (.closed, _):
            throw SluiceError(.badMessageOrder, "\(message.rawValue) arrived after the end of the session.")
        }
    }

    /// Sets the number of the last changeset that took effect.
    package mutating func begin(changeset: UInt64) { lastChangeset = changeset }

    /// Accepts a new subscription version.
    /// - Throws: `badMessageOrder` unless it is higher than all before; `badSyntax` beyond the 63 bits of JSON and databases.
    package mutating func request(_ version: UInt64) throws(SluiceError) {
        guard version <= UInt64(Int64.max) else { throw SluiceError(.badSyntax, "No subscription set has the version \(version).") }
        guard version > requested else {
            throw SluiceError(.badMessageOrder, "Subscription set version \(version) arrived after version \(requested).")
        }
        requested = version
    }

    /// Records the end of a bootstrap, of the newest version or of an earlier one.
    package mutating func complete(_ version: UInt64) { if phase == .open { active = version } }

    /// Returns `true` if another client report may be logged. The bound keeps a client from filling the log.
    package mutating func takeReport() -> Bool {
        reports += 1
        return reports <= Self.reports
    }

    /// Returns `true` if a changeset is new. A resend is identified by its number.
    /// - Throws: `badClientFile` if numbers are missing. The client has received their acknowledgements, so the database was restored
    ///   from an older backup.
    package mutating func take(changeset number: UInt64) throws(SluiceError) -> Bool {
        guard number > lastChangeset else { return false }
        guard number == lastChangeset + 1 else {
            throw SluiceError(
                .badClientFile, "Changeset \(number) arrived after \(lastChangeset): \(number - lastChangeset - 1) are not in the database."
            )
        }
        lastChangeset = number
        return true
    }

    package mutating func close() { phase = .closed }
}
