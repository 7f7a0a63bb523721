package import SluiceCore

extension Environment {
    /// Returns the result of `body`, which is cancelled after a time. It must end soon after that.
    package func within<Value: Sendable>(
        milliseconds: Int, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try? await self.sleep(nanoseconds: UInt64(max(milliseconds, 0)) * 1_000_000)
                return nil
            }
            defer { group.cancelAll() }
            while let ended = try await group.next() {
                if let value = ended { return value }
                group.cancelAll()
            }
            throw CancellationError()
        }
    }
}
