import Crypto
import HTTPTypes
import Hummingbird
import Logging
import SluiceCore
import SluiceNet
import SluicePostgres
import Synchronization

/// `Idempotency-Key`: a request whose answer was lost can be sent again, and is answered as it was. Keys are kept for
/// `Limits.idempotencyHours`, each with its user, the type, the SHA-256 of the body and the answer; the gateways of an app share them.
///
/// What ended without an answer to keep (the log was away, the body was cut) gives its key back, so that sending it again does the
/// work again; whatever had been accepted lands once by its primary key.
struct IdempotencyKeys: Sendable {
    /// Characters of a key: 1 to 255 of visible ASCII.
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

    /// What a request with a key is.
    enum Request: Sendable {
        /// The first of its key: it is led now.
        case first(Lease)
        /// One that has been answered.
        case repeated(IngestRequestStore.Answer)
    }

    /// - Returns: nil for a request without a key.
    /// - Throws: `badRequest` for a key that is no use, `idempotencyKeyInUse` as 409 with Retry-After while the request is under way.
    func begin(_ request: Hummingbird.Request, user: String, type: String) async throws -> Request? {
        guard let header = Self.header, let key = request.headers[header] else { return nil }
        guard (1...Self.keyCharacters).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw SluiceError(
                .badRequest, "The Idempotency-Key is not usable.", fix: "Use 1 to \(Self.keyCharacters) visible ASCII characters.")
        }
        let owner = SymmetricKey(size: .bits128).withUnsafeBytes { Hex.encode(Array($0)) }
        let mine = IngestRequestStore.Key(user: user, key: key, owner: owner)
        // Unstructured because: of a request that is cancelled here nobody would know whether it has the key; so it has it, and gives it
        // back when it lets go of the lease.
        let claim = Task { [store] in try await store.claim(mine, type: type) }
        switch try await claim.value {
        case .mine: return .first(Lease(key: mine, store: store, environment: environment, logger: logger))
        case .done(let answer): return .repeated(answer)
        case .busy(let seconds):
            throw ErrorResponse(
                SluiceError(.idempotencyKeyInUse, "The request with the key '\(key)' is still under way."), retryAfter: min(seconds, 5))
        }
    }

    /// - Throws: `idempotencyKeyInUse` when the answer was given to something else.
    static func check(_ answer: IngestRequestStore.Answer, type: String, body: [UInt8]) throws(SluiceError) {
        guard answer.type == type, answer.body == body else {
            throw SluiceError(.idempotencyKeyInUse, "The Idempotency-Key was used for another body or type.", fix: "Use a new key.")
        }
    }

    /// Forgets old keys, every ten minutes.
    func prune() async throws {
        while !Task.isCancelled {
            try await environment.sleep(nanoseconds: 600_000_000_000)
            do { try await store.prune() } catch {
                logger.warning("Old idempotency keys could not be removed.", metadata: ["error": "\(error)"])
            }
        }
    }

    /// A key that is led by one request. It is given back at the latest when the request lets go of it: an answer may never begin.
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
            // Unstructured because: nobody waits for it; it is one statement, which has a deadline.
            Task { [store, key] in try? await store.release(key) }
        }

        /// Renews the lease when a sixth of its time has passed; asked after each piece of the body.
        /// - Throws: `idempotencyKeyInUse` when it was lost.
        func renew() async throws {
            let now = environment.monotonicNanoseconds()
            let isDue = renewed.withLock { last in
                guard now - min(now, last) > UInt64(IngestRequestStore.leaseSeconds) * 1_000_000_000 / 6 else { return false }
                last = now
                return true
            }
            if isDue { try await store.renew(key) }
        }

        /// Keeps the answer, or gives the key back when there is none to keep.
        func finish(_ summary: IngestSummary, body: [UInt8]) async {
            guard summary.failure == nil else { return await release() }
            let (json, status) = (IngestAnswer.json(summary), IngestAnswer.status(summary))
            await end { store, key in try await store.finish(key, body: body, status: status.code, json: json.text) }
        }

        func release() async { await end { store, key in try await store.release(key) } }

        private func end(_ work: @escaping @Sendable (IngestRequestStore, IngestRequestStore.Key) async throws -> Void) async {
            isOver.store(true, ordering: .releasing)
            // Unstructured because: a request that was cancelled gives its key back all the same; each is one statement, which has a
            // deadline.
            await Task { [store, key, logger] in
                do { try await work(store, key) } catch {
                    logger.warning("An idempotency key could not be ended; its lease does it.", metadata: ["error": "\(error)"])
                }
            }.value
        }
    }
}
