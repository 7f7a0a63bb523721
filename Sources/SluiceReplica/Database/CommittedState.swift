import Dispatch
import SluiceCore

/// Reads of the committed state at the moment of each call, from any thread. They use a separate connection, which never waits for
/// a writer and opens with the first read.
final class CommittedState: @unchecked Sendable {  // Sendable because: the connection is used on the queue only.
    private let path: String
    private let mode: Connection.Mode
    private let queue = DispatchQueue(label: "sluice.replica.committed", qos: .userInitiated)
    private var connection: Connection?

    init(path: String, isReadOnly: Bool) {
        self.path = path
        mode = isReadOnly ? .readOnly : .reader
    }

    /// Runs the body on one snapshot of the file. The body must be short and must not call `read`: the queue is serial.
    func read<R>(_ body: (Connection) throws(SluiceError) -> R) throws(SluiceError) -> R {
        let result = queue.sync { Result { () throws(SluiceError) in try readInTurn(body) } }
        return try result.get()
    }

    private func readInTurn<R>(_ body: (Connection) throws(SluiceError) -> R) throws(SluiceError) -> R {
        let connection = try openOnce()
        try connection.execute("BEGIN")
        // Also ends a transaction that a failed statement left open. The caller receives the body's error either way.
        defer { try? connection.execute("ROLLBACK") }
        return try body(connection)
    }

    private func openOnce() throws(SluiceError) -> Connection {
        if let connection { return connection }
        let fresh = try Connection.open(path: path, mode)
        connection = fresh
        return fresh
    }
}
