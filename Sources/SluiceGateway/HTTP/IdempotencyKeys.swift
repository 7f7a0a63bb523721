import Crypto
import HTTPTypes
import Hummingbird
import Logging
import SluiceCore
import SluiceNet
import SluicePostgres
import SluiceValues
import Synchronization

/// The `Idempotency-Key` of requests: a repeated request gets the answer of the first.
///
/// The database keeps keys for `Limits.idempotencyHours`, each with its user, class, the SHA-256 of the body, and the answer. All
/// gateways of an app share them. A request without a final answer, as when the log fails, releases its key. A repetition then does the
/// work again; accepted objects take effect once by their primary key.
struct IdempotencyKeys: Sendable {
    /// The longest key, in visible ASCII characters.
    static let keyCharacters = 255

    private static let header = HTTPField.Name("Idempotency-Key")

    private let store: IngestRequestStore
    private let environment: any SluiceCore.Environment
    private let logger: Logger

    init(store: IngestRequestStore, environment: any SluiceCore.Environment, logger: Logger) {
        self.store = store
        self.environment = environment
        self.logger = logger
    }

    /// The state of a request with a key.
    enum Request: Sendable {
        /// The first request of its key, which holds the lease.
        case first(Lease)
        /// A repetition of a request that has been answered.
        case repeated(IngestRequestStore.Answer)
    }

    /// Claims the key of a request.
    ///
    /// - Returns: nil for a request without a key.
    /// - Throws: `badRequest` for an invalid key; `idempotencyKeyInUse`, as 409 with `Retry-After`, while the first request runs.
    func begin(_ request: Hummingbird.Request, user: String, type: String) async throws -> Request? {
        guard let header = Self.header, let key = request.headers[header] else { return nil }
        guard (1...Self.keyCharacters).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw SluiceError(
                .badRequest, "The Idempotency-Key is not valid.", fix: "Use 1 to \(Self.keyCharacters) visible ASCII characters.")
        }
        let owner = SymmetricKey(size: .bits128).withUnsafeBytes { Hex.encode(Array($0)) }
        let mine = IngestRequestStore.Key(user: user, key: key, owner: owner)
        // Unstructured because: after a cancellation the claim's result would be unknown. The claim completes, and dropping the lease
        // releases the key.
        let claim = Task { [store] in try await store.claim(mine, type: type) }
        switch try await claim.value {
        case .mine: return .first(Lease(key: mine, store: store, environment: environment, logger: logger))
        case .done(let answer): return .repeated(answer)
        case .busy(let seconds):
            throw ErrorResponse(
                SluiceError(.idempotencyKeyInUse, "The request with the key '\(key)' is still running."), retryAfter: min(seconds, 5))
        }
    }

    /// - Throws: `idempotencyKeyInUse` if the answer belongs to another class or body.
    static func check(_ answer: IngestRequestStore.Answer, type: String, body: [UInt8]) throws(SluiceError) {
        guard answer.type == type, answer.body == body else {
            throw SluiceError(.idempotencyKeyInUse, "The Idempotency-Key was used for another body or type.", fix: "Use a new key.")
        }
    }

    /// Deletes old keys every ten minutes.
    func prune() async throws {
        while !Task.isCancelled {
            try await environment.sleep(nanoseconds: 600_000_000_000)
            do { try await store.prune() } catch {
                logger.warning("Old idempotency keys could not be removed.", metadata: ["error": "\(error)"])
            }
        }
    }

    /// The lease of a key by one request. Its deinitializer releases the key, as a response may never start.
    final class Lease: Sendable {
        private let key: IngestRequestStore.Key
        private let store: IngestRequestStore
        private let environment: any SluiceCore.Environment
        private let logger: Logger
        private let renewed: Mutex<UInt64>
        private let isOver = Atomic<Bool>(false)

        fileprivate init(key: IngestRequestStore.Key, store: IngestRequestStore, environment: any SluiceCore.Environment, logger: Logger) {
            self.key = key
            self.store = store
            self.environment = environment
            self.logger = logger
            renewed = Mutex(environment.monotonicNanoseconds())
        }

        deinit {
            if isOver.load(ordering: .acquiring) { return }
            Task { [store, key] in try? await store.release(key) }  // Unstructured because: deinit cannot wait; a deadline ends it.
        }

        /// Renews the lease once a sixth of its time has passed. Call it after each piece of the body.
        ///
        /// - Throws: `idempotencyKeyInUse` if another request holds the key.
        func renew() async throws {
            let now = environment.monotonicNanoseconds()
            let isDue = renewed.withLock { last in
                guard now - min(now, last) > UInt64(IngestRequestStore.leaseSeconds) * 1_000_000_000 / 6 else { return false }
                last = now
                return true
            }
            if isDue { try await store.renew(key) }
        }

        /// Stores the answer. Releases the key instead if the request failed.
        func finish(_ summary: IngestSummary, body: [UInt8]) async {
            guard summary.failure == nil else { return await release() }
            let (json, status) = (IngestAnswer.json(summary), IngestAnswer.status(summary))
            await end { store, key in try await store.finish(key, body: body, status: status.code, json: json.text) }
        }

        func release() async { await end { store, key in try await store.release(key) } }

        private func end(_ work: @escaping @Sendable (IngestRequestStore, IngestRequestStore.Key) async throws -> Void) async {
            // Set first: if the statement fails, the lease expires by itself.
            isOver.store(true, ordering: .releasing)
            await Task { [store, key, logger] in  // Unstructured because: a cancelled request releases its key, too; a deadline ends it.
                do { try await work(store, key) } catch {
                    logger.warning(
                        "An idempotency key could not be released. It is released when its lease ends.", metadata: ["error": "\(error)"])
                }
            }.value
        }
    }
}
