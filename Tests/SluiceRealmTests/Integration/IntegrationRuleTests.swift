import RealmTestSupport
import SluiceCore
import SluiceRealm
import Testing

@Suite struct `The integration of uploads` {
    private static let key = IntegrationPlay.key(1)

    private static func path(_ field: String, _ steps: [RealmStep] = []) -> RealmPath { IntegrationPlay.path(1, field, steps) }
    private static func update(_ field: String, _ value: Int64) -> RealmInstruction { .update(path(field), .value(.int(value))) }
    private static func insert(_ value: Int64, at index: Int, of size: Int) -> RealmInstruction {
        .arrayInsert(path("items"), at: index, .value(.int(value)), priorSize: size)
    }
    private static func list(_ values: Int64...) -> Value { .list(values.map { .int($0) }) }

    /// Clients that all hold one object with the list 1, 2, 3.
    private static func play(_ count: Int = 2, bounds: RealmIntegrationBounds = RealmIntegrationBounds()) throws -> IntegrationPlay {
        var play = try IntegrationPlay(clients: count, bounds: bounds)
        try play.settle()
        try play.commit(0, [.createObject(key), insert(1, at: 0, of: 0), insert(2, at: 1, of: 1), insert(3, at: 2, of: 2)], at: 10)
        try play.settle()
        // The first client learns the server's version, so that its base is that of the others.
        for index in 0..<count { try play.query(index, [0]) }
        try play.settle()
        return play
    }

    private static func expectEqual(_ play: IntegrationPlay, sourceLocation: SourceLocation = #_sourceLocation) throws {
        var play = play
        try play.settle()
        #expect(try play.difference() == nil, sourceLocation: sourceLocation)
    }

    private static func value(_ play: IntegrationPlay, _ field: String, client: Int = 0) -> Value? {
        play.clients[client].objects[key]?[field]
    }

    // MARK: Registers

    @Test func `takes the later of two concurrent writes, in either order of arrival`() throws {
        for first in [0, 1] {
            var play = try Self.play()
            try play.commit(0, [Self.update("number", 5)], at: 200)
            try play.commit(1, [Self.update("number", 6)], at: 100)
            try play.upload(first)
            try play.settle()
            #expect(Self.value(play, "number") == .int(5), "first \(first)")
            try Self.expectEqual(play)
        }
    }

    @Test func `takes a write of a client that has seen the other, whatever its clock says`() throws {
        var play = try Self.play()
        try play.commit(0, [Self.update("number", 5)], at: 9_000)
        try play.settle()
        try play.commit(1, [Self.update("number", 6)], at: 20)
        try play.settle()
        #expect(Self.value(play, "number") == .int(6))
        try Self.expectEqual(play)
    }

    @Test func `keeps a later write of a client whose earlier one beat the stranger's`() throws {
        var play = try Self.play()
        try play.commit(0, [Self.update("number", 5)], at: 100)
        try play.commit(1, [Self.update("number", 6)], at: 120)
        try play.commit(1, [Self.update("number", 7)], at: 80)
        try play.settle()
        #expect(Self.value(play, "number") == .int(7))
        try Self.expectEqual(play)
    }

    @Test func `prefers an explicit value to a later default`() throws {
        var play = try Self.play()
        try play.commit(0, [Self.update("number", 5)], at: 100)
        try play.commit(1, [.update(Self.path("number"), .value(.int(6)), isDefault: true)], at: 200)
        try play.settle()
        #expect(Self.value(play, "number") == .int(5))
        try Self.expectEqual(play)
    }

    @Test func `adds concurrent increments, and keeps later ones on an older value`() throws {
        var play = try Self.play(3)
        try play.commit(0, [.addInteger(Self.path("count"), 2)], at: 100)
        try play.commit(1, [.addInteger(Self.path("count"), 3)], at: 200)
        try play.commit(2, [Self.update("count", 50)], at: 150)
        try play.settle()
        // The increment of time 100 precedes the value of time 150.
        #expect(Self.value(play, "count") == .int(53))
        try Self.expectEqual(play)
    }

