import DequeModule
import RealmTestSupport
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceWire
import SwiftProtobuf
import TestSupport

@testable import SluiceRealmBridge

/// A client file with the pending transform of SDKs, and its connections to a stage.
///
/// Messages of the server wait in an inbox. So the app can write between any two of them.
final class StageFile {
    private(set) var file = RealmTestFile(Schema([StageDatabase.item]))
    private let stage: BridgeStage
    private var client: StageClient?
    private var running: Task<Void, Never>?
    private var inbox: Deque<RealmServerMessage> = []

    init(_ stage: BridgeStage) { self.stage = stage }

    var isConnected: Bool { client != nil }
    var waiting: Int { inbox.count }

    /// The list of an item.
    func tags(_ key: String) -> [Value] {
        if case .list(let tags)? = file.objects[.item(key)]?["tags"] { tags } else { [] }
    }

    // MARK: Connections

    func connect() throws {
        let client = StageClient(stage)
        // Unstructured because: it ends with the connection, and `disconnect` waits for it.
        running = Task { await client.connection.run() }
        self.client = client
        try send(file.connect())
    }

    /// Loses the connection with all messages that the file has not handled.
    func disconnect() async {
        client?.connection.end(.disconnected)
        await running?.value
        (client, running, inbox) = (nil, nil, [])
    }

    /// Connects a new file, and takes a view of items.
    func begin(_ query: String = "TRUEPREDICATE") async throws {
        try connect()
        try await synchronize()
        file.subscribe(["Item": query])
        try send(file.later())
        try await synchronize()
    }

    private func send(_ messages: [RealmClientMessage]) throws { for message in messages { try client?.send(message) } }

    // MARK: The app

    /// Commits a transaction, which is sent later.
    func commit(_ instructions: [RealmInstruction], at time: UInt64) throws { try file.commit(instructions, at: time) }

    /// Sends what was committed.
    func upload() throws { try send(file.later()) }

    // MARK: The server

    /// Receives all that was committed before the call, without handling it.
    func fetch() async throws {
        guard let client else { return }
        if file.file == nil, inbox.isEmpty {
            for message in await client.messages(through: .file) { inbox.append(message) }
            try await handle()
        }
        guard case .mark(_, let request) = file.mark() else { return }
        try client.send(.mark(session: file.session, request: request))
        for message in await client.messages(through: .mark(request)) { inbox.append(message) }
    }

    /// Waits until the connection has handled all that was sent. What comes meanwhile is received, and not handled.
    func settle() async throws {
        guard let client else { return }
        try client.send(.ping(timestamp: 1, roundTrip: 0))
        for message in await client.messages(through: .pong) { inbox.append(message) }
    }

    /// Receives messages until one acknowledges a commit, without handling them. Its outcome is behind the entries that came before.
    func fetch(acknowledging version: UInt64) async throws {
        func isAcknowledged(_ message: RealmServerMessage) -> Bool {
            if case .download(let download) = message { download.progress.upload.clientVersion >= version } else { false }
        }
        repeat { try await fetch() } while !inbox.contains(where: isAcknowledged) && file.error == nil && !Task.isCancelled
    }

    /// Handles messages of the inbox, and sends the answers.
    /// - Parameter most: The number of messages; nil for all.
    func handle(_ most: Int? = nil) async throws {
        for _ in 0..<min(most ?? .max, inbox.count) { if let message = inbox.popFirst() { try send(try file.receive(message)) } }
    }

    /// Sends everything, and receives everything until nothing is on its way.
    func synchronize() async throws {
        repeat {
            try await handle()
            try upload()
            try await fetch()
            try await handle()
        } while !file.isUploaded && file.error == nil && !Task.isCancelled
    }
}

/// A session of the gateway's own protocol, whose edits name elements by the list at its base.
final class StageWriter {
    /// A list that the writer has seen.
    struct Seen {
        var base: UInt64
        var tags: [Value]
    }

    private let stage: BridgeStage
    private let session: Session
    private let channel: BridgeChannel
    private var number: UInt64 = 0
    private var tag: UInt64 = 0

    init(_ stage: BridgeStage) async throws {
        self.stage = stage
        channel = BridgeChannel(environment: SystemEnvironment(), pace: LocalPace(environment: SystemEnvironment())) {}
        let users = BridgeAuthenticator(user: "bob", users: stage.services.authenticator)
        session = Session(services: stage.services.local(users), channel: channel)
        let hello = PBHello.with { hello in
            (hello.protocol, hello.accessToken, hello.sdk) = (WireProtocol.version, "bob", "test")
            hello.schema = [PBObjectSchema(StageDatabase.item)]
        }
        try await send(.hello(hello))
        let queries = [PBQuery.with { ($0.type, $0.text) = ("Item", "TRUEPREDICATE") }]
        try await send(.subscribe(PBSubscribe.with { ($0.version, $0.queries) = (1, queries) }))
        await channel.answered.wait(until: 1, milliseconds: 60_000)
    }

    private func send(_ kind: PBClientMessage.OneOf_Kind) async throws {
        while channel.take() != nil {}
        await session.handle(try WireProtocol.encode(PBClientMessage(kind)))
        if let error = channel.error { throw error }
    }

    func close() async { await session.closed() }

    /// Returns the current list of an item; nil without the item.
    func look(_ key: String) async -> Seen? {
        let (row, base) = await stage.database.content(key)
        guard let row, case .list(let tags)? = row[3] else { return nil }
        return Seen(base: base, tags: tags)
    }

    func insert(_ value: Value, at index: Int, in seen: Seen) -> Edit {
        tag += 1
        return Edit("tags", .insert(value, after: index == 0 ? nil : Self.name(index - 1, seen), tag: tag))
    }

    func remove(_ index: Int, in seen: Seen) -> Edit { Edit("tags", [.element(Self.name(index, seen))], .remove) }

    func set(_ value: Value, at index: Int, in seen: Seen) -> Edit { Edit("tags", [.element(Self.name(index, seen))], .set(value)) }

    func move(_ index: Int, behind other: Int?, in seen: Seen) -> Edit {
        tag += 1
        return Edit("tags", [.element(Self.name(index, seen))], .move(after: other.map { Self.name($0, seen) }, tag: tag))
    }

    private static func name(_ index: Int, _ seen: Seen) -> ElementRef { .listed(index, ValueHash(seen.tags[index])) }

    /// Commits a changeset. It is merged when the function returns.
    /// - Parameter milliseconds: The time of the writer's clock, since 1970.
    func commit(_ key: String, _ edits: [Edit], in seen: Seen, at milliseconds: Int64) async throws {
        try await commit(ObjectChange(object: .item(key), kind: .set, edits: edits), in: seen, at: milliseconds)
    }

    /// Commits a changeset of one change.
    func commit(_ change: ObjectChange, in seen: Seen, at milliseconds: Int64) async throws {
        number += 1
        let changeset = Changeset(
            number: number, time: HybridTime(milliseconds: milliseconds), base: LSN(rawValue: seen.base), changes: [change])
        let message = try PBChangeset(changeset, schema: Schema([StageDatabase.item]))
        try await send(.upload(PBUpload.with { $0.changesets = [message] }))
    }
}
