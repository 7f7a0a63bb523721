extension User {
    private func run<R: Sendable>(
        _ work: @Sendable @escaping (User) async throws -> R, _ completion: @Sendable @escaping (Result<R, any Error>) -> Void
    ) {
        // Unstructured because: the caller has no task; the request's deadline ends it.
        _Concurrency.Task {
            do {
                completion(.success(try await work(self)))
            } catch {
                completion(.failure(error))
            }
        }
    }

    private func run(
        _ work: @Sendable @escaping (User) async throws -> Void, _ completion: @Sendable @escaping ((any Error)?) -> Void
    ) {
        run(work) { (result: Result<Void, any Error>) in
            if case .failure(let error) = result { completion(error) } else { completion(nil) }
        }
    }

    /// `logOut()` for code without async; like the others here it calls on no particular thread.
    public func logOut(completion: @Sendable @escaping ((any Error)?) -> Void) { run({ try await $0.logOut() }, completion) }

    /// `remove()` for code without async.
    public func remove(completion: @Sendable @escaping ((any Error)?) -> Void) { run({ try await $0.remove() }, completion) }

    /// `delete()` for code without async.
    public func delete(completion: @Sendable @escaping ((any Error)?) -> Void) { run({ try await $0.delete() }, completion) }

    /// `refreshCustomData()` for code without async. It gives plain values, as `AnyBSON.plain` tells; `customData` has them with
    /// their types.
    public func refreshCustomData(_ completion: @Sendable @escaping (Result<[AnyHashable: Any], any Error>) -> Void) {
        run({ try await $0.refreshCustomData() }) { (result: Result<Document, any Error>) in
            completion(result.map { document in document.mapValues { ($0 ?? .null).plain } })
        }
    }
}
