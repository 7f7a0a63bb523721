import Dispatch
import SluiceCore

/// What is committed at the moment of each question, for any thread: through a connection of its own, which waits for no writer and
/// is opened with the first question.
// Sendable because: the connection is used on the queue only.
final class CommittedState: @unchecked Sendable {
    private let path: String
    private let mode: Connection.Mode
    private let queue = DispatchQueue(label: "sluice.replica.committed", qos: .userInitiated)
    private var connection: Connection?

    init(path: String, isReadOnly: Bool) {
        self.path = path
        mode = isReadOnly ? .readOnly : .reader
    }

    /// Runs the body on one state of the file; it must be short, and ask for nothing here.
    func read<R>(_ body: (Connection) throws(SluiceError) -> R) throws(SluiceError) -> R {
        let result = queue.sync { Result { () throws(SluiceError) in try readInTurn(body) } }
        return try result.get()
    }

    private func readInTurn<R>(_ body: (Connection) throws(SluiceError) -> R) throws(SluiceError) -> R {
        let connection = try openOnce()
        try connection.execute("BEGIN")
        // What a failed statement left open ends here too; the error is the caller's either way.
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
