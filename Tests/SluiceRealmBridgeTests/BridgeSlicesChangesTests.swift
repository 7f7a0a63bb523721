import PortsTestSupport
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceWire
import SwiftProtobuf
import Testing

@testable import SluiceRealmBridge

/// The consumer of a view.
private actor Consumer {
    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation

    init() { (wakes, waker) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

    nonisolated func wake() { waker.yield() }

    /// Returns the next event.
    func next(_ view: any RealmClientView) async throws -> RealmViewEvent {
        var iterator = wakes.makeAsyncIterator()
        while true {
            if let event = try await view.next() { return event }
            await iterator.next(isolation: #isolation)
        }
    }

    /// Asks for what needs no wait, until there is something.
    func nextNow(_ view: any RealmClientView) async throws -> RealmReadyEvent {
        var iterator = wakes.makeAsyncIterator()
        while true {
            let ready = try view.nextNow(isTaken: true)
            guard ready == .none else { return ready }
            await iterator.next(isolation: #isolation)
        }
    }
}

/// Changes, restarts and other views while a view is on its way.
@Suite(.timeLimit(.minutes(2))) struct `A view on its way` {
    /// A stage whose next view waits behind 400 of a thousand rows.
    private static func stage(_ bounds: BridgeBounds = Sliced.small) async -> BridgeStage {
        let stage = await BridgeStage(bounds: bounds)
        await Sliced.fill(stage)
        await stage.database.cut(200)
        return stage
    }

    /// Asks for all items, and takes parts until the database waits. A full view erases everything that the client may hold.
    private static func begin(
        _ isFull: Bool, on stage: BridgeStage, _ body: (StageClient, inout PartStore) async throws -> Void
    ) async throws {
        var (store, file) = (PartStore(), RealmFileIdent(ident: 0, salt: 0))
        if isFull { (store, file) = try await Sliced.interrupted(stage) }
        await stage.database.pause(after: 2)
        try await stage.connect { client in
            if isFull {
                try Sliced.resume(client, file, store.cursor, Sliced.none, then: Sliced.all)
            } else {
                _ = try await client.begin()
                try client.send(.query(session: 1, Sliced.all))
            }
            for _ in 0..<4 { try store.take(await client.messages(through: .part)) }
            await stage.database.untilPaused()
            try await body(client, &store)
        }
    }

    @Test(arguments: [false, true]) func `has the changes that others make of objects in earlier slices`(isFull: Bool) async throws {
        let stage = await Self.stage()
        try await Self.begin(isFull, on: stage) { client, store in
            await stage.sql([Sliced.key(0): BridgeStage.item(Sliced.key(0), "changed"), Sliced.key(1): nil, Sliced.key(2): nil])
            await stage.sql([Sliced.key(2): BridgeStage.item(Sliced.key(2), "again")])
            await stage.sql([Sliced.key(3): BridgeStage.item(Sliced.key(3), "left", size: 200_000)])
            await stage.sql([Sliced.key(998): BridgeStage.item(Sliced.key(998), "later"), Sliced.key(999): nil])
            await stage.sql(["new": BridgeStage.item("new", "new")])
            stage.database.resume()
            try store.take(await client.messages(through: .view(1)))
            var titles = Sliced.titles(4..<998)
            titles[.string(Sliced.key(0))] = .string("changed")
            titles[.string(Sliced.key(2))] = .string("again")
            titles[.string(Sliced.key(998))] = .string("later")
            titles[.string("new")] = .string("new")
            #expect(store.differences(from: titles).isEmpty)
            await stage.sql([Sliced.key(4): nil])
            try store.take(await client.messages(through: .changes))
            titles[.string(Sliced.key(4))] = nil
            #expect(store.differences(from: titles).isEmpty)
        }
    }

    /// The session gives the first snapshot up, and names what it has sent of it by keys alone.
    @Test(arguments: [false, true]) func `begins again behind its slices if too much changes meanwhile`(isFull: Bool) async throws {
        let stage = await Self.stage()
        try await Self.begin(isFull, on: stage) { client, store in
            for letter in ["a", "b", "c", "d", "e"] {
                await stage.sql(["k": BridgeStage.item("k", String(repeating: letter, count: 8 << 20))])
            }
            await stage.sql(["k": nil, Sliced.key(1): nil, Sliced.key(2): BridgeStage.item(Sliced.key(2), "changed")])
            stage.database.resume()
            try store.take(await client.messages(through: .view(1)))
            var titles = Sliced.titles([0] + Array(3..<1_000))
            titles[.string(Sliced.key(2))] = .string("changed")
            #expect(store.differences(from: titles).isEmpty)
        }
    }

    @Test func `leaves no object behind if the gateway restarts`() async throws {
        let old = await Self.stage()
        var (store, file) = try await Sliced.interrupted(old)
        let stage = await BridgeStage(bounds: Sliced.small, after: old)
        await stage.sql(Dictionary(uniqueKeysWithValues: (0..<20).map { (Sliced.key($0), nil) }))
        try await stage.connect { client in
            try Sliced.resume(client, file, store.cursor, Sliced.none, then: Sliced.all)
            try store.take(await client.messages(through: .view(1)))
            #expect(store.differences(from: Sliced.titles(20..<1_000)).isEmpty)
            await stage.sql([Sliced.key(20): nil])
            try store.take(await client.messages(through: .changes))
            #expect(store.differences(from: Sliced.titles(21..<1_000)).isEmpty)
        }
        (store, file) = try await Sliced.interrupted(stage)
        #expect(file.ident == 3)
    }

    /// Its rows fit one entry, so the client has none of them. The session must not take them for the client's.
    @Test func `is whole if it replaces one of the same objects`() async throws {
        let stage = await Self.stage(BridgeBounds())
        await stage.database.pause(after: 2)
        try await stage.connect { client in
            _ = try await client.begin()
            var store = PartStore()
            try client.send(.query(session: 1, Sliced.all))
            await stage.database.untilPaused()
            try client.send(.query(session: 1, RealmQuerySet(version: 2, queries: Sliced.all.queries)))
            try store.take(await client.messages(through: .view(2)))
            #expect(store.differences(from: Sliced.titles(0..<1_000)).isEmpty)
        }
    }

    @Test func `is taken if an earlier request of the same set was given up`() async throws {
        let stage = await BridgeStage()
        await stage.sql(["a": BridgeStage.item("a", "one")])
        let file = try await stage.files.allot(user: "ann")
        let stored = try await stage.files.open(file, user: "ann")
        let consumer = Consumer()
        let client = RealmViewClient(user: "ann", stored: stored)
        let view = try await stage.bridge.open(client, for: consumer, wake: { consumer.wake() }) { _, _ in }
        view.build(RealmViewRequest(query: Sliced.all, isFull: false, hasSchema: true, number: 1))
        view.supersede(queryVersion: 1)
        view.build(RealmViewRequest(query: Sliced.all, isFull: true, hasSchema: true, number: 2))
        while true {
            if case .part(let part) = try await consumer.next(view), part.isLast, part.request == 2 { break }
        }
        await stage.sql(["a": BridgeStage.item("a", "two")])
        while true {
            guard case .changes(let entries) = try await consumer.next(view) else { continue }
            #expect(try entries.flatMap { try RealmChangesetReader.instructions(of: $0.entry.changeset).map(\.text) } == ["a.title = two"])
            break
        }
        view.close()
        while stage.services.files.count > 0, !Task.isCancelled { await Task.yield() }
    }

    /// The end of a bootstrap may encode or erase very many objects, and nothing else happens on the thread of a socket meanwhile.
    @Test func `is left to the task of its session`() async throws {
        let stage = await BridgeStage()
        await stage.sql(["a": BridgeStage.item("a", "one")])
        let stored = try await stage.files.open(try await stage.files.allot(user: "ann"), user: "ann")
        let consumer = Consumer()
        let view = try await stage.bridge.open(
            RealmViewClient(user: "ann", stored: stored), for: consumer, wake: { consumer.wake() }
        ) { _, _ in }
        view.build(RealmViewRequest(query: Sliced.all, isFull: false, hasSchema: true, number: 1))
        var ready = try await consumer.nextNow(view)
        while case .event = ready { ready = try await consumer.nextNow(view) }
        #expect(ready == .later)
        #expect(await (view as? BridgeView)?.events.isEmpty == true)
        while true {
            if case .part(let part) = try await consumer.next(view), part.isLast { break }
        }
        await stage.sql(["a": BridgeStage.item("a", "two")])
        guard case .event(.changes) = try await consumer.nextNow(view) else {
            Issue.record("a change was left to the task")
            return
        }
        view.close()
        while stage.services.files.count > 0, !Task.isCancelled { await Task.yield() }
    }

    /// The client discards its change of an object that the view gives it anew, so the gateway must not apply it.
    @Test func `voids the changes of its objects that it did not know, also if nothing else is committed`() async throws {
        let stage = await BridgeStage()
        await stage.sql(["a": BridgeStage.item("a", "one")])
        var (file, cursor) = (RealmFileIdent(ident: 0, salt: 0), RealmDownloadCursor())
        try await stage.connect { client in
            file = try await client.begin()
            cursor = try await client.subscribe(1).progress.download
            // The client does not get this one.
            _ = try await client.subscribe(2)
        }
        try await stage.connect { client in
            try Sliced.resume(client, file, cursor, RealmQuerySet(version: 1, queries: ["Item": "TRUEPREDICATE"]), then: nil)
            let view = try #require(await client.download(.view(1)))
            #expect(try StageClient.texts(view).contains("create a"))
            try client.upload(3, base: cursor.serverVersion, [.title("a", "mine")])
            _ = await client.messages(through: .acknowledgement(3))
            #expect(await stage.database.row("a")?[1] == .string("one"))
        }
    }
}

/// The translation of a session's messages, as the pipeline sends them.
@Suite(.timeLimit(.minutes(1))) struct `The stream of a large view` {
    @Test func `keeps no more rows than one entry has`() throws {
        let stored = StoredRealmClient(record: RealmClientRecord(file: SessionMessages.file))
        let bounds = BridgeBounds(entryBytes: 20_000)
        var stream = try BridgeStream(
            stored, BridgeReplica(client: 1, secret: []), BridgeSchema(SessionMessages.schema), SystemEnvironment(), bounds)
        stream.wanted = 1
        let request = BridgeStream.Request(number: 1, view: RealmViewRequest(query: Sliced.all, isFull: true, hasSchema: true))
        let version = stream.subscribe(BridgeStream.Subscription(query: Sliced.all, request: request, forgets: true))
        #expect(try stream.handle(SessionMessages.begin(version)).isEmpty)
        var parts = 0
        for number in 0..<200 {
            let events = try stream.handle(SessionMessages.rows((0..<5).map { "k\(number) \($0)" }))
            parts += events.count
            #expect(events.count <= 3 && stream.collection?.named.count ?? 0 <= 20)
        }
        let last = try stream.handle(SessionMessages.end(version, 500))
        #expect(parts > 40 && last.count <= 3)
        #expect(stream.held.count == 1_000)
    }

    /// The rows are encoded when they come. One that enters would void the client's later changes of an object that it has made.
    @Test func `is asked for again if the client has made one of its first objects meanwhile`() throws {
        let stored = StoredRealmClient(record: RealmClientRecord(file: SessionMessages.file))
        var stream = try BridgeStream(
            stored, BridgeReplica(client: 1, secret: []), BridgeSchema(SessionMessages.schema), SystemEnvironment())
        stream.wanted = 1
        let request = BridgeStream.Request(number: 1, view: RealmViewRequest(query: Sliced.all, isFull: false, hasSchema: true))
        var version = stream.subscribe(BridgeStream.Subscription(query: Sliced.all, request: request, forgets: false))
        var events = try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.rows(["a", "b"]))
        stream.content.make(.item("a"), isHeld: true)
        events += try stream.handle(SessionMessages.end(version, 300))
        #expect(events.isEmpty)
        let subscription = stream.needed
        let needed = try #require(subscription)
        #expect(needed.forgets && needed.request?.number == 1)
        version = stream.subscribe(needed)
        events = try stream.handle(SessionMessages.begin(version)) + stream.handle(SessionMessages.rows(["a", "b"]))
        events += try stream.handle(SessionMessages.end(version, 301))
        let texts = try SessionMessages.texts(events)
        #expect(texts.contains("create b") && !texts.contains("create a") && !texts.contains("erase a"))
        #expect(stream.held == [.item("a"), .item("b")] && !stream.isBehind)
    }

    /// Only the session tells what the client may hold. Its rows exceed one entry, so the connection asks for the view again.
    @Test func `resumed from an older state is followed by one that erases all that the client may hold`() throws {
        var stored = StoredRealmClient(record: RealmClientRecord(file: SessionMessages.file))
        stored.record.view = RealmClientRecord.View(queryVersion: 1, serverVersion: 100)
        stored.entries = [
            RealmStreamEntry(
                serverVersion: 200, clientVersion: 0, timestamp: 1, origin: 1,
                changeset: try RealmChangesetWriter.bytes(of: RealmInstruction.item("b", "entered")), created: 0)
        ]
        var replica = BridgeReplica(client: 1, secret: [])
        (replica.version, replica.lsn, replica.query) = (100, LSN(rawValue: 100), Sliced.all)
        replica.objects = [.item("a")]
        let bounds = BridgeBounds(entryBytes: 2_000)
        var stream = try BridgeStream(stored, replica, BridgeSchema(SessionMessages.schema), SystemEnvironment(), bounds)
        let first = stream.subscribe(BridgeStream.Subscription(query: Sliced.all, request: nil, forgets: false))
        #expect(stream.isOlder && !stream.hasResumed)
        // The request waits for the resumption, which tells what it must erase.
        stream.wanted = 1
        var events = try stream.handle(SessionMessages.begin(first)) + stream.handle(SessionMessages.rows(["c", "d", "e"], gone: ["f"]))
        events += try stream.handle(SessionMessages.rows(["g"])) + stream.handle(SessionMessages.end(first, 300, resumed: true))
        #expect(events == [.permissionsChanged] && stream.hasResumed && stream.isBehind)
        let request = BridgeStream.Request(number: 1, view: RealmViewRequest(query: Sliced.all, isFull: false, hasSchema: false))
        let second = stream.subscribe(BridgeStream.Subscription(query: Sliced.all, request: request, forgets: stream.mustForget))
        events =
            try stream.handle(SessionMessages.begin(second)) + stream.handle(SessionMessages.rows(["c"]))
            + stream.handle(SessionMessages.end(second, 300))
        let erased = try SessionMessages.texts(events).filter { $0.hasPrefix("erase") }
        #expect(erased == ["erase a", "erase b", "erase d", "erase e", "erase f", "erase g", "erase c"])
        #expect(stream.held == [.item("c")] && !stream.isBehind)
    }
}
