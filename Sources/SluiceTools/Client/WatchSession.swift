import SluiceCore
package import SluiceSync
import SluiceValues
import SluiceWire
import SwiftProtobuf

/// A session without a replica that subscribes to one query and prints its rows and changes.
package struct WatchSession {
    private let type: String
    private let query: String
    private let transport: any SyncTransport

    package init(type: String, query: String, transport: any SyncTransport = WebSocketTransport()) {
        self.type = type
        self.query = query
        self.transport = transport
    }

    /// Runs until the gateway closes the connection or rejects the query.
    ///
    /// - Throws: The gateway's error; `connectionFailed` if it closes the connection.
    package func run(url: String, app: String, token: String) async throws {
        let address = "ws" + url.dropFirst("http".count) + WireProtocol.path(app: app)
        let connection = try await transport.connect(SyncRequest(url: address))
        defer { connection.close() }
        let unsent = await send([hello(token), subscription], over: connection)
        var schema = Schema([])
        while let inbound = try await connection.next() {
            guard case .message(let bytes) = inbound else { continue }
            guard let kind = try WireProtocol.decode(PBServerMessage.self, from: bytes).kind else { continue }
            switch kind {
            case .welcome(let welcome): schema = try Schema(messages: welcome.schema)
            case .bootstrapRows(let rows): try show(rows, schema)
            case .commits(let commits): try show(commits, schema)
            case .queryError(let error): throw error.error
            case .error(let error): throw error.error
            default: break
            }
        }
        throw unsent ?? SluiceError(.connectionFailed, "The gateway closed the connection.")
    }

    /// - Returns: Why a message could not be sent. The gateway may have refused an earlier one and closed: its reason is to be read first.
    private func send(_ messages: [PBClientMessage], over connection: any SyncConnection) async -> SluiceError? {
        do throws(SluiceError) {
            for message in messages { try await connection.send(try WireProtocol.encode(message)) }
            return nil
        } catch {
            connection.close()
            return error
        }
    }

    private func hello(_ token: String) -> PBClientMessage {
        PBClientMessage(
            .hello(
                .with {
                    $0.protocol = WireProtocol.version
                    $0.accessToken = token
                    $0.sdk = "sluice watch"
                    // A class without properties requests all properties of the class.
                    $0.schema = [.with { $0.name = type }]
                }))
    }

    private var subscription: PBClientMessage {
        PBClientMessage(
            .subscribe(
                .with {
                    $0.version = 1
                    $0.queries = [
                        .with {
                            $0.type = type
                            $0.text = query
                        }
                    ]
                }))
    }

    private func show(_ message: PBBootstrapRows, _ schema: Schema) throws {
        let type = try schema.type(named: message.type)
        for row in message.rows { try show("snapshot", type, row: row, key: nil) }
        for key in message.removed { try show("left", type, row: nil, key: key) }
    }

    private func show(_ message: PBCommits, _ schema: Schema) throws {
        for change in message.commits.flatMap(\.changes) {
            let type = try schema.type(named: change.type)
            let event =
                switch change.event {
                case .entered: "entered"
                case .updated: "updated"
                case .deleted: "deleted"
                default: "left"
                }
            try show(event, type, row: change.hasRow ? change.row : nil, key: change.hasRow ? nil : change.primaryKey)
        }
    }

    private func show(_ event: String, _ type: ObjectType, row: PBRow?, key: PBValue?) throws {
        var line: [JSON.Member] = [.init("event", .string(event)), .init("type", .string(type.name))]
        if let key { line.append(.init("key", ExtendedJSON.json(try Value(key)))) }
        if let row {
            let values = try Row(row, type: type)
            let members = type.properties.enumerated().compactMap { index, property in
                values[index].map { JSON.Member(property.name, ExtendedJSON.json($0)) }
            }
            line.append(.init("object", .object(members)))
        }
        StandardOutput.line(.object(line))
    }
}