    @Test func `drops an increment that a concurrent later value has overtaken`() throws {
        var play = try Self.play()
        try play.commit(0, [Self.update("count", 50)], at: 300)
        try play.commit(1, [.addInteger(Self.path("count"), 3)], at: 200)
        try play.settle()
        #expect(Self.value(play, "count") == .int(50))
        try Self.expectEqual(play)
    }

    // MARK: Deletions

    @Test func `deletes an object although a concurrent write is later`() throws {
        var play = try Self.play()
        try play.commit(0, [.eraseObject(Self.key)], at: 100)
        try play.commit(1, [Self.update("number", 6)], at: 900)
        try play.settle()
        #expect(play.server.objects.isEmpty && play.rejections.isEmpty)
        try Self.expectEqual(play)
    }

    @Test func `voids pending writes to an object that was deleted and created again`() throws {
        var play = try Self.play()
        try play.commit(0, [.eraseObject(Self.key), .createObject(Self.key), Self.update("count", 1)], at: 100)
        try play.commit(1, [Self.update("number", 6)], at: 900)
        try play.settle()
        #expect(Self.value(play, "number", client: 1) == .int(0) && Self.value(play, "count", client: 1) == .int(1))
        try Self.expectEqual(play)
    }

    @Test func `lets a client's own later deletion pass the barrier, and the writes after it`() throws {
        for (time, expected) in [(UInt64(900), Int64(2)), (50, 1)] {
            var play = try Self.play()
            let again: [RealmInstruction] = [.eraseObject(Self.key), .createObject(Self.key)]
            try play.commit(0, again + [Self.update("count", 1)], at: 100)
            try play.commit(1, again + [Self.update("count", 2)], at: time)
            try play.settle()
            #expect(Self.value(play, "count") == .int(expected), "time \(time)")
            try Self.expectEqual(play)
        }
    }

    // MARK: Lists

    @Test func `sends the writer's own instruction when nothing was concurrent`() throws {
        var play = try Self.play()
        let move = RealmInstruction.arrayMove(Self.path("items"), from: 0, to: 2, priorSize: 3)
        try play.commit(0, [move], at: 100)
        let result = try #require(try play.upload(0))
        #expect(result.deliveries.keys.sorted() == [3])
        #expect(result.deliveries[3]?.instructions == [move])
        #expect(result.deliveries[3]?.stamp == RealmStamp(100, 2))
    }

    @Test func `sends the whole list to every holder after concurrent edits`() throws {
        var play = try Self.play(3)
        try play.commit(0, [Self.insert(10, at: 1, of: 3)], at: 100)
        try play.commit(1, [.arrayErase(Self.path("items"), at: 2, priorSize: 3)], at: 200)
        try play.upload(0)
        let result = try #require(try play.upload(1))
        let inserts = [1, 10, 2].enumerated().map { Self.insert($0.element, at: $0.offset, of: $0.offset) }
        let whole = [.clear(Self.path("items"), .list)] + inserts
        #expect(result.deliveries.keys.sorted() == [2, 3, 4])
        #expect(result.deliveries.values.allSatisfy { $0.instructions == whole })
        // The writer's entry follows its upload, and its origin is the server.
        #expect(result.deliveries[3]?.clientVersion == 1 && result.deliveries[3]?.stamp.file == RealmIntegration.server)
        try Self.expectEqual(play)
    }

    @Test func `puts the later of two insertions at one place after the earlier one`() throws {
        for first in [0, 1] {
            var play = try Self.play()
            try play.commit(0, [Self.insert(10, at: 1, of: 3)], at: 200)
            try play.commit(1, [Self.insert(20, at: 1, of: 3)], at: 100)
            try play.upload(first)
            try play.settle()
            #expect(Self.value(play, "items") == Self.list(1, 20, 10, 2, 3), "first \(first)")
            try Self.expectEqual(play)
        }
    }

    @Test func `reads an index in the writer's own list, with its earlier edits`() throws {
        var play = try Self.play()
        try play.commit(0, [.arrayErase(Self.path("items"), at: 0, priorSize: 3)], at: 100)
        try play.commit(1, [Self.insert(10, at: 0, of: 3)], at: 110)
        try play.commit(1, [.arrayUpdate(Self.path("items"), at: 3, .value(.int(33)), priorSize: 4)], at: 120)
        try play.settle()
        #expect(Self.value(play, "items") == Self.list(10, 2, 33))
        try Self.expectEqual(play)
    }

