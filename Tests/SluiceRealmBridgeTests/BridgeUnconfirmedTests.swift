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
    @Test(arguments: seeds(400)) func `is taken back, and nothing else`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let objects = (0..<4).map { ObjectKey(type: "Item", key: .int(Int64($0))) }
        let received = UInt64(random.below(20))
        var unconfirmed = BridgeUnconfirmed()
        var (memory, schema) = (RealmFileMemory(), UInt64(1))
        if random.chance(70) { memory.view = Set(objects.filter { _ in random.chance(50) }) }
        var (held, known) = (memory, schema)
        for version in UInt64(1)...20 {
            let object = random.pick(objects)
            let isReceived = version <= received
            switch random.below(8) {
            case 0:
                unconfirmed.declare(before: schema, at: version)
                schema = version + 1
                if isReceived { known = schema }
            case 1:
                let isHeld = random.chance(50)
                Self.set(object, isHeld, &memory.view)
                Self.set(object, isHeld, &held.view)
                unconfirmed.make(object, isHeld: isHeld)
            case 6:
                // Made without the entries behind a base. The client has discarded it if it has one of them.
                let (isHeld, base) = (random.chance(50), version - min(version, UInt64(random.below(8))))
                if memory.isBarred(object, after: base) {
                    unconfirmed.void(object, isHeld: isHeld, base: base)
                } else {
                    Self.set(object, isHeld, &memory.view)
                    unconfirmed.make(object, isHeld: isHeld)
                }
                if !held.isBarred(object, after: base) { Self.set(object, isHeld, &held.view) }
            case 7:
                // A view of a client that holds nothing, and some of its parts.
                let stamp = RealmStamp(UInt64(random.below(1_000)), 1)
                let entering = objects.filter { _ in random.chance(60) }
                guard memory.enterWhole(entering, version, stamp, expecting: entering.count) else { break }
                unconfirmed.enter(entering, at: version)
                guard isReceived else { break }
                for object in entering {
                    held.setBarrier(object, version, stamp)
                    held.view.insert(object)
                }
            case 2:
                // The client's own later erasure.
                let writer = RealmWriter(stamp: RealmStamp(.max, 2), base: 0, version: version)
                unconfirmed.pass(object, removed: memory.barriers[object])
                let (isPassed, _) = (memory.pass(object, writer), held.pass(object, writer))
                #expect(isPassed)
            default:
                let wasHeld = memory.view.contains(object)
                let isHeld = random.chance(50)
                // Clocks that go back keep more than one barrier of an object.
                let stamp = RealmStamp(UInt64(random.below(1_000)), 1)
                let replaced = memory.setBarrier(object, version, stamp)
                unconfirmed.send(object, wasHeld: wasHeld, replaced: replaced, at: version)
                Self.set(object, isHeld, &memory.view)
                guard isReceived else { break }
                held.setBarrier(object, version, stamp)
                Self.set(object, isHeld, &held.view)
            }
        }
        unconfirmed.revert(after: received, &memory, &schema)
        #expect(memory == held && schema == known, "seed \(seed)")
    }

    /// The client's later changesets have a base of 7 or more.
    @Test func `does not come back once it is confirmed`() {
        let object = ObjectKey.item("a")
        var (memory, schema, unconfirmed) = (RealmFileMemory(), UInt64(1), BridgeUnconfirmed())
        for version in [5, 7, 9] as [UInt64] {
            let replaced = memory.setBarrier(object, version, RealmStamp(version, 1))
            unconfirmed.send(object, wasHeld: memory.view.contains(object), replaced: replaced, at: version)
            memory.view = version == 7 ? [] : [object]
        }
        unconfirmed.confirm(upTo: 7)
        memory.advance(1, base: 7)
        #expect(unconfirmed.count == 1)
        unconfirmed.revert(after: 7, &memory, &schema)
        #expect(memory.view == [] && memory.barriers.count == 0)
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
        _ number: UInt64, isFull: Bool = false, received: UInt64 = 0, forgets: Bool = true, on stream: inout BridgeStream
    ) -> UInt64 {
        stream.wanted = number
        let query = RealmQuerySet(version: number, queries: ["Item": "size > \(number)"])
        let view = RealmViewRequest(query: query, isFull: isFull, hasSchema: isFull, number: number, received: received)
        let request = BridgeStream.Request(number: number, view: view)
        return stream.subscribe(BridgeStream.Subscription(query: query, request: request, forgets: forgets))
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

    /// The connection drops the part of a view once it wants another one, and may say so later than it asks for the next event.
    @Test(arguments: [100, 200] as [UInt64]) func `is a whole view, if the next request came first`(received: UInt64) throws {
        var stream = try Self.stream()
        let first = Self.subscribe(2, received: 100, on: &stream)
        _ =
            try stream.handle(SessionMessages.begin(first)) + stream.handle(SessionMessages.rows(["c"]))
            + stream.handle(SessionMessages.end(first, 200))
        _ = stream.settleView(superseded: [:])
        let next = Self.subscribe(3, received: received, forgets: false, on: &stream)
        let view = try stream.handle(SessionMessages.begin(next)) + stream.handle(SessionMessages.end(next, 300))
        // The session would otherwise keep rows that the client does not have.
        #expect(stream.needed?.forgets ?? false == (received < 200))
        #expect(view.isEmpty == (received < 200))
    }

    /// A client keeps its object if it has not received the entry that would have voided it. So the gateway must keep it as well.
    @Test(arguments: [100, 150] as [UInt64]) func `voids no change of the client`(received: UInt64) throws {
        var stream = try Self.stream()
        _ = try stream.handle(SessionMessages.commit(150, entered: ["b"]))
        _ = stream.settleView(superseded: [:])
        let version = Self.subscribe(2, received: received, on: &stream)
        _ =
            try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.rows(["c"]))
            + stream.handle(SessionMessages.end(version, 200))
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 100, timestamp: 1, origin: 0, changeset: [])
        let permitted = stream.permitted([.createObject(.item("b"))], of: entry)
        #expect(permitted.isEmpty == (received == 150))
    }

    /// A session ends during an upload, with an entry of `b` at 150. The client sends its older changesets in the next one.
    ///
    /// It confirms the entry, which is no longer stored, or never gets it: then the log brings the object without an erasure.
    @Test(arguments: [100, 150] as [UInt64]) func `voids a change in the next session, if the client has it`(received: UInt64) throws {
        var stream = try Self.stream()
        _ = try stream.handle(SessionMessages.commit(150, entered: ["b"]))
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 100, timestamp: 1, origin: 0, changeset: [])
        _ = stream.upload(entry, [ObjectChange(object: .item("mine"), kind: .create)], progress: 3, operations: nil)
        let remainder = stream.remainders.first
        let state = try #require(remainder).replica
        let stored = StoredRealmClient(record: RealmClientRecord(file: SessionMessages.file))
        let schema = try BridgeSchema(SessionMessages.schema)
        var next = try BridgeStream(stored, try #require(BridgeReplica(state.bytes)), schema, SystemEnvironment(), cursor: received)
        let permitted = next.permitted([.createObject(.item("b"))], of: entry)
        #expect(permitted == (received == 150 ? [] : [.createObject(.item("b"))]))
    }

    /// The client has made an object that left its view at once. It may not receive the entry that takes it.
    @Test(arguments: [100, 150] as [UInt64]) func `takes what the client made`(received: UInt64) throws {
        var stream = try Self.stream()
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 100, timestamp: 1, origin: 0, changeset: [])
        _ = stream.upload(entry, [ObjectChange(object: .item("mine"), kind: .create)], progress: 3, operations: nil)
        _ = try stream.handle(SessionMessages.commit(150, changeset: 3, deleted: ["mine"]))
        let version = Self.subscribe(2, received: received, on: &stream)
        let view = try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.end(version, 200))
        #expect(try SessionMessages.texts(view) == (received < 150 ? ["erase a", "erase mine"] : ["erase a"]))
    }

    /// The object of another client voids that of this one, unless a newer view replaces the entry.
    @Test(arguments: [100, 150] as [UInt64]) func `voids what the client made`(received: UInt64) throws {
        var stream = try Self.stream()
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 100, timestamp: 1, origin: 0, changeset: [])
        _ = stream.upload(entry, [ObjectChange(object: .item("both"), kind: .create)], progress: 3, operations: nil)
        _ = try stream.handle(SessionMessages.commit(150, entered: ["both"]))
        _ = try stream.handle(SessionMessages.commit(160, changeset: 3, deleted: ["both"]))
        let version = Self.subscribe(2, received: received, on: &stream)
        let view = try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.end(version, 200))
        #expect(try SessionMessages.texts(view) == ["erase a", "erase both"])
    }

    /// The client made the object before it could know the other's. If it never does, it has its own, and the view changes that.
    @Test func `is known to the check of the client's objects`() throws {
        var stream = try Self.stream()
        var model = ClientModel()
        model.restore(try OutgoingOperation.Object(.item("a")))
        _ = try stream.handle(SessionMessages.commit(150, entered: ["both"]))
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 100, timestamp: 1, origin: 0, changeset: [])
        let permitted = stream.permitted([.createObject(.item("both"))], of: entry)
        #expect(permitted.isEmpty)
        let version = Self.subscribe(2, received: 100, on: &stream)
        let view =
            try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.rows(["both"]))
            + stream.handle(SessionMessages.end(version, 200))
        for case .part(let part) in view { for entry in part.entries { try model.send(entry.operations) } }
        #expect(stream.held == [.item("both")] && model.count == 1)
    }

    /// The connection ends with the last part of a view, which was stored or not. Neither state may replace the other.
    @Test func `is stored for the view before and for the last one`() throws {
        var stream = try Self.stream()
        let version = Self.subscribe(2, received: 100, on: &stream)
        _ =
            try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.rows(["c"]))
            + stream.handle(SessionMessages.end(version, 200))
        let whole = stream.remainders
        #expect(whole.map(\.view) == [100], "The view has its own state.")
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 100, timestamp: 1, origin: 0, changeset: [])
        _ = stream.upload(entry, [ObjectChange(object: .item("mine"), kind: .create)], progress: 3, operations: nil)
        let states = stream.remainders
        #expect(states.map(\.view) == [100, 200])
        #expect(states.map(\.replica.query.version) == [1, 2])
        #expect(states.map(\.replica.objects) == [[.item("a")], [.item("c")]])
    }

    /// A bootstrap that took `a` was stored, and the connection broke before the client had it.
    @Test func `is erased by the next view, and voids no change`() throws {
        var stream = try Self.stream()
        let version = Self.subscribe(2, received: 100, on: &stream)
        let view = try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.end(version, 200))
        #expect(try SessionMessages.texts(view) == ["erase a"])
        let state = stream.state
        let stored = StoredRealmClient(record: RealmClientRecord(file: SessionMessages.file))
        var next = try BridgeStream(stored, state, BridgeSchema(SessionMessages.schema), SystemEnvironment(), cursor: 100)
        let again = Self.subscribe(1, isFull: true, received: 100, on: &next)
        let full = try next.handle(SessionMessages.begin(again)) + next.handle(SessionMessages.end(again, 300))
        #expect(try SessionMessages.texts(full).filter { $0.hasPrefix("erase") } == ["erase a"])
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
