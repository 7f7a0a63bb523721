package import Logging
package import SluiceCore
package import SluicePorts

/// The key set of an issuer, requested from its address and stored in memory (`KeySetSchedule`).
///
/// Logins that wait for the same request share it.
package actor KeySetCache {
    /// The address of the key set, and where it may be.
    package struct Source: Hashable, Sendable {
        package var url: String
        package var allowsPrivateAddresses: Bool

        package init(url: String, allowsPrivateAddresses: Bool = false) {
            self.url = url
            self.allowsPrivateAddresses = allowsPrivateAddresses
        }
    }

    private let source: Source
    private let http: any OutboundHTTP
    private let environment: any Environment
    private let logger: Logger
    private var schedule = KeySetSchedule()
    private var keys: IssuerKeySet?
    private var request: Task<Result<IssuerKeySet, SluiceError>, Never>?
    private var failure = SluiceError(.outboundFailed, "The key set of the issuer has not been read.")

    package init(_ source: Source, http: any OutboundHTTP, environment: any Environment, logger: Logger) {
        self.source = source
        self.http = http
        self.environment = environment
        self.logger = logger
    }

    /// Returns the keys for a token. Waits for a request only if no stored key may have signed it.
    ///
    /// - Throws: `outboundFailed`, `outboundTimeout` or `outboundAddressRefused` if there are no keys.
    package func keys(for token: SignedToken) async throws(SluiceError) -> IssuerKeySet {
        let now = environment.monotonicNanoseconds()
        if schedule.hasExpired(at: now) { keys = nil }
        let hasKey = keys.map { !$0.candidates(for: token).isEmpty } ?? false
        switch schedule.action(hasKey: hasKey, at: now) {
        case .use: break
        case .useAndRenew: start(at: now)
        case .request: start(at: now)
        case .fail where request == nil: throw failure
        case .fail: break
        }
        if hasKey, let keys { return keys }
        // A request that another login began may bring the key.
        guard let request else {
            guard let keys else { throw failure }
            return keys
        }
        switch await request.value {
        case .success(let received): return received
        case .failure(let error):
            // The keys that are left cannot verify the token. They say so with the reason.
            guard let keys else { throw error }
            return keys
        }
    }

    private func start(at now: UInt64) {
        guard request == nil else { return }
        schedule.didRequest(at: now)
        let (source, http) = (source, http)
        // Unstructured because: several logins wait for it, and one that is cancelled must not end the others. It has a deadline.
        request = Task {
            let result: Result<IssuerKeySet, SluiceError>
            do throws(SluiceError) { result = .success(try await Self.load(source, http)) } catch { result = .failure(error) }
            finish(result)
            return result
        }
    }

    /// Requests a key set.
    ///
    /// - Throws: `outboundFailed`, `outboundTimeout` or `outboundAddressRefused`.
    package static func load(_ source: Source, _ http: any OutboundHTTP) async throws(SluiceError) -> IssuerKeySet {
        let answer = try await http.send(
            OutboundRequest(
                .get, source.url, headers: [.init("Accept", "application/json")], allowsPrivateAddresses: source.allowsPrivateAddresses))
        guard answer.isSuccess else {
            throw SluiceError(.outboundFailed, "The issuer answers the request for its key set with status \(answer.status).")
        }
        return try await IssuerKeySet(jwks: answer.body)
    }

    private func finish(_ result: Result<IssuerKeySet, SluiceError>) {
        request = nil
        switch result {
        case .success(let received):
            schedule.didReceive(at: environment.monotonicNanoseconds())
            keys = received
        case .failure(let error):
            failure = error
            logger.warning(
                "The key set of a login provider could not be read. Stored keys are used for 24 hours.",
                metadata: ["url": "\(source.url)", "error": "\(error)"])
        }
    }
}
