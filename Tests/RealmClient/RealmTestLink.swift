import SluiceCompression
import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceSync
import TestSupport

/// The WebSocket of a test's client, and the encoding of its messages. One task uses it.
final class RealmTestLink {
    /// The deadline of a wait, which only bounds a hang.
    private static let patience: Duration = .seconds(120)
    /// Milliseconds from 1970 to 2015.
    private static let epoch: Int64 = 1_420_070_400_000

    /// Returns the time of a changeset.
    /// - Parameter delay: Milliseconds that the client's clock is ahead.
    static func time(ahead delay: Int64) -> UInt64 { UInt64(max(SystemEnvironment().wallMilliseconds() + delay - epoch, 1)) }

    private let codec = RealmCodec(compression: ZlibBodies())
    private var connection: (any SyncConnection)?
    /// The reason for the connection's end, such as a close code.
    private(set) var goodbye: String?

    var isOpen: Bool { connection != nil }

    /// - Parameters:
    ///   - url: The gateway, `http://…`.
    ///   - offered: The subprotocols.
    func connect(
        _ url: String, app: String, token: String, offered: [String] = ["com.mongodb.realm-query-sync#14"],
        agent: String = "RealmSync/14.14.0 (Linux test) RealmSwift/20.0.3"
    ) async throws {
        let address = "ws\(url.dropFirst("http".count))/api/client/v2.0/app/\(app)/realm-sync?baas_at=\(token)"
        let headers = ["Sec-WebSocket-Protocol": offered.joined(separator: ", "), "User-Agent": agent]
        connection = try await WebSocketTransport().connect(SyncRequest(url: address, headers: headers))
        goodbye = nil
    }

    func disconnect() {
        connection?.close()
        connection = nil
    }

    /// Sends messages. A connection that has ended tells its reason to `next`.
    func send(_ messages: [RealmClientMessage]) async throws {
        for message in messages {
            let bytes = try codec.encode(message)
            try? await connection?.send(bytes)
        }
    }

    /// Returns a task that closes the connection after the deadline, unless it is cancelled.
    func alarm() -> Task<Void, Never> { TestSupport.alarm(after: Self.patience) { [connection] in connection?.close() } }

    /// Returns the next message; nil if the connection has ended, with `goodbye`.
    func next() async throws -> RealmServerMessage? {
        while let connection, goodbye == nil {
            let inbound: SyncInbound?
            do throws(SluiceError) {
                inbound = try await connection.next()
            } catch {
                goodbye = error.message
                return nil
            }
            guard let inbound else {
                goodbye = "closed"
                return nil
            }
            if case .message(let bytes) = inbound { return try codec.decodeServer(bytes) }
        }
        return nil
    }
}

/// Bodies in zlib's format.
private struct ZlibBodies: BodyCompression {
    func compress(_ bytes: [UInt8]) throws(SluiceError) -> [UInt8] { try Zlib().compress(bytes) }
    func decompress(_ bytes: [UInt8], count: Int) throws(SluiceError) -> [UInt8] { try Zlib().decompress(bytes, count: count) }
}
