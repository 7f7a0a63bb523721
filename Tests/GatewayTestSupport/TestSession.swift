package import SluiceCore
import SluiceSync
package import SluiceWire
import SwiftProtobuf
import TestSupport
package import Testing

/// A client without a replica file: sends what it is told, and keeps what the gateway says of its view. One task uses it.
package final class TestSession {
    package typealias Rows = [String: [Value: [String: Value]]]

    private let connection: any SyncConnection
    private let token: String
    package private(set) var schema = Schema([])
    package private(set) var welcome: PBWelcome?
    /// The view as told, by type and key.
    package private(set) var rows: Rows = [:]
    package private(set) var completed: UInt64 = 0
    package private(set) var applied: LSN = .zero
    /// By what the gateway knows it again; empty after a bootstrap.
    private var witness: [UInt8] = []
    package private(set) var acknowledged: UInt64 = 0
    /// The last message of asymmetric objects that was acknowledged, and why objects of it were refused, by key.
    package private(set) var ingested: (number: UInt64, refused: [String: ErrorCode]) = (0, [:])
    package private(set) var queryErrors: [(version: UInt64, error: SluiceError, index: Int?)] = []
    package private(set) var compensations: [RejectedWriteReport] = []
    package private(set) var error: PBSessionError?
    package private(set) var mark: UInt64 = 0
    /// Set when the gateway closed; the reason when it gave one.
    package private(set) var hasEnded = false
    package private(set) var goodbye: SluiceError?
    /// What the present bootstrap said: rows, and keys that left meanwhile.
    private var staged: [String: [Value: [String: Value]?]] = [:]
    private var kept: [String: Set<Value>] = [:]
    /// Rows and keys that the last bootstrap brought.
    package private(set) var brought = (rows: 0, kept: 0)
    package private(set) var bootstraps = 0
    /// Positions that came before the session's first view was whole.
    package private(set) var earlyPositions = 0
    /// How many rows the last bootstrap said that it may bring.
    package private(set) var expected: UInt64 = 0
    package var held: PBHeld?
    /// What the gateway knows the file by that the session has; nil for a new one.
    package var identity: (client: UInt64, secret: [UInt8])?
    /// Why objects left, where that was said: the events of commits and of what bootstraps took away.
    package private(set) var left: [String: PBViewEvent] = [:]

    private init(_ connection: any SyncConnection, token: String) {
        self.connection = connection
        self.token = token
    }

    package static func connect(_ url: String, token: String, app: String = "shop") async throws -> TestSession {
        let address = "ws" + url.dropFirst("http".count) + WireProtocol.path(app: app)
        return TestSession(try await WebSocketTransport().connect(SyncRequest(url: address)), token: token)
    }

    package func close() { connection.close() }

    /// Has what another session showed when it ended, and tells the gateway so.
    /// What its file would have.
    package struct File: Sendable {
        package var rows: Rows
        package var held: PBHeld?
        package var applied: LSN
        package var witness: [UInt8] = []
        package var identity: (client: UInt64, secret: [UInt8])?

        package init(
            rows: Rows, held: PBHeld?, applied: LSN, witness: [UInt8] = [], identity: (client: UInt64, secret: [UInt8])? = nil
        ) {
            (self.rows, self.held, self.applied, self.witness, self.identity) = (rows, held, applied, witness, identity)
        }
    }

    package var file: File { File(rows: rows, held: held, applied: applied, witness: witness, identity: identity) }

    /// The same, and up to where: so that what came since can be told from the log.
    package func goOn(from file: File) {
        (rows, held, applied, witness, identity) = (file.rows, file.held, file.applied, file.witness, file.identity)
    }

    package func takeOver(_ earlier: TestSession) { (rows, held, identity) = (earlier.rows, earlier.held, earlier.identity) }

    /// The keys of a class's objects in the view.
    package func keys(_ type: String) -> Set<String> {
        Set((rows[type] ?? [:]).keys.compactMap { if case .string(let key) = $0 { key } else { nil } })
    }

    // MARK: Sending

    package func send(bytes: [UInt8]) async throws { try await connection.send(bytes) }

    package func send(_ kind: PBClientMessage.OneOf_Kind) async throws {
        try await connection.send(try WireProtocol.encode(PBClientMessage(kind)))
    }

    package func sendHello(_ types: [String] = ["Order", "Tag"], client: UInt64? = nil, secret: [UInt8]? = nil) async throws {
        try await send(
            .hello(
                .with {
                    $0.protocol = WireProtocol.version
                    $0.accessToken = token
                    $0.client = client ?? identity?.client ?? 0
                    $0.secret = .init(secret ?? identity?.secret ?? [])
                    if let held { $0.held = held }
                    $0.appliedLsn = applied.rawValue
                    $0.witness = .init(witness)
                    $0.schema = types.map { name in
                        .with {
                            $0.name = name
                            $0.kind = name == "Reading" ? .asymmetric : .topLevel
                        }
                    }
                }))
    }

    /// Says hello with classes of its own and waits for the welcome.
    package func hello(_ schema: Schema) async throws {
        try await sendHello(schema)
        try await receive { $0.welcome != nil }
    }

    package func sendHello(_ schema: Schema) async throws {
        try await send(
            .hello(
                .with {
                    $0.protocol = WireProtocol.version
                    $0.accessToken = token
                    $0.schema = schema.messages
                }))
    }

    /// Says hello and waits for the welcome.
    package func hello(_ types: [String] = ["Order", "Tag"]) async throws {
        try await sendHello(types)
        try await receive { $0.welcome != nil }
    }

    package func sendSubscribe(_ version: UInt64, _ queries: [(type: String, text: String)]) async throws {
        try await send(
            .subscribe(
                .with {
                    $0.version = version
                    $0.queries = queries.map { query in
                        .with {
                            $0.type = query.type
                            $0.text = query.text
                        }
                    }
                }))
    }

    /// Subscribes and waits until the view is complete.
    package func subscribe(_ version: UInt64, _ queries: [(type: String, text: String)]) async throws {
        try await sendSubscribe(version, queries)
        try await receive { $0.completed == version || $0.queryErrors.contains { $0.version == version } }
        if let failed = queryErrors.first(where: { $0.version == version }) { throw failed.error }
    }

    /// - Parameter base: what the device has seen when it writes; what it was sent, when nil.
    package func upload(
        _ number: UInt64, _ changes: [ObjectChange], time: HybridTime? = nil, base: LSN? = nil, noted: UInt64 = 0
    ) async throws {
        let time = time ?? HybridTime(milliseconds: SystemEnvironment().wallMilliseconds())
        let changeset = Changeset(number: number, time: time, base: base ?? applied, changes: changes)
        try await upload(try PBChangeset(changeset, schema: schema), noted: noted)
    }

    /// - Parameter noted: the last compensation that the device has.
    package func upload(_ changeset: PBChangeset, noted: UInt64 = 0) async throws {
        try await send(
            .upload(
                .with {
                    $0.changesets = [changeset]
                    $0.compensation = noted
                }))
    }

    /// Sends asymmetric objects, and waits until they are acknowledged.
    package func ingest(_ number: UInt64, _ objects: [ObjectChange]) async throws {
        try await sendIngest(number, objects)
        try await receive { $0.ingested.number == number }
    }

    package func sendIngest(_ number: UInt64, _ objects: [ObjectChange]) async throws {
        let messages = try objects.map { try PBObjectChange($0, schema: schema) }
        try await send(
            .ingest(
                .with {
                    $0.number = number
                    $0.objects = messages
                }))
    }

    /// Asks to be told when everything that is committed now has been said.
    package func sendMark(_ id: UInt64) async throws { try await send(.mark(.with { $0.id = id })) }

    package static func order(_ key: String, _ values: [String: Value], _ kind: ObjectChange.Kind = .create) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Order", key: .string(key)), kind: kind, values: values)
    }

    // MARK: Receiving

    /// Takes messages until the condition holds. Throws if the session ends before. A deadline only bounds a hang.
    package func receive(
        within seconds: Int = 180, sourceLocation: SourceLocation = #_sourceLocation, until isEnough: (TestSession) -> Bool
    ) async throws {
        let alarm = alarm(after: .seconds(seconds)) { [connection] in connection.close() }
        defer { alarm.cancel() }
        while !isEnough(self) {
            guard !hasEnded else {
                let said = error.map { "\($0.code) \($0.message)" } ?? goodbye?.message ?? "nothing"
                throw SessionEnded(said: said, place: sourceLocation)
            }
            try await take()
        }
    }

    package struct SessionEnded: Error, CustomStringConvertible {
        package var said: String
        package var place: SourceLocation
        package var description: String {
            "the session ended before what was waited for at \(place) came; the gateway's last word: \(said)"
        }
    }

    /// Waits for the error that ends the session, and for its end.
    package func failure() async throws -> SluiceError {
        try await receive { $0.error != nil }
        try await receive { $0.hasEnded }
        return try #require(error).error
    }

    private func take() async throws {
        let inbound: SyncInbound?
        do throws(SluiceError) {
            inbound = try await connection.next()
        } catch {
            goodbye = error
            hasEnded = true
            return
        }
        guard let inbound else {
            hasEnded = true
            return
        }
        if case .message(let bytes) = inbound { try apply(try WireProtocol.decode(PBServerMessage.self, from: bytes)) }
    }

    private func apply(_ message: PBServerMessage) throws {
        switch message.kind {
        case .welcome(let welcome):
            self.welcome = welcome
            identity = (welcome.client, Array(welcome.secret))
            schema = try Schema(messages: welcome.schema)
        case .bootstrapBegin(let begin):
            (staged, kept, brought) = ([:], [:], (0, 0))
            expected = begin.rows
        case .bootstrapRows(let piece): try stage(piece)
        case .bootstrapEnd(let end): finish(end)
        case .commits(let commits): try apply(commits)
        case .uploadAck(let ack): acknowledged = ack.number
        case .compensation(let compensation):
            compensations += try compensation.writes.map { try RejectedWriteReport($0) }
        case .queryError(let error): queryErrors.append((error.version, error.error, error.index))
        case .error(let error): self.error = error
        case .markReached(let mark): self.mark = mark.id
        case .ingestAck(let ack):
            let refused = try ack.writes.map { ("\(try Value($0.primaryKey))", ErrorCode(rawValue: UInt16($0.code)) ?? .internalError) }
            ingested = (ack.number, Dictionary(refused) { $1 })
        case nil: break
        }
    }

    private func stage(_ piece: PBBootstrapRows) throws {
        let type = try schema.type(named: piece.type)
        for row in piece.rows {
            let (key, values) = try read(row, type)
            staged[type.name, default: [:]][key] = .some(values)
        }
        for key in piece.kept { kept[type.name, default: []].insert(try Value(key)) }
        for key in piece.removed { staged[type.name, default: [:]][try Value(key)] = .some(nil) }
        for (key, reason) in zip(piece.removed, piece.reasons) { left["\(try Value(key))"] = reason }
        brought = (brought.rows + piece.rows.count, brought.kept + piece.kept.count)
    }

    private func finish(_ end: PBBootstrapEnd) {
        for type in end.types {
            let kept = kept[type] ?? []
            rows[type] = rows[type]?.filter { kept.contains($0.key) }
        }
        held = end.hasHeld ? end.held : nil
        for (type, entries) in staged {
            for (key, values) in entries { rows[type, default: [:]][key] = values }
        }
        staged = [:]
        completed = end.version
        bootstraps += 1
        (applied, witness) = (LSN(rawValue: end.lsn), [])
    }

    private func apply(_ commits: PBCommits) throws {
        if bootstraps == 0 { earlyPositions += 1 }
        for change in commits.commits.flatMap(\.changes) {
            let type = try schema.type(named: change.type)
            if change.hasRow {
                let (key, values) = try read(change.row, type)
                rows[type.name, default: [:]][key] = values
            } else {
                rows[type.name]?[try Value(change.primaryKey)] = nil
                left["\(try Value(change.primaryKey))"] = change.event
            }
        }
        (applied, witness) = (LSN(rawValue: commits.lsn), Array(commits.witness))
    }

    private func read(_ message: PBRow, _ type: ObjectType) throws -> (Value, [String: Value]) {
        let row = try Row(message, type: type)
        var values: [String: Value] = [:]
        for (index, property) in type.properties.enumerated() { values[property.name] = row[index] }
        return (try #require(values["_id"]), values)
    }
}
