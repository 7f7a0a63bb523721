import Foundation
import RealmSwift
import SluiceGateway
import SluicePorts
import SluicePostgres
import SluiceWire
import SwiftProtobuf

/// The C load generator with sessions of the real protocol, or of Realm's.
@MainActor
final class SocketLoad {
    private let child: Child
    let connections: Int
    /// The received changes, messages and bytes, over all connections.
    private(set) var changes = 0
    private(set) var messages = 0
    private(set) var bytes = 0
    /// The bytes received until each connection had its bootstrap, over all connections.
    private(set) var bootstrapBytes = 0
    /// The file of the times of changes.
    private let times: String

    /// Opens the sessions, and returns when each has received its bootstrap.
    /// - Parameters:
    ///   - path: The endpoint. With that of Realm's protocol, the sessions speak it.
    ///   - hellos: The first bytes of each connection, or its queries as JSON in Realm's protocol. Repeated if there are fewer.
    ///   - uploads: Records for `upload`: the first of each connection, then the second of each, and so on. A record is a frame. In Realm's
    ///     protocol it is the changesets of a message, as `RealmSide.uploads` returns them.
    ///   - batch: The changesets in each record.
    ///   - isTimed: `true` to note the time of each change for `latencies`.
    init(
        _ setup: Setup, port: Int, path: String, hellos: [[UInt8]], uploads: [[UInt8]] = [], batch: Int = 1, connections: Int,
        isTimed: Bool = false
    ) async throws {
        self.connections = connections
        let file = "\(setup.workspace)/hello-\(UUID().uuidString)"
        try Self.write(hellos, to: file)
        var arguments = ["\(port)", path, "\(connections)", file]
        if !uploads.isEmpty {
            try Self.write(uploads, to: file + "-uploads")
            arguments += [file + "-uploads", "\(batch)"]
        }
        times = file + "-times"
        child = try Child(
            setup.program("limit-wsload"), arguments, log: setup.log("limit-wsload"), environment: isTimed ? ["WSLOAD_TIMES": times] : [:])
        let line = try await child.line()
        let fields = line.split(separator: " ")
        guard fields.first == "ready", let bytes = fields.last.flatMap({ Int($0) }) else {
            throw BenchFailure("The load generator said “\(line)” in place of “ready”.")
        }
        bootstrapBytes = bytes
    }

    private static func write(_ records: [[UInt8]], to file: String) throws {
        var data = Data()
        for record in records {
            withUnsafeBytes(of: UInt32(record.count).littleEndian) { data.append(contentsOf: $0) }
            data.append(contentsOf: record)
        }
        try data.write(to: URL(fileURLWithPath: file))
    }

    /// Waits until every connection has received this many changes in total.
    func reach(_ perConnection: Int) async throws {
        while changes < perConnection * connections {
            let fields = try await child.line().split(separator: " ").dropFirst().compactMap { Int($0) }
            guard fields.count == 3 else { throw BenchFailure("The load generator's line cannot be read.") }
            (changes, messages, bytes) = (fields[0], fields[1], fields[2])
        }
    }

    /// Returns the latencies of the changes from a number on, in milliseconds. Every connection must have received each before the next.
    ///
    /// - Parameter commits: The times of the commits of these changes, by `monotonic`. An earlier arrival has the latency 0.
    func latencies(from first: Int, _ commits: [Double]) throws -> [Double] {
        let data = try Data(contentsOf: URL(fileURLWithPath: times))
        let count = commits.count * connections
        let begin = first * connections * MemoryLayout<Double>.size
        guard data.count >= begin + count * MemoryLayout<Double>.size else { throw BenchFailure("The times of changes are missing.") }
        return data.withUnsafeBytes { bytes in
            (0..<count).map { index in
                let time = bytes.loadUnaligned(fromByteOffset: begin + index * MemoryLayout<Double>.size, as: Double.self)
                return max((time - commits[index / connections]) * 1_000, 0)
            }
        }
    }

    /// Sends the next `count` uploads of every connection, with at most `window` of them unacknowledged.
    /// - Returns: The total duration, and the median and p99 of one upload until its acknowledgement, in seconds.
    func upload(_ count: Int, window: Int) async throws -> (elapsed: Double, p50: Double, p99: Double) {
        child.write("\(count) \(window)\n")
        let fields = try await child.line().split(separator: " ").dropFirst().compactMap { Double($0) }
        guard fields.count == 3 else { throw BenchFailure("The load generator's line cannot be read.") }
        return (fields[0], fields[1], fields[2])
    }

    func stop() { child.stop() }

    /// - Returns: A new user's access token.
    static func login(_ gateway: RunningGateway, folder: String) async throws -> String {
        let app = App(
            id: gateway.appID, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: URL(fileURLWithPath: folder)))
        return try await app.login(credentials: .anonymous).accessToken ?? ""
    }

    /// - Returns: The access tokens of new users. SQL creates the users, because logins are limited for each address.
    static func users(_ count: Int, of gateway: RunningGateway, _ conninfo: String) async throws -> [String] {
        let pool = PostgresPool(conninfo, size: 1)
        let tokens = try await AccessTokens(
            appID: gateway.appID, key: try await SigningKeyStore(pool: pool).signingKey("access", proposed: []))
        var made: [String] = []
        for number in 0..<count {
            let account = UserAccount(id: "65a0" + String(format: "%020x", number), provider: "anon-user")
            try await UserStore(pool: pool).create(account)
            let login = tokens.login(of: account.id, lifetime: AccessTokens.lifetime)
            _ = try await LoginStore(pool: pool).add(login, .none)
            made.append(tokens.access(for: account, login: login.id))
        }
        await pool.close()
        return made
    }

    /// Returns the client's first two messages as WebSocket frames: a new client replica's Hello, and its subscriptions.
    static func hello(_ token: String, queries: [String]) throws -> [UInt8] {
        let hello = PBClientMessage.with {
            $0.hello = .with {
                $0.protocol = WireProtocol.version
                $0.accessToken = token
                $0.sdk = "sluice-bench"
                $0.schema = [.with { $0.name = "Item" }]
            }
        }
        let subscribe = PBClientMessage.with {
            $0.subscribe = .with {
                $0.version = 1
                $0.queries = queries.map { query in
                    .with {
                        $0.type = "Item"
                        $0.text = query
                    }
                }
            }
        }
        return try [hello, subscribe].flatMap { frame(try WireProtocol.encode($0), isClient: true) }
    }

    /// Returns a binary frame. A client's is masked, with a mask of zeros.
    static func frame(_ payload: [UInt8], isClient: Bool) -> [UInt8] {
        let mask: UInt8 = isClient ? 0x80 : 0
        let head: [UInt8]
        switch payload.count {
        case ..<126: head = [0x82, mask | UInt8(payload.count)]
        case ..<65_536: head = [0x82, mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        default: head = [0x82, mask | 127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
        }
        return head + (isClient ? [0, 0, 0, 0] : []) + payload
    }
}