    @Test func `reads an index without the edits that a received list has removed`() throws {
        var play = try Self.play(3)
        try play.commit(0, [Self.insert(10, at: 0, of: 3)], at: 100)
        try play.commit(1, [Self.insert(20, at: 0, of: 3)], at: 110)
        try play.commit(2, [Self.insert(30, at: 0, of: 3)], at: 90)
        try play.upload(0)
        try play.upload(1)
        // The whole list 10, 20, 1, 2, 3 removes the pending insertion of 30.
        try play.receive(2)
        try play.receive(2)
        #expect(Self.value(play, "items", client: 2) == Self.list(10, 20, 1, 2, 3))
        try play.commit(2, [.arrayUpdate(Self.path("items"), at: 2, .value(.int(11)), priorSize: 5)], at: 130)
        try play.settle()
        guard case .list(let items)? = Self.value(play, "items") else { throw RealmModel.Fault("no list") }
        #expect(items.contains(.int(11)) && items.contains(.int(20)) && !items.contains(.int(1)))
        try Self.expectEqual(play)
    }

    @Test func `reads an index with the edits after a Clear that beat the received list`() throws {
        var play = try Self.play(3)
        try play.commit(0, [Self.insert(10, at: 0, of: 3)], at: 100)
        try play.commit(1, [Self.insert(20, at: 0, of: 3)], at: 110)
        try play.commit(2, [Self.insert(30, at: 0, of: 3)], at: 90)
        try play.commit(2, [.clear(Self.path("items"), .list)], at: 500)
        try play.commit(2, [Self.insert(40, at: 0, of: 0)], at: 510)
        try play.upload(0)
        try play.upload(1)
        try play.receive(2)
        try play.receive(2)
        #expect(Self.value(play, "items", client: 2) == Self.list(40))
        try play.commit(2, [Self.insert(50, at: 1, of: 1)], at: 520)
        try play.settle()
        #expect(Self.value(play, "items") == Self.list(40, 50))
        try Self.expectEqual(play)
    }

    @Test func `puts the later of a move and an insertion first at one target, in the model of a client`() {
        let move = RealmInstruction.arrayMove(Self.path("items"), from: 0, to: 2, priorSize: 4)
        let insert = Self.insert(9, at: 3, of: 4)
        let (lateMove, earlyInsert) = PendingTransform.pair(move, insert, isLater: true)
        #expect(lateMove == .arrayMove(Self.path("items"), from: 0, to: 2, priorSize: 5))
        #expect(earlyInsert == insert)
        let (earlyMove, lateInsert) = PendingTransform.pair(move, insert, isLater: false)
        #expect(earlyMove == .arrayMove(Self.path("items"), from: 0, to: 3, priorSize: 5))
        #expect(lateInsert == Self.insert(9, at: 2, of: 4))
    }

    // MARK: Views and rejections

    @Test func `sends an object anew when it enters a view, and an erasure when it leaves`() throws {
        var play = try Self.play()
        try play.commit(0, [Self.update("group", 1)], at: 100)
        let leaving = try #require(try play.upload(0))
        #expect(leaving.deliveries.values.map(\.instructions) == [[.eraseObject(Self.key)], [.eraseObject(Self.key)]])
        try play.settle()
        try play.query(1, [1])
        #expect(play.streams[1].last?.instructions.prefix(2) == [.eraseObject(Self.key), .createObject(Self.key)])
        try play.commit(1, [], at: 110)
        try play.settle()
        #expect(Self.value(play, "items", client: 1) == Self.list(1, 2, 3))
        try Self.expectEqual(play)
    }

    @Test func `voids a write to an object that left the view at the same time`() throws {
        var play = try Self.play()
        try play.commit(1, [Self.update("number", 5)], at: 900)
        try play.query(1, [2])
        try play.settle()
        #expect(Self.value(play, "number") == .int(0))
        try Self.expectEqual(play)
    }

