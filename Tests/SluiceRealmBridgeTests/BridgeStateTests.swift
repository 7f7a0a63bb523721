import RealmTestSupport
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceValues
import SluiceWire
import TestSupport
import Testing

@testable import SluiceRealmBridge

@Suite struct `The state of a Realm file between sessions` {
    @Test(arguments: seeds(20)) func `is read as it was written`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var state = BridgeReplica(client: random.next() | 1, secret: [1, 2, 3])
        state.changeset = random.next()
        state.held = [UInt8](repeating: 7, count: random.below(40))
        state.lsn = LSN(rawValue: random.next())
        state.witness = random.chance(50) ? [] : [9, 8]
        (state.version, state.schema) = (random.next() >> 1, random.next())
        state.writeTime = HybridTime(rawValue: random.next())
        state.query = RealmQuerySet(version: random.next() >> 1, queries: ["Item": "size > 1", "Ort": "name == 'Zürich'"])
        let keys: [Value] = [.string("a"), .string(""), .int(-4), .objectId(ObjectIdentifierBytes(high: 3, low: 4)), .null]
        state.objects = random.chance(20) ? nil : Set(keys.filter { _ in random.chance(60) }.map { ObjectKey(type: "Item", key: $0) })
        let barrier = RealmBarriers.Barrier(version: 5, stamp: RealmStamp(random.next() >> 1, 1))
        for key in keys where random.chance(40) { state.barriers[ObjectKey(type: "Item", key: key)] = .init([barrier, barrier]) }
        if random.chance(30) { for object in state.objects ?? [] { state.barriers[object] = .init(barrier) } }
        // As after a whole view. Then another object may have left, or one may have come again.
        if random.chance(50) {
            state.barriers = RealmBarriers()
            state.barriers.setWhole(barrier, state.objects ?? Set(keys.map { ObjectKey(type: "Item", key: $0) }))
            if random.chance(50) { state.barriers[ObjectKey(type: "Item", key: random.pick(keys))] = .init([barrier, barrier]) }
        }
        state.parts = random.chance(20) ? nil : Set(keys.filter { _ in random.chance(60) }.map { ObjectKey(type: "Item", key: $0) })
        state.compensations = [3: 77, random.next() >> 1: 78]
        for key in keys where random.chance(40) {
            var list = BridgeLists.List()
            for version in 0..<UInt64(random.below(3)) {
                let settled = random.chance(50) ? random.next() >> 1 | 1 : nil
                list.sent.append(BridgeLists.Sent(version: version, time: random.next() >> 1, client: random.next() >> 1, settled: settled))
            }
            for changeset in 1...UInt64(1 + random.below(2)) {
                list.emptied.append(BridgeLists.Emptying(changeset: changeset, time: random.chance(50) ? .max : random.next() >> 1))
            }
            state.lists.restore(ObjectKey(type: "Item", key: key), random.chance(30) ? "" : "tags", list)
        }
        for key in keys where random.chance(30) {
            var creation = BridgeLists.Creation(changeset: random.next() >> 1, base: random.next() >> 1)
            for name in ["", "tags"] where random.chance(50) { creation.received[name] = random.next() >> 1 }
            state.lists.restore(ObjectKey(type: "Item", key: key), creation)
        }
        for key in keys where random.chance(30) {
            state.repairs[ObjectKey(type: "Item", key: key)] = random.pick([.whole, .properties([]), .properties(["tags", "size"])])
        }
        for version in 0..<UInt64(random.below(3)) {
            let time = HybridTime(rawValue: random.next())
            state.steps.append(BridgeSteps.Step(version: version, lsn: LSN(rawValue: random.next()), time: time))
        }
        for version in 0..<UInt64(random.below(3)) {
            state.lists.restore(BridgeLists.Base(version: version, changeset: random.next() >> 1))
        }
        for key in keys where random.chance(40) { state.created[ObjectKey(type: "Item", key: key)] = random.next() }
        #expect(BridgeReplica(state.bytes) == state, "seed \(seed)")
        #expect(BridgeReplica.client(inHead: Array(state.bytes.prefix(BridgeReplica.headBytes))) == state.client, "seed \(seed)")
    }

    @Test(arguments: [[], [1], [UInt8](repeating: 0xFF, count: 20), [8, 9, 17, 1, 0, 0, 0, 0, 0, 0, 0]] as [[UInt8]])
    func `is none for bytes of another form`(bytes: [UInt8]) {
        #expect(BridgeReplica(bytes) == nil)
        #expect(BridgeReplica.client(inHead: bytes) == nil)
    }

    @Test func `leaves out more objects than are stored`() {
        var state = BridgeReplica(client: 1, secret: [])
        state.objects = Set((0...BridgeReplica.mostObjects).map { ObjectKey(type: "Item", key: .int(Int64($0))) })
        #expect(BridgeReplica(state.bytes)?.objects == nil)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The content of a Realm file` {
    @Test func `has keys of transient objects that other clients cannot foresee`() throws {
        let schema = AppSchema(
            version: 1, schema: Schema([StageDatabase.mixedItem]), fields: QueryableFields(global: ["size"]), isDevelopment: false)
        func instructions(salt: UInt64, version: UInt64) throws -> [RealmInstruction] {
            let content = try BridgeContent(RealmFileIdent(ident: 2, salt: salt), BridgeSchema(schema), sentSchema: 0, forgotten: 0)
            return content.prepareContainers(BridgeContent.Place(version: version, time: 0))
        }
        let entry = try instructions(salt: 9, version: 5)
        #expect(try entry.count == 3 && entry == instructions(salt: 9, version: 5), "a repeated bootstrap has equal bytes")
        #expect(try entry != instructions(salt: 9, version: 6) && entry != instructions(salt: 10, version: 5))
    }

    @Test func `has no value that its user must not see any more`() throws {
        let schema = AppSchema(
            version: 1, schema: Schema([StageDatabase.item]), fields: QueryableFields(global: ["size"]), isDevelopment: false)
        var content = try BridgeContent(RealmFileIdent(ident: 2, salt: 9), BridgeSchema(schema), sentSchema: 0, forgotten: 0)
        var row = BridgeStage.item("a", "secret", size: 1, tags: ["x"])
        var file = RealmModel(schema.schema)
        try file.apply(try BridgeGroup.entering(content.enter(.item("a"), row, BridgeContent.Place(version: 5, time: 0))).received)
        // The title and the tags are masked from here on.
        (row[1], row[3]) = (nil, nil)
        try file.apply(try content.replace(.item("a"), row, nil, BridgeContent.Place(version: 6, time: 0)).received)
        #expect(file.objects[.item("a")] == ["title": .null, "size": .int(1), "tags": .list([])])
    }

    @Test func `changes by a view of many objects in time that grows with their number`() throws {
        let schema = AppSchema(
            version: 1, schema: Schema([StageDatabase.item]), fields: QueryableFields(global: ["size"]), isDevelopment: false)
        var content = try BridgeContent(RealmFileIdent(ident: 2, salt: 9), BridgeSchema(schema), sentSchema: 0, forgotten: 0)
        content.last = 4
        let objects = (0..<100_000).map { ObjectKey(type: StageDatabase.item.name, key: .int($0)) }
        for object in objects { _ = content.leave(object, BridgeContent.Place(version: 5, time: 0)) }
        for object in [objects[0], objects[99_999]] {
            #expect(content.isTouched(object, after: 4) && !content.isTouched(object, after: 5))
        }
    }
}

