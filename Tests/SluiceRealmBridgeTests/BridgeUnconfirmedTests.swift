import PortsTestSupport
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

@testable import SluiceRealmBridge

@Suite struct `What a client may have missed` {
    /// A model that keeps, for each version, what the client would hold if it had all entries up to it.
    @Test(arguments: seeds(200)) func `is taken back, and nothing else`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let objects = (0..<4).map { ObjectKey(type: "Item", key: .int(Int64($0))) }
        let received = UInt64(random.below(20))
        var unconfirmed = BridgeUnconfirmed()
        var (view, schema): (Set<ObjectKey>, UInt64) = (Set(objects.filter { _ in random.chance(50) }), 1)
        var (held, known) = (view, schema)
        for version in UInt64(1)...20 {
            let object = random.pick(objects)
            let isReceived = version <= received
            switch random.below(5) {
            case 0:
                unconfirmed.declare(before: schema, at: version)
                schema = version + 1
                if isReceived { known = schema }
            case 1:
                let isHeld = random.chance(50)
                Self.set(object, isHeld, &view)
                Self.set(object, isHeld, &held)
                unconfirmed.make(object, isHeld: isHeld)
            default:
                let wasHeld = view.contains(object)
                let isHeld = random.chance(50)
                unconfirmed.send(object, wasHeld: wasHeld, at: version)
                Self.set(object, isHeld, &view)
                if isReceived { Self.set(object, isHeld, &held) }
            }
        }
        unconfirmed.revert(after: received, &view, &schema)
        #expect(view == held && schema == known, "seed \(seed)")
    }

    private static func set(_ object: ObjectKey, _ isHeld: Bool, _ view: inout Set<ObjectKey>) {
        if isHeld { view.insert(object) } else { view.remove(object) }
    }

    /// The stream of a client that has the view of `a` at position 100.
    private static func stream() throws -> BridgeStream {
        let stored = StoredRealmClient(record: RealmClientRecord(file: SessionMessages.file))
        var stream = try BridgeStream(
            stored, BridgeReplica(client: 1, secret: []), BridgeSchema(SessionMessages.schema), SystemEnvironment())
        let version = subscribe(1, isFull: true, on: &stream)
        _ =
            try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.rows(["a"]))
            + stream.handle(SessionMessages.end(version, 100))
        let isTaken = stream.settleView(superseded: [:])
        #expect(isTaken)
        return stream
    }

    private static func subscribe(
        _ number: UInt64, isFull: Bool = false, received: UInt64 = 0, on stream: inout BridgeStream
    ) -> UInt64 {
        stream.wanted = number
        let query = RealmQuerySet(version: number, queries: ["Item": "size > \(number)"])
        let view = RealmViewRequest(query: query, isFull: isFull, hasSchema: isFull, number: number, received: received)
        let request = BridgeStream.Request(number: number, view: view)
        return stream.subscribe(BridgeStream.Subscription(query: query, request: request, forgets: true))
    }

    /// The request of the next view can come before the connection asks for the event behind an entry that it has sent.
    @Test(arguments: [100, 150] as [UInt64]) func `is told by the request of the next view`(received: UInt64) throws {
        var stream = try Self.stream()
        let events = try stream.handle(SessionMessages.commit(150, entered: ["b"]))
        #expect(events.contains { if case .changes = $0 { true } else { false } })
        let version = Self.subscribe(2, received: received, on: &stream)
        _ = stream.settleView(superseded: [:])
        let view =
            try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.rows(["c"]))
            + stream.handle(SessionMessages.end(version, 200))
        let erased = try SessionMessages.texts(view).filter { $0.hasPrefix("erase") }
        #expect(erased == (received < 150 ? ["erase a", "erase c"] : ["erase a", "erase b", "erase c"]))
        #expect(stream.held == [.item("c")])
    }

    /// The client has its own objects, whatever becomes of the view.
    @Test func `are no objects that it has made itself`() throws {
        var stream = try Self.stream()
        let first = Self.subscribe(2, received: 100, on: &stream)
        _ =
            try stream.handle(SessionMessages.begin(first)) + stream.handle(SessionMessages.rows(["a", "c"]))
            + stream.handle(SessionMessages.end(first, 200))
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 100, timestamp: 1, origin: 0, changeset: [])
        let change = ObjectChange(object: .item("mine"), kind: .create)
        _ = stream.upload(entry, [change], progress: 3, operations: nil)
        _ = try stream.handle(SessionMessages.commit(250, changeset: 3, entered: ["mine"]))
        let second = Self.subscribe(3, received: 100, on: &stream)
        _ = stream.settleView(superseded: [2: 2])
        #expect(stream.held == [.item("a"), .item("mine")])
        let view = try stream.handle(SessionMessages.begin(second)) + stream.handle(SessionMessages.end(second, 300))
        #expect(try SessionMessages.texts(view) == ["erase a", "erase mine"])
    }
}
