import Crypto
import JWTKit
package import SluiceCore
import SluiceValues
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
        var keys: JWTKeyCollection
        var ids: Set<String>
        /// The ids of keys that were removed. No reading brings them back.
        var removed: Set<String> = []
        /// The id of the key that signs.
        var newest: String
    }

    private struct Reads: Sendable {
        /// The time of the last reading, in monotonic nanoseconds.
        var last: UInt64
        /// The reading for tokens with an unknown key. All of them wait for it.
        var running: Task<Void, any Error>?
    }

    /// The shortest key, in bytes.
    static let keyBytes = 32
    /// The time between two readings for tokens with an unknown key, in nanoseconds. A stranger can name any.
    static let pause: UInt64 = 5_000_000_000

    private let source: Source
    private let environment: any Environment
    private let state: Mutex<State>
    private let reads: Mutex<Reads>

    /// - Throws: `configInvalid` without a key, and for a key of fewer than `keyBytes`; the errors of the source.
    package init(environment: any Environment, _ source: @escaping Source) async throws {
        self.source = source
        self.environment = environment
        state = Mutex(try await Self.state(try await source()))
        reads = Mutex(Reads(last: environment.monotonicNanoseconds()))
    }

    private static func state(_ keys: [Key]) async throws(SluiceError) -> State {
        guard let newest = keys.last else { throw SluiceError(.configInvalid, "The app has no signing key.") }
        let collection = JWTKeyCollection()
        let (parser, serializer) = (
            DefaultJWTParser(jsonDecoder: ClaimsDecoder()), DefaultJWTSerializer(jsonEncoder: ClaimsEncoder())
        )
        for key in keys {
            guard key.bytes.count >= keyBytes else {
                throw SluiceError(
                    .configInvalid, "The signing key has \(key.bytes.count) bytes.", fix: "Use \(keyBytes) random bytes or more.")
            }
            await collection.add(
                hmac: HMACKey(key: SymmetricKey(data: key.bytes)), digestAlgorithm: .sha256,
                kid: key.id.isEmpty ? nil : JWKIdentifier(string: key.id), parser: parser, serializer: serializer)
        }
        return State(keys: collection, ids: Set(keys.map(\.id)), newest: newest.id)
    }

    /// Reads the keys again, as another gateway may have rotated them.
    package func reload() async throws {
        let fresh = try await Self.state(try await source())
        reads.withLock { $0.last = environment.monotonicNanoseconds() }
        state.withLock { state in
            let removed = state.removed.union(state.ids).subtracting(fresh.ids)
            state = fresh
            state.removed = removed
        }
    }

    // MARK: Tokens

    func sign(_ claims: Claims) async throws -> String {
        let (keys, newest) = state.withLock { ($0.keys, $0.newest) }
        return try await keys.sign(claims, kid: newest.isEmpty ? nil : JWKIdentifier(string: newest))
    }

    /// Verifies the signature of a token. One with an unknown key waits for a reading of the keys, at most one in five seconds.
    ///
    /// - Throws: `badAuthentication` if the keys do not have it; `tooManyRequests` if they were read a moment ago, so that the token of a
    ///   rotation is not taken for a forged one; the errors of the source.
    func verify(_ text: String) async throws -> Claims {
        let (keys, ids, removed) = state.withLock { ($0.keys, $0.ids, $0.removed) }
        // The collection would take another key for a token that names an unknown one, or none.
        let id = Self.keyID(of: text)
        if ids.contains(id) { return try await keys.verify(text, as: Claims.self) }
        if !removed.contains(id) { try await readForUnknownKey() }
        let (renewed, known) = state.withLock { ($0.keys, $0.ids) }
        guard known.contains(id) else { throw SluiceError(.badAuthentication, "The token names an unknown key.") }
        return try await renewed.verify(text, as: Claims.self)
    }

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

    /// Returns the key id of a token; empty for none, and for a text that is no token.
    private static func keyID(of text: String) -> String {
        // The header of a token without `kid`, as all of the first key have.
        guard let header = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1).first, header.count > plainHeaderBytes else {
            return ""
        }
        let json = Base64.decode(url: header).flatMap { try? JSON.parse($0) }
        return json?["kid"]?.string ?? ""
    }

    /// The length of `{"alg":"HS256","typ":"JWT"}` in base64url.
    private static let plainHeaderBytes = 36
}
