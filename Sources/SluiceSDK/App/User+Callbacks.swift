extension User {
    /// `logOut()` with a completion handler. All handlers here run on no particular thread.
    public func logOut(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.logOut() } }

    /// `remove()` with a completion handler.
    public func remove(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.remove() } }

    /// `delete()` with a completion handler.
    public func delete(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.delete() } }

    /// `linkUser(credentials:)` with a completion handler.
    public func linkUser(credentials: Credentials, _ completion: @Sendable @escaping (Result<User, any Error>) -> Void) {
        call(completion) { try await self.linkUser(credentials: credentials) }
    }

    /// `refreshCustomData()` with a completion handler, which receives plain values as `AnyBSON.plain` defines them.
    /// `customData` keeps the types.
    public func refreshCustomData(_ completion: @Sendable @escaping (Result<[AnyHashable: Any], any Error>) -> Void) {
        call({ (result: Result<Document, any Error>) in
            completion(result.map { document in document.mapValues { ($0 ?? .null).plain } })
        }) { try await self.refreshCustomData() }
    }
}
