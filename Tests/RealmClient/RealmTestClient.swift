package import RealmTestSupport
import SluiceCompression
package import SluiceCore
import SluicePorts
package import SluiceRealm
import SluiceSync

/// A client of Realm's protocol in the test's process: a `RealmTestFile` and its connection. One task uses it.
package final class RealmTestClient {
    /// The deadline of a wait, which only bounds a hang.
    private static let patience: Duration = .seconds(120)
    /// Milliseconds from 1970 to 2015.
    private static let epoch: Int64 = 1_420_070_400_000

    package var file: RealmTestFile
    private let codec = RealmCodec(compression: ZlibBodies())
    private var connection: (any SyncConnection)?
    /// The reason for the connection's end, such as a close code.
    package private(set) var goodbye: String?

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
        let address = "ws\(url.dropFirst("http".count))/api/client/v2.0/app/\(app)/realm-sync?baas_at=\(token)"
        let headers = ["Sec-WebSocket-Protocol": offered.joined(separator: ", "), "User-Agent": agent]
        connection = try await WebSocketTransport().connect(SyncRequest(url: address, headers: headers))
        goodbye = nil
        try await send(file.connect())
    }

    package func disconnect() {
        connection?.close()
        connection = nil
    }

    /// Sends messages. A connection that has ended tells its reason to `receive`.
    private func send(_ messages: [RealmClientMessage]) async throws {
        for message in messages {
            let bytes = try codec.encode(message)
            try? await connection?.send(bytes)
        }
    }

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
        try file.commit(instructions, at: UInt64(max(SystemEnvironment().wallMilliseconds() + delay - Self.epoch, 1)))
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
        guard let open = connection else { throw Ended(description: "There is no connection.") }
        // Unstructured because: it only closes the connection, which ends the wait below.
        let alarm = Task { [open, patience = Self.patience] in
            try await Task.sleep(for: patience)
            open.close()
        }
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

    /// - Returns: `false` if the connection has ended.
    private func take() async throws -> Bool {
        guard let connection, goodbye == nil else { return false }
        let inbound: SyncInbound?
        do throws(SluiceError) {
            inbound = try await connection.next()
        } catch {
            goodbye = error.message
            return true
        }
        guard let inbound else {
            goodbye = "closed"
            return true
        }
        if case .message(let bytes) = inbound { try await send(try file.receive(try codec.decodeServer(bytes))) }
        return true
    }
}

/// Bodies in zlib's format.
private struct ZlibBodies: BodyCompression {
    func compress(_ bytes: [UInt8]) throws(SluiceError) -> [UInt8] { try Zlib().compress(bytes) }
    func decompress(_ bytes: [UInt8], count: Int) throws(SluiceError) -> [UInt8] { try Zlib().decompress(bytes, count: count) }
}
