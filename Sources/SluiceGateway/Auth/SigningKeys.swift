package import SluiceCore
import SluiceIdentity
import Synchronization

/// The keys of an app's tokens. The newest one signs, and all of them verify, so that a rotation logs no user out.
///
/// A token names its key as `kid`. The first key has an empty id, and its tokens name none.
package final class SigningKeys: Sendable {
    package struct Key: Hashable, Sendable {
        package var id: String
        package var bytes: [UInt8]

        package init(id: String, bytes: [UInt8]) {
            self.id = id
            self.bytes = bytes
        }
    }

    /// Returns the keys, the oldest first.
    package typealias Source = @Sendable () async throws -> [Key]

    private struct State: Sendable {
        /// The keys by their ids.
        var keys: [String: TokenSecret]
        /// The ids of keys that were removed. No reading brings them back.
        var removed: Set<String> = []
        /// The key that signs.
        var newest: TokenSecret
    }

    private struct Reads: Sendable {
        /// The time of the last reading, in monotonic nanoseconds.
        var last: UInt64
        /// The reading for tokens with an unknown key. All of them wait for it.
        var running: Task<Void, any Error>?
    }

    /// The time between two readings for tokens with an unknown key, in nanoseconds. A stranger can name any.
    static let pause: UInt64 = 5_000_000_000

    private let source: Source
    private let environment: any Environment
    private let state: Mutex<State>
    private let reads: Mutex<Reads>

    /// - Throws: `configInvalid` without a key, and those of `TokenSecret`; the errors of the source.
    package init(environment: any Environment, _ source: @escaping Source) async throws {
        self.source = source
        self.environment = environment
        state = Mutex(try Self.state(try await source()))
        reads = Mutex(Reads(last: environment.monotonicNanoseconds()))
    }

    private static func state(_ keys: [Key]) throws(SluiceError) -> State {
        var secrets: [String: TokenSecret] = [:]
        for key in keys { secrets[key.id] = try TokenSecret(id: key.id, bytes: key.bytes) }
        guard let newest = keys.last.flatMap({ secrets[$0.id] }) else {
            throw SluiceError(.configInvalid, "The app has no signing key.")
        }
        return State(keys: secrets, newest: newest)
    }

    /// Reads the keys again, as another gateway may have rotated them.
    package func reload() async throws {
        let fresh = try Self.state(try await source())
        reads.withLock { $0.last = environment.monotonicNanoseconds() }
        state.withLock { state in
            let removed = state.removed.union(state.keys.keys).subtracting(fresh.keys.keys)
            state = fresh
            state.removed = removed
        }
    }

    // MARK: Tokens

    func sign(_ claims: Claims) -> String { state.withLock(\.newest).sign(claims.json) }

    /// Verifies the signature of a token. One with an unknown key waits for a reading of the keys, at most one in five seconds.
    ///
    /// - Throws: `badAuthentication` if the keys do not have it; `tooManyRequests` if they were read a moment ago, so that the token of a
    ///   rotation is not taken for a forged one; the errors of the source.
    func verify(_ text: String) async throws -> Claims {
        guard let token = try? SignedToken(text) else { throw Self.forged }
        let id = token.keyID ?? ""
        let (key, isRemoved) = state.withLock { ($0.keys[id], $0.removed.contains(id)) }
        if let key { return try Self.claims(of: token, by: key) }
        if !isRemoved { try await readForUnknownKey() }
        guard let key = state.withLock({ $0.keys[id] }) else { throw Self.forged }
        return try Self.claims(of: token, by: key)
    }

    private static func claims(of token: SignedToken, by key: TokenSecret) throws(SluiceError) -> Claims {
        guard key.verifies(token) else { throw forged }
        return try Claims(token.claims)
    }

    private static var forged: SluiceError { SluiceError(.badAuthentication, "The token has no signature of a known key.") }

    private func readForUnknownKey() async throws {
        let reading = reads.withLock { reads -> Task<Void, any Error>? in
            if let running = reads.running { return running }
            // Inside of the lock: the time of another thread's reading is never later than this one.
            let now = environment.monotonicNanoseconds()
            guard now >= reads.last, now - reads.last >= Self.pause else { return nil }
            let task = Task {  // Unstructured because: several requests wait for it, and a cancelled one must not end the others.
                defer { self.reads.withLock { $0.running = nil } }
                try await self.reload()
            }
            (reads.last, reads.running) = (now, task)
            return task
        }
        guard let reading else {
            throw SluiceError(
                .tooManyRequests, "The key of the token is not known yet.", fix: "Try again in \(Self.pause / 1_000_000_000) seconds.")
        }
        try await reading.value
    }
}