@Suite struct `The versions of a Realm file's stream` {
    @Test func `have the position and the latest write time up to them`() {
        var steps = BridgeSteps(newest: HybridTime(milliseconds: 5))
        #expect(steps.base(of: 90) == LSN(rawValue: 90) && steps.time(at: 90) == HybridTime(milliseconds: 5))
        steps.add(100, LSN(rawValue: 100), time: HybridTime(milliseconds: 7))
        steps.add(141, LSN(rawValue: 140), time: .zero)
        steps.add(200, LSN(rawValue: 200), time: HybridTime(milliseconds: 9))
        let expected: [(version: UInt64, base: UInt64, time: Int64)] = [
            (90, 90, 7), (100, 100, 7), (120, 100, 7), (141, 140, 7), (199, 140, 7), (200, 200, 9), (999, 200, 9),
        ]
        for row in expected {
            #expect(steps.base(of: row.version) == LSN(rawValue: row.base))
            #expect(steps.time(at: row.version) == HybridTime(milliseconds: row.time))
        }
        steps.confirm(150)
        #expect(steps.base(of: 150) == LSN(rawValue: 140) && steps.time(at: 100) == HybridTime(milliseconds: 7))
        #expect(steps.newest == HybridTime(milliseconds: 9))
    }

    @Test func `stay within their bound`() {
        var steps = BridgeSteps()
        for version in 1...UInt64(BridgeSteps.most) + 10 { steps.add(version, LSN(rawValue: version), time: HybridTime(rawValue: version)) }
        // The oldest that is kept is the eleventh.
        #expect(steps.time(at: 3) == HybridTime(rawValue: 11) && steps.base(of: 3) == LSN(rawValue: 3))
    }

