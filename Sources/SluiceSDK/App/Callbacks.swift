/// Runs a request and passes its result to a completion handler, which runs on no particular thread.
func call<R: Sendable>(
    _ completion: @Sendable @escaping (Result<R, any Error>) -> Void, _ work: @Sendable @escaping () async throws -> R
) {
    _Concurrency.Task {  // Unstructured because: the caller has no task; the request's deadline ends it.
        do {
            completion(.success(try await work()))
        } catch {
            completion(.failure(error))
        }
    }
}

/// The same for a request without result.
func call(_ completion: @Sendable @escaping ((any Error)?) -> Void, _ work: @Sendable @escaping () async throws -> Void) {
    call({ (result: Result<Void, any Error>) in completion(result.failure) }, work)
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