    @Test func `undoes a write that is not permitted, and voids those that build on it`() throws {
        var play = try Self.play()
        try play.commit(1, [Self.update("count", 4), Self.update("number", GroupRules.refused)], at: 100)
        try play.commit(1, [Self.update("count", 5)], at: 110)
        let result = try #require(try play.upload(1))
        #expect(result.rejected == [Self.key: .notPermitted])
        #expect(result.deliveries.keys.sorted() == [3])
        #expect(result.deliveries[3]?.instructions.prefix(2) == [.eraseObject(Self.key), .createObject(Self.key)])
        try play.settle()
        #expect(Self.value(play, "count") == .int(0) && Self.value(play, "items", client: 1) == Self.list(1, 2, 3))
        try Self.expectEqual(play)
    }

    @Test func `undoes the creation of an object outside of the view`() throws {
        var play = try Self.play()
        let other = IntegrationPlay.key(2)
        try play.commit(1, [.createObject(other), .update(RealmPath(other, "group"), .value(.int(2)))], at: 100)
        let result = try #require(try play.upload(1))
        #expect(result.rejected == [other: .outsideOfView])
        #expect(result.deliveries[3]?.instructions == [.eraseObject(other)])
        try Self.expectEqual(play)
    }

    @Test func `undoes a write inside of an element`() throws {
        var play = try Self.play()
        let file = play.clients[1].file
        let inner = RealmInstruction.update(Self.path("items", [.index(0), .key("x")]), .value(.int(1)))
        let upload = RealmUploadedChangeset(
            file: file, clientVersion: 1, base: play.server.version, time: 100, instructions: [inner])
        let result = try play.server.integrate(upload, rules: play.rules, now: 100)
        #expect(result?.rejected == [Self.key: .unsupportedPlace])
    }

    // MARK: Uploads and bounds

    @Test func `integrates a changeset once`() throws {
        var play = try Self.play()
        let add = RealmUploadedChangeset(
            file: 3, clientVersion: 7, base: play.server.version, time: 100, instructions: [.addInteger(Self.path("count"), 1)])
        #expect(try play.server.integrate(add, rules: play.rules, now: 100) != nil)
        #expect(try play.server.integrate(add, rules: play.rules, now: 100) == nil)
        #expect(play.server.objects[Self.key]?.values["count"] == .int(1))
    }

    @Test func `refuses a base that the server has not reached`() throws {
        var play = try Self.play()
        let upload = RealmUploadedChangeset(file: 3, clientVersion: 7, base: 1_000_000, time: 100, instructions: [])
        let error = #expect(throws: SluiceError.self) { _ = try play.server.integrate(upload, rules: play.rules, now: 100) }
        #expect(error?.code == .badChangeset)
    }

    @Test func `resets a file that has missed more of a list than is remembered`() throws {
        var play = try Self.play(bounds: RealmIntegrationBounds(listEdits: 20))
        try play.commit(1, [Self.insert(5, at: 0, of: 3)], at: 100)
        for count in 3..<40 {
            try play.commit(0, [Self.insert(7, at: 0, of: count)], at: 100)
            // The lone writer's base stays old. It needs no reset.
            try play.upload(0)
        }
        let error = #expect(throws: SluiceError.self) { try play.upload(1) }
        #expect(error?.code == .badClientFile)
    }

    @Test func `resets a file with too many barriers`() throws {
        var play = try IntegrationPlay(clients: 2, bounds: RealmIntegrationBounds(barriers: 3))
        for number in 0..<4 { try play.commit(0, [.createObject(IntegrationPlay.key(number))], at: 100) }
        var resets: [Set<UInt64>] = []
        for _ in 0..<4 { resets.append(try #require(try play.upload(0)).resets) }
        #expect(resets == [[], [], [], [3]])
        #expect(play.server.files[3] == nil)
    }

    @Test func `keeps no history that every file has seen`() throws {
        var play = try Self.play()
        for value in 0..<50 {
            try play.commit(0, [Self.insert(Int64(value), at: 0, of: 3 + value), .addInteger(Self.path("count"), 1)], at: 100)
            try play.settle()
            for index in 0..<2 { try play.query(index, [0]) }
            try play.settle()
            for client in play.clients { play.server.confirm(client.file, clientVersion: client.version, base: client.base) }
        }
        guard case .list(let list)? = play.server.objects[Self.key]?.fields["items"] else { throw RealmModel.Fault("no list") }
        #expect(list.cost < 10)
        #expect(list.values.count == 53)
    }
}
