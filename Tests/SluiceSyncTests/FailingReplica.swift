import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization

/// A file on a device whose disk is full when a bootstrap is to be shown, so many times.
final class FailingReplica: SyncReplica {
    private let file: Replica
    private let failures: Mutex<Int>

    init(_ file: Replica, failures: Int) {
        self.file = file
        self.failures = Mutex(failures)
    }

    /// Fails at the end of the transaction that shows a bootstrap, so that the file rolls it back.
    func commit<R: Sendable>(
        isDurable: Bool, _ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> R
    ) async throws(SluiceError) -> R {
        try await file.commit(isDurable: isDurable) { parts throws(SluiceError) in
            let version = parts.server.applied.version
            let result = try body(parts)
            if parts.server.applied.version > version, self.fails() { throw SluiceError(.deviceFull, "The disk is full.") }
            return result
        }
    }

    private func fails() -> Bool {
        failures.withLock { left in
            defer { left = max(left - 1, 0) }
            return left > 0
        }
    }

    var schema: Schema { file.schema }

    func read<R: Sendable>(
        _ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> R
    ) async throws(SluiceError) -> R {
        try await file.read(body)
    }

    func onLocalChange(_ handler: @escaping @Sendable () -> Void) -> UInt64 { file.onLocalChange(handler) }
    func removeObserver(_ number: UInt64) { file.removeObserver(number) }
}