    @Test(arguments: [(UInt64(0), Int64(1_420_070_400_000)), (1_000, 1_420_070_401_000), (.max, HybridTime.lastMillisecond)])
    func `have times of another epoch`(timestamp: UInt64, milliseconds: Int64) {
        #expect(RealmTime.hybrid(timestamp).milliseconds == milliseconds)
    }

    @Test(arguments: [(Int64.min, UInt64(0)), (0, 0), (1_420_070_400_007, 7)])
    func `give timestamps from the epoch on`(milliseconds: Int64, timestamp: UInt64) {
        #expect(RealmTime.timestamp(milliseconds: milliseconds) == timestamp)
    }
}

@Suite struct `The changesets of one upload` {
    /// A message of 16 MB can have hundreds of thousands. Work that grows with all of them at each commit would not end within the limit.
    @Test(.timeLimit(.minutes(1))) func `are passed one commit at a time, however many they are`() throws {
        let schema = AppSchema(
            version: 1, schema: Schema([StageDatabase.item]), fields: QueryableFields(global: ["size"]), isDevelopment: false)
        let stored = StoredRealmClient(record: RealmClientRecord(file: RealmFileIdent(ident: 2, salt: 1)))
        var stream = try BridgeStream(stored, BridgeReplica(client: 1, secret: []), BridgeSchema(schema), SystemEnvironment())
        let numbers = UInt64(2)...50_000
        for number in numbers {
            let entry = RealmUploadEntry(clientVersion: number, serverVersion: 0, timestamp: 1, origin: 0, changeset: [])
            _ = stream.upload(entry, [], progress: number, operations: nil)
        }
        #expect(stream.pass(upTo: 1) == nil)
        var passed = 0
        for number in numbers.dropLast() where stream.pass(upTo: number) != nil { passed += 1 }
        #expect(passed == numbers.count - 1 && stream.own.count == 1)
        // The last one has no echo. Its acknowledgement is ahead of the stream.
        stream.acknowledge(numbers.upperBound, LSN(rawValue: 9))
        stream.passAcknowledged()
        #expect(stream.lastPassed == numbers.upperBound - 1)
        stream.replica.lsn = LSN(rawValue: 9)
        stream.passAcknowledged()
        #expect(stream.own.isEmpty && stream.lastPassed == numbers.upperBound)
    }

    @Test func `are later than the commits that their writer has seen, also of SQL`() throws {
        let schema = AppSchema(
            version: 1, schema: Schema([StageDatabase.item]), fields: QueryableFields(global: ["size"]), isDevelopment: false)
        let stored = StoredRealmClient(record: RealmClientRecord(file: RealmFileIdent(ident: 2, salt: 1)))
        var stream = try BridgeStream(stored, BridgeReplica(client: 1, secret: []), BridgeSchema(schema), SystemEnvironment())
        // SQL commits at 1.7 and 1.8 million seconds, and rows have times that are rounded to milliseconds.
        for (lsn, time) in [(UInt64(50), Int64(1_700_000_000_123_500)), (60, 1_800_000_000_123_500)] {
            var writer = CommitsWriter()
            writer.beginCommit(LSN(rawValue: lsn), commitTime: time)
            writer.endCommit()
            _ = try stream.handle(writer.finish(LSN(rawValue: lsn)))
        }
        func time(_ number: UInt64, base: UInt64) -> HybridTime {
            let entry = RealmUploadEntry(clientVersion: number, serverVersion: base, timestamp: 1, origin: 0, changeset: [])
            return stream.upload(entry, [], progress: number, operations: nil).time
        }
        let (first, second) = (time(3, base: 55), time(4, base: 60))
        #expect(first > HybridTime(milliseconds: 1_700_000_000_124) && first < HybridTime(milliseconds: 1_800_000_000_123))
        #expect(second > HybridTime(milliseconds: 1_800_000_000_124))
    }

    @Test func `leave the whole of an object to put right that one made and the next changed, both without effect`() throws {
        let stored = StoredRealmClient(record: RealmClientRecord(file: SessionMessages.file))
        var stream = try BridgeStream(
            stored, BridgeReplica(client: 1, secret: []), BridgeSchema(SessionMessages.schema), SystemEnvironment())
        for (number, kind) in [(UInt64(3), ObjectChange.Kind.create), (4, .set)] {
            let entry = RealmUploadEntry(clientVersion: number, serverVersion: 0, timestamp: 1, origin: 0, changeset: [])
            let change = ObjectChange(object: .item("a"), kind: kind, values: ["title": .string("\(number)")])
            _ = stream.upload(entry, [change], progress: number, operations: nil)
            stream.acknowledge(number, LSN(rawValue: 9))
        }
        stream.replica.lsn = LSN(rawValue: 9)
        stream.passAcknowledged()
        #expect(stream.lastPassed == 4 && stream.repairs == [.item("a"): .whole])
    }

