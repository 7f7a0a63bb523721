package import SluiceCore
import SluiceNet
import Synchronization

/// The limits of logins and registrations.
///
/// For password logins only failures count, first by account and address together. A correct password from an address without failures is
/// always accepted, regardless of failures elsewhere.
///
/// An account with many failures is guarded: each address that has not logged in to it has one failure per quarter of an hour. The number
/// of guesses is thus bounded by the number of addresses.
final class LoginThrottle: Sendable {
    /// A password attempt that is being verified.
    struct Attempt: Sendable {
        fileprivate let account: String
        fileprivate let address: String
        fileprivate let isExempt: Bool
        /// The queue line for the password hash. All attempts at a guarded account share one line.
        let line: String

        fileprivate var pair: String { "\(address) \(account)" }
    }

    enum Outcome: Sendable {
        case succeeded, failed
        /// The gateway could not verify the attempt. It does not count.
        case undecided
    }

    private struct State {
        var pairs = AttemptBuckets(Limits.loginPairFailures)
        var guarded = AttemptBuckets(Limits.loginGuardedFailures)
        var addresses = AttemptBuckets(Limits.loginAddressFailures)
        var accounts = AttemptBuckets(Limits.loginAccountFailures)
        /// Wrong secrets that are too long to be guessed, by address.
        var secrets: [TooManyAttempts.Limit: AttemptBuckets] = [
            .keys: AttemptBuckets(Limits.apiKeyFailures), .resets: AttemptBuckets(Limits.apiKeyFailures),
            .tokens: AttemptBuckets(Limits.apiKeyFailures),
        ]
        /// Attempts that count regardless of their result, by address.
        var counted: [TooManyAttempts.Limit: AccountBuckets] = [
            .registrations: AccountBuckets(Limits.registrations), .anonymous: AccountBuckets(Limits.anonymousLogins),
        ]
        /// The pairs of address and account that have logged in.
        var known = RecentNames(names: Limits.loginNames)
        /// The number of attempts being verified, by address.
        var running: [String: Int] = [:]
    }

    private let environment: any Environment
    private let exemptsLoopback: Bool
    private let state = Mutex(State())

    /// - Parameter exemptsLoopback: `true` to exempt loopback clients from all limits (`sluice dev`).
    init(exemptsLoopback: Bool, environment: any Environment) {
        self.exemptsLoopback = exemptsLoopback
        self.environment = environment
    }

    // MARK: Passwords

    /// Admits an attempt. The caller must pass it to `end`.
    ///
    /// - Throws: `TooManyAttempts` with the limit and the seconds until the next attempt.
    func begin(account: String, from address: String) throws(TooManyAttempts) -> Attempt {
        let network = ClientNetwork(address)
        let isExempt = exempts(network)
        let now = environment.monotonicNanoseconds()
        // The check and the count share one lock, so parallel attempts cannot exceed the limit.
        let admitted = state.withLock { state -> Result<Attempt, TooManyAttempts> in
            let plain = Attempt(account: account, address: network.name, isExempt: isExempt, line: network.name)
            if isExempt { return .success(plain) }
            if let refused = Self.refusal(plain, state, now) { return .failure(refused) }
            state.running[network.name, default: 0] += 1
            guard Self.isGuarded(plain, state, now) else { return .success(plain) }
            return .success(Attempt(account: account, address: network.name, isExempt: false, line: "account \(account)"))
        }
        return try admitted.get()
    }

    private static func refusal(_ attempt: Attempt, _ state: State, _ now: UInt64) -> TooManyAttempts? {
        // These two limits apply to known pairs as well.
        if let seconds = state.pairs.wait(attempt.pair, now: now) { return TooManyAttempts(.pair, seconds) }
        if state.running[attempt.address, default: 0] >= Limits.loginsAtOnce { return TooManyAttempts(.atOnce, 1) }
        // A user behind a shared address does not wait for failures of others from it.
        if state.known.contains(attempt.pair) { return nil }
        if let seconds = state.addresses.wait(attempt.address, now: now) { return TooManyAttempts(.address, seconds) }
        guard isGuarded(attempt, state, now) else { return nil }
        return state.guarded.wait(attempt.pair, now: now).map { TooManyAttempts(.account, $0) }
    }

    private static func isGuarded(_ attempt: Attempt, _ state: State, _ now: UInt64) -> Bool {
        !state.known.contains(attempt.pair) && state.accounts.wait(attempt.account, now: now) != nil
    }

