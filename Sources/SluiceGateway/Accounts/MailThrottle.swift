import SluiceCore
import Synchronization

/// The limits of mails, and of calls of the confirmation and reset functions, which may send mails too. A request counts whether or not
/// the address has an account, so that a rejection tells nothing.
///
/// A stranger cannot keep the owner of an account from a mail. Beyond the limit of an account, each network address has one mail of its
/// own at a time.
final class MailThrottle: Sendable {
    private struct State {
        /// By network address and account.
        var pairs = AttemptBuckets(Limits.mailPairs)
        var addresses = AttemptBuckets(Limits.mailsFromAddress)
        var accounts = AttemptBuckets(Limits.mailsOfAccount)
        /// By network address and account, for accounts beyond their limit.
        var guarded = AttemptBuckets(Limits.mailsGuarded)
    }

    private let environment: any Environment
    private let exemptsLoopback: Bool
    private let state = Mutex(State())

    /// - Parameter exemptsLoopback: `true` to exempt loopback clients (`sluice dev`).
    init(exemptsLoopback: Bool, environment: any Environment) {
        self.exemptsLoopback = exemptsLoopback
        self.environment = environment
    }

    /// Counts a mail to an account.
    ///
    /// - Parameters:
    ///   - account: The e-mail, in normal form.
    ///   - address: The network address of the client.
    /// - Throws: `TooManyAttempts` with the seconds until the next one. It is not counted then.
    func count(_ account: String, from address: String) throws(TooManyAttempts) {
        let network = ClientNetwork(address)
        if exemptsLoopback, network.isLoopback { return }
        let (pair, now) = ("\(network.name) \(account)", environment.monotonicNanoseconds())
        // The check and the count share one lock, so parallel requests cannot exceed the limit.
        let seconds = state.withLock { state -> Int? in
            let isGuarded = state.accounts.wait(account, now: now) != nil
            let waits = [
                state.pairs.wait(pair, now: now), state.addresses.wait(network.name, now: now),
                isGuarded ? state.guarded.wait(pair, now: now) : nil,
            ]
            if let seconds = waits.compactMap(\.self).max() { return seconds }
            state.pairs.take(pair, now: now)
            state.addresses.take(network.name, now: now)
            state.accounts.take(account, now: now)
            if isGuarded { state.guarded.take(pair, now: now) }
            return nil
        }
        if let seconds { throw TooManyAttempts(.mails, seconds) }
    }
}