    @Test func `leave a bounded number of objects to note at the end of a session`() throws {
        let schema = AppSchema(
            version: 1, schema: Schema([StageDatabase.item]), fields: QueryableFields(global: ["size"]), isDevelopment: false)
        let stored = StoredRealmClient(record: RealmClientRecord(file: RealmFileIdent(ident: 2, salt: 1)))
        var stream = try BridgeStream(stored, BridgeReplica(client: 1, secret: []), BridgeSchema(schema), SystemEnvironment())
        func change(_ number: Int, _ kind: ObjectChange.Kind) -> ObjectChange {
            ObjectChange(object: ObjectKey(type: "Item", key: .int(Int64(number))), kind: kind)
        }
        let most = BridgeReplica.mostObjects
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 0, timestamp: 1, origin: 0, changeset: [])
        _ = stream.upload(entry, (0..<most + 9).map { change($0, .create) } + [change(0, .delete)], progress: 3, operations: nil)
        #expect(stream.created.count == most - 1 && stream.created[change(0, .create).object] == nil)
        #expect(stream.remainders.first?.replica.created.count == most - 1)
    }

    /// The first version of an upload often declares the schema only. The connection confirms it with the whole upload.
    @Test func `let no view wait for a version without changes before them`() throws {
        let schema = AppSchema(
            version: 1, schema: Schema([StageDatabase.item]), fields: QueryableFields(global: ["size"]), isDevelopment: false)
        let stored = StoredRealmClient(record: RealmClientRecord(file: RealmFileIdent(ident: 2, salt: 1)))
        var stream = try BridgeStream(stored, BridgeReplica(client: 1, secret: []), BridgeSchema(schema), SystemEnvironment())
        let entry = RealmUploadEntry(clientVersion: 3, serverVersion: 0, timestamp: 1, origin: 0, changeset: [])
        _ = stream.upload(entry, [], progress: 3, operations: nil)
        /// The versions that a view waits for, of a bootstrap with the client's changesets up to a number.
        func versions(upTo changeset: UInt64) throws -> [UInt64] {
            let number = stream.newest + 1
            let view = RealmViewRequest(
                query: RealmQuerySet(version: number, queries: ["Item": "size > 0"]), isFull: true, hasSchema: true, number: number)
            let request = BridgeStream.Request(number: number, view: view)
            let version = stream.subscribe(BridgeStream.Subscription(query: view.query, request: request, forgets: true))
            stream.wanted = number
            var (begin, end) = (PBBootstrapBegin(), PBBootstrapEnd())
            (begin.version, end.version) = (version, version)
            (end.lsn, end.changeset) = (50 + number, changeset)
            var message = PBServerMessage()
            message.bootstrapBegin = begin
            _ = try stream.handle(WireProtocol.encode(message))
            message.bootstrapEnd = end
            return try stream.handle(WireProtocol.encode(message)).compactMap {
                if case .part(let part) = $0 { part.clientVersion } else { nil }
            }
        }
        #expect(try versions(upTo: 2) == [0])
        #expect(try versions(upTo: 3) == [3])
        #expect(try versions(upTo: 5) == [5])
    }

    @Test func `end with a reset if the client confirms nothing`() throws {
        let schema = AppSchema(
            version: 1, schema: Schema([StageDatabase.item]), fields: QueryableFields(global: ["size"]), isDevelopment: false)
        let stored = StoredRealmClient(record: RealmClientRecord(file: RealmFileIdent(ident: 2, salt: 1)))
        var stream = try BridgeStream(stored, BridgeReplica(client: 1, secret: []), BridgeSchema(schema), SystemEnvironment())
        var message = PBServerMessage()
        message.markReached = PBMarkReached()
        let mark = try WireProtocol.encode(message)
        let object = ObjectKey(type: "Item", key: .string("a"))
        // Stamps go down, so none of them replaces another.
        let most = UInt64(BridgeContent.mostBarriers)
        for version in 1...most { stream.content.memory.setBarrier(object, version, RealmStamp(most + 9 - version, 1)) }
        #expect(try stream.handle(mark).isEmpty)
        stream.content.memory.setBarrier(object, .max, RealmStamp(1, 1))
        let error = #expect(throws: SluiceError.self) { try stream.handle(mark) }
        #expect(error?.code == .badClientFile)
    }
}
