import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceWire

@testable import SluicePipeline

/// A session of a client that has said hello, and what it was told.
struct SessionClient<Store: WriteStore> {
    let session: Session
    let services: SessionServices
    let channel: KeptMessages
    let store: Store

    /// - Parameter seen: puts into the hello what the file has seen of the database, which has it.
    init(
        _ store: Store, uploaded: UInt64 = 0, clients: (any ClientRegistry)? = nil, ingest: any IngestIntake = NoIngest(),
        rules: any Rules = OpenRules(), snapshots: any SnapshotStore = EmptyTables(),
        log: EmbeddedLog = EmbeddedLog(environment: SystemEnvironment()), channel: KeptMessages = KeptMessages(),
        seen: ((inout PBHello) -> Void)? = nil
    ) async throws {
        self.store = store
        self.channel = channel
        services = SessionFixture.services(
            store: store, clients: clients ?? OneFile(changeset: uploaded, isProven: seen != nil), rules: rules, snapshots: snapshots,
            log: log, ingest: ingest)
        session = Session(services: services, channel: channel)
        var (hello, order) = (PBHello(), PBObjectSchema())
        order.name = "Order"
        seen?(&hello)
        (hello.protocol, hello.accessToken, hello.client, hello.schema) = (WireProtocol.version, "ann", 7, [order])
        try await send(.hello(hello))
    }

    func send(_ kind: PBClientMessage.OneOf_Kind) async throws {
        await session.handle(try WireProtocol.encode(PBClientMessage(kind)))
    }

    func upload(_ number: UInt64) async throws {
        let change = ObjectChange(object: ObjectKey(type: "Order", key: .string("k")), kind: .create, values: ["size": .int(1)])
        let changeset = Changeset(number: number, time: HybridTime(milliseconds: 1), base: .zero, changes: [change])
        var upload = PBUpload()
        upload.changesets = [try PBChangeset(changeset, schema: OrderAuthority().current().schema)]
        try await send(.upload(upload))
    }

    /// A batch of one asymmetric object, which this server's class is not: that is the intake's to say.
    func ingest(_ number: UInt64) async throws {
        let change = ObjectChange(object: ObjectKey(type: "Order", key: .string("k")), kind: .create, values: ["size": .int(1)])
        var batch = PBIngest()
        (batch.number, batch.objects) = (number, [try PBObjectChange(change, schema: OrderAuthority().current().schema)])
        try await send(.ingest(batch))
    }

    /// - Parameter limit: the first so many orders; 0: all.
    func subscribe(_ version: UInt64, limit: UInt32 = 0) async throws {
        var (set, query) = (PBSubscribe(), PBQuery())
        (query.type, query.text, query.limit) = ("Order", "TRUEPREDICATE", limit)
        (set.version, set.queries) = (version, [query])
        try await send(.subscribe(set))
    }

    func mark(_ id: UInt64) async throws {
        var mark = PBMark()
        mark.id = id
        try await send(.mark(mark))
    }

    /// What the client has been told since the welcome.
    var told: [String] {
        channel.messages.dropFirst().map { message in
            switch message.kind {
            case .uploadAck(let ack):
                "ack \(ack.number) at \(ack.lsn)" + ack.futile.map { ", \($0.changeset) in vain to \($0.type)" }.joined()
            case .compensation(let compensation): "compensation \(compensation.id)"
            case .markReached(let mark): "mark \(mark.id)"
            case .bootstrapBegin(let begin): "begin \(begin.version)"
            case .bootstrapEnd(let end): "end \(end.version)"
            case .ingestAck(let ack): "ingest \(ack.number) refused \(ack.writes.count)"
            case .error(let error): "error \(error.code)"
            default: "\(message)"
            }
        }
    }

    func until(_ isEnough: ([String]) -> Bool) async {
        while !isEnough(told), !Task.isCancelled { await Task.yield() }
    }
}
