import Synchronization

extension App {
    /// Goes to another server of the same app: requests from here on, and the sessions of Realms that are opened later. Users stay logged
    /// in as far as that server knows their tokens. It is for this run of the program.
    /// - Parameter url: nil: where a configuration without address goes.
    /// - Throws: `AppError` when the app is not found there; then everything stays as it was.
    public func updateBaseUrl(to url: String?) async throws {
        let url = url ?? AppConfiguration.defaultBaseURL
        _ = try await client(of: url).send(.get, "\(path)/location")
        shared.baseURL.withLock { $0 = url }
    }

    /// The same for code without async.
    public func updateBaseUrl(to url: String?, _ completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.updateBaseUrl(to: url) }
    }
}