    func end(_ attempt: Attempt, _ outcome: Outcome) {
        guard !attempt.isExempt else { return }
        let now = environment.monotonicNanoseconds()
        state.withLock { state in
            let running = state.running[attempt.address, default: 1] - 1
            // No entry for zero: addresses would otherwise accumulate.
            state.running[attempt.address] = running > 0 ? running : nil
            switch outcome {
            case .succeeded: state.known.insert(attempt.pair)
            case .failed:
                state.pairs.take(attempt.pair, now: now)
                state.guarded.take(attempt.pair, now: now)
                state.addresses.take(attempt.address, now: now)
                state.accounts.take(attempt.account, now: now)
            case .undecided: break
            }
        }
    }

    // MARK: Registrations, anonymous logins and secrets

    /// Counts a registration.
    func countRegistration(from address: String) throws(TooManyAttempts) { try count(.registrations, address) }

    /// Counts an anonymous login, which creates an account.
    func countAnonymous(from address: String) throws(TooManyAttempts) { try count(.anonymous, address) }

    /// Checks that an address may try a secret: an API key, a login token, or a token that sets a password. Counts nothing.
    func requireAttempt(_ limit: TooManyAttempts.Limit, from address: String) throws(TooManyAttempts) {
        let network = ClientNetwork(address)
        guard !exempts(network) else { return }
        let now = environment.monotonicNanoseconds()
        if let seconds = state.withLock({ $0.secrets[limit]?.wait(network.name, now: now) }) { throw TooManyAttempts(limit, seconds) }
    }

    /// Counts a wrong secret.
    func failed(_ limit: TooManyAttempts.Limit, from address: String) {
        let network = ClientNetwork(address)
        guard !exempts(network) else { return }
        let now = environment.monotonicNanoseconds()
        state.withLock { $0.secrets[limit]?.take(network.name, now: now) }
    }

    private func count(_ limit: TooManyAttempts.Limit, _ address: String) throws(TooManyAttempts) {
        let network = ClientNetwork(address)
        guard !exempts(network) else { return }
        let now = environment.monotonicNanoseconds()
        let seconds = state.withLock { state -> Int? in
            if let seconds = state.counted[limit]?.wait(network.name, now: now) { return seconds }
            state.counted[limit]?.take(network.name, now: now)
            return nil
        }
        if let seconds { throw TooManyAttempts(limit, seconds) }
    }

    private func exempts(_ network: ClientNetwork) -> Bool { exemptsLoopback && network.isLoopback }
}

/// The attempts of addresses that make accounts: at once and by the hour, and over a day.
private struct AccountBuckets: Sendable {
    private var hourly: AttemptBuckets
    private var daily = AttemptBuckets(Limits.dailyAccounts)

    init(_ rate: (atOnce: Int, perHour: Int)) { hourly = AttemptBuckets(rate) }

    func wait(_ name: String, now: UInt64) -> Int? {
        [hourly.wait(name, now: now), daily.wait(name, now: now)].compactMap(\.self).max()
    }

    mutating func take(_ name: String, now: UInt64) {
        hourly.take(name, now: now)
        daily.take(name, now: now)
    }
}

/// A login or registration that a limit rejects.
///
/// A type beside `SluiceError`, because the metric needs the limit and the response the seconds.
package struct TooManyAttempts: SluiceErrorConvertible, Hashable, Sendable {
    /// The limit, with its label in the metric.
    package enum Limit: String, Sendable {
        case pair = "account-and-address"
        case address, account, registrations
        case anonymous = "anonymous-logins"
        case keys = "api-keys"
        case resets = "password-resets"
        case tokens = "login-tokens"
        case mails
        case atOnce = "at-once"
    }

    package var limit: Limit
    /// The seconds until the next attempt is admitted.
    package var seconds: Int

    init(_ limit: Limit, _ seconds: Int) {
        self.limit = limit
        self.seconds = seconds
    }

    package var asSluiceError: SluiceError {
        let subject =
            switch limit {
            case .pair, .account: "failed logins of this account from this address"
            case .address: "failed logins from this address"
            case .registrations: "registrations from this address"
            case .anonymous: "anonymous logins from this address"
            case .keys: "wrong API keys from this address"
            case .resets: "wrong links of mails from this address"
            case .mails: "requests for mails to this e-mail address, or from this address"
            case .tokens: "rejected login tokens from this address"
            case .atOnce: "logins at once from this address"
            }
        return SluiceError(.tooManyRequests, "Too many \(subject).", fix: "Try again in \(seconds) seconds.")
    }
}
