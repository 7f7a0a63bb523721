extension User {
    /// `logOut()` for code without async; like the others here it calls on no particular thread.
    public func logOut(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.logOut() } }

    /// `remove()` for code without async.
    public func remove(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.remove() } }

    /// `delete()` for code without async.
    public func delete(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.delete() } }

    /// `linkUser(credentials:)` for code without async.
    public func linkUser(credentials: Credentials, _ completion: @Sendable @escaping (Result<User, any Error>) -> Void) {
        call(completion) { try await self.linkUser(credentials: credentials) }
    }

    /// `refreshCustomData()` for code without async. It gives plain values, as `AnyBSON.plain` tells; `customData` has them with
    /// their types.
    public func refreshCustomData(_ completion: @Sendable @escaping (Result<[AnyHashable: Any], any Error>) -> Void) {
        call({ (result: Result<Document, any Error>) in
            completion(result.map { document in document.mapValues { ($0 ?? .null).plain } })
        }) { try await self.refreshCustomData() }
    }
}
