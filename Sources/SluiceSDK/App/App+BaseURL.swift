import Synchronization

extension App {
    /// Switches to another server of the same app, for this run of the program.
    /// Later requests use it, and so do sessions of Realms that are opened later. Users stay logged in if that server accepts their tokens.
    /// - Parameter url: `http://…` or `https://…`; nil: the default of `AppConfiguration.baseURL`.
    /// - Throws: `AppError` if the app does not exist there or the server cannot be reached. The address is then unchanged.
    public func updateBaseUrl(to url: String?) async throws {
        let url = url ?? AppConfiguration.defaultBaseURL
        _ = try await client(of: url).send(.get, "\(path)/location")
        shared.baseURL.withLock { $0 = url }
    }

    /// The same with a completion handler, which runs on no particular thread.
    public func updateBaseUrl(to url: String?, _ completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.updateBaseUrl(to: url) }
    }
}
