package import RealmTestSupport
package import SluiceCore
package import SluiceRealm

/// A client of Realm's protocol in the test's process: a `RealmTestFile` and its connection. One task uses it.
package final class RealmTestClient {
    package var file: RealmTestFile
    private let link = RealmTestLink()
    /// The reason for the connection's end, such as a close code.
    package var goodbye: String? { link.goodbye }

    package init(_ file: RealmTestFile) { self.file = file }

    package convenience init(_ schema: Schema) { self.init(RealmTestFile(schema)) }

    // MARK: Connection

    /// - Parameters:
    ///   - url: The gateway, `http://…`.
    ///   - offered: The subprotocols.
    package func connect(
        _ url: String, app: String, token: String, offered: [String] = ["com.mongodb.realm-query-sync#14"],
        agent: String = "RealmSync/14.14.0 (Linux test) RealmSwift/20.0.3"
    ) async throws {
        try await link.connect(url, app: app, token: token, offered: offered, agent: agent)
        try await send(file.connect())
    }

    package func disconnect() { link.disconnect() }

    /// Sends messages. A connection that has ended tells its reason to `receive`.
    private func send(_ messages: [RealmClientMessage]) async throws { try await link.send(messages) }

    /// Sends a message that the file did not ask for.
    package func send(_ message: RealmClientMessage) async throws { try await send([message]) }

    // MARK: The app

    /// Commits a transaction and sends it.
    package func write(_ instructions: [RealmInstruction]) async throws {
        try commit(instructions)
        try await send(file.later())
    }

    /// Commits a transaction. It is sent with the next message or connection.
    /// - Parameter delay: Milliseconds that the client's clock is ahead.
    package func commit(_ instructions: [RealmInstruction], ahead delay: Int64 = 0) throws {
        try file.commit(instructions, at: RealmTestLink.time(ahead: delay))
    }

    /// Replaces the subscriptions, and waits until the view is complete.
    package func subscribe(_ queries: [String: String]) async throws {
        try await sendSubscriptions(queries)
        try await receive { $0.isQueryComplete && $0.isMarkReached }
    }

    package func sendSubscriptions(_ queries: [String: String]) async throws {
        file.subscribe(queries)
        try await send(file.later())
    }

    /// Waits until the server has all of the file's commits, and the file all that was committed before.
    package func synchronize() async throws {
        try await receive { $0.isUploaded }
        try await send([file.mark()])
        try await receive { $0.isMarkReached }
    }

    // MARK: Receiving

    package struct Ended: Error, CustomStringConvertible {
        package let description: String
    }

    /// Handles messages until the condition holds.
    package func receive(until isEnough: (RealmTestFile) -> Bool) async throws {
        guard link.isOpen else { throw Ended(description: "There is no connection.") }
        let alarm = link.alarm()
        defer { alarm.cancel() }
        while !isEnough(file) {
            guard try await take() else {
                let error = file.error.map { "\($0.code) \($0.message) \($0.action)" } ?? "none"
                throw Ended(
                    description: "The connection ended before what was waited for: \(goodbye ?? "no reason"); error: \(error); "
                        + "query errors: \(file.queryErrors)")
            }
        }
    }

    /// Handles messages until the connection ends.
    /// - Returns: The reason, with the close code.
    package func untilEnd() async throws -> String {
        try await receive { _ in goodbye != nil }
        return goodbye ?? ""
    }

    /// - Returns: `false` if the connection had ended before.
    private func take() async throws -> Bool {
        guard link.isOpen, goodbye == nil else { return false }
        if let message = try await link.next() { try await send(try file.receive(message)) }
        return true
    }
}
