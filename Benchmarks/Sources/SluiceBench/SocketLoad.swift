import Foundation
import RealmSwift
import SluiceWire
import SwiftProtobuf

/// The C load generator with sessions of the real protocol.
@MainActor
final class SocketLoad {
    private let child: Child
    let connections: Int
    /// What has come so far, over all connections.
    private(set) var changes = 0
    private(set) var messages = 0
    private(set) var bytes = 0

    /// Opens the sessions; returns when every one has had its bootstrap.
    init(_ setup: Setup, port: Int, path: String, hello: [UInt8], connections: Int) async throws {
        self.connections = connections
        let file = "\(setup.workspace)/hello-\(port)-\(connections)"
        try Data(hello).write(to: URL(fileURLWithPath: file))
        child = try Child(
            setup.program("limit-wsload"), ["\(port)", path, "\(connections)", file], log: setup.log("limit-wsload"))
        let line = try await child.line()
        guard line == "ready" else { throw BenchFailure("The load generator said “\(line)” in place of “ready”.") }
    }

    /// Waits until every connection has had so many changes in all.
    func reach(_ perConnection: Int) async throws {
        while changes < perConnection * connections {
            let fields = try await child.line().split(separator: " ").dropFirst().compactMap { Int($0) }
            guard fields.count == 3 else { throw BenchFailure("The load generator's line cannot be read.") }
            (changes, messages, bytes) = (fields[0], fields[1], fields[2])
        }
    }

    func stop() { child.stop() }

    /// The client's first two messages as WebSocket frames: a new client file, and one subscription.
    static func hello(_ gateway: RunningGateway, folder: String, query: String) async throws -> [UInt8] {
        let app = App(
            id: gateway.appID, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: URL(fileURLWithPath: folder)))
        let user = try await app.login(credentials: .anonymous)
        let hello = PBClientMessage.with {
            $0.hello = .with {
                $0.protocol = WireProtocol.version
                $0.accessToken = user.accessToken ?? ""
                $0.sdk = "sluice-bench"
                $0.schema = [.with { $0.name = "Item" }]
            }
        }
        let subscribe = PBClientMessage.with {
            $0.subscribe = .with {
                $0.version = 1
                $0.queries = [
                    .with {
                        $0.type = "Item"
                        $0.text = query
                    }
                ]
            }
        }
        return try [hello, subscribe].flatMap { frame(try WireProtocol.encode($0), isClient: true) }
    }

    /// A binary frame; a client's is masked, with a mask of zeros.
    static func frame(_ payload: [UInt8], isClient: Bool) -> [UInt8] {
        let mask: UInt8 = isClient ? 0x80 : 0
        let head: [UInt8] =
            payload.count < 126
            ? [0x82, mask | UInt8(payload.count)] : [0x82, mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        return head + (isClient ? [0, 0, 0, 0] : []) + payload
    }
}
