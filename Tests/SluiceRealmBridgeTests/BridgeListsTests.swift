import SluiceCore
import SluiceRealm
import Testing

@testable import SluiceRealmBridge

@Suite struct `The lists that a Realm client received as a whole` {
    private let object = ObjectKey.item("a")

    private func sent(_ version: UInt64, _ client: UInt64, time: UInt64 = 50) -> BridgeLists.Sent {
        BridgeLists.Sent(version: version, time: time, client: client)
    }
    private var clear: RealmInstruction { .clear(RealmPath(object, "tags"), .list) }

    @Test func `hide the changesets that were pending, until their outcome comes`() {
        var lists = BridgeLists()
        lists.receive(3, base: 10, time: 1, [])
        lists.receive(4, base: 10, time: 2, [])
        lists.send(object, "tags", sent(20, 2))
        lists.receive(6, base: 10, time: 3, [])
        #expect(lists.discarded(object, "tags", base: 10, by: 6) == nil)
        lists.receive(8, base: 20, time: 4, [])
        lists.receive(9, base: 25, time: 5, [])
        // Numbers skip: 7 would have been pending too.
        #expect(lists.discarded(object, "tags", base: 20, by: 8) == 7)
        #expect(lists.discarded(object, "tags", base: 25, by: 9) == 7)
        #expect(lists.discarded(object, "other", base: 25, by: 9) == nil)
        #expect(lists.discarded(.item("b"), "tags", base: 25, by: 9) == nil)
        lists.confirm(25, passed: 4, end: 30)
        #expect(lists.discarded(object, "tags", base: 25, by: 9) == 7)
        // Their outcome is in the stream at 40, and the client has it.
        lists.confirm(30, passed: 9, end: 40)
        #expect(lists.discarded(object, "tags", base: 39, by: 9) == 7)
        lists.confirm(40, passed: 9, end: 50)
        #expect(lists.discarded(object, "tags", base: 40, by: 9) == nil && lists.count == 0)
    }

    @Test func `hide nothing if nothing was pending`() {
        var lists = BridgeLists()
        lists.receive(3, base: 10, time: 1, [])
        lists.send(object, "tags", sent(20, 3))
        lists.receive(4, base: 20, time: 2, [])
        #expect(lists.discarded(object, "tags", base: 20, by: 4) == nil)
        lists.confirm(20, passed: 3, end: 30)
        #expect(lists.count == 0)
    }

    @Test(arguments: [(40, 7), (50, nil), (60, nil)] as [(UInt64, UInt64?)])
    func `do not beat a later Clear of the client`(time: UInt64, hidden: UInt64?) {
        var lists = BridgeLists()
        lists.receive(7, base: 10, time: time, [clear])
        lists.send(object, "tags", sent(20, 2))
        lists.receive(8, base: 20, time: time + 1, [])
        #expect(lists.discarded(object, "tags", base: 20, by: 8) == hidden)
    }

    @Test(arguments: [9, 30]) func `beat a Clear that an earlier list has discarded, whatever their times`(confirmed: UInt64) {
        var lists = BridgeLists()
        lists.receive(7, base: 10, time: 50, [clear])
        lists.send(object, "tags", sent(20, 2, time: 60))
        lists.receive(8, base: 20, time: 51, [])
        lists.send(object, "tags", sent(30, 3, time: 40))
        lists.receive(9, base: 30, time: 52, [])
        lists.confirm(confirmed, passed: 6, end: 35)
        #expect(lists.discarded(object, "tags", base: 20, by: 8) == 7)
        #expect(lists.discarded(object, "tags", base: 30, by: 9) == 8)
    }

    @Test func `do not beat an erasure of the client, nor a Clear after them`() {
        var lists = BridgeLists()
        lists.receive(7, base: 10, time: 1, [.eraseObject(object), .createObject(object)])
        lists.send(object, "tags", sent(20, 2))
        lists.receive(8, base: 20, time: 2, [])
        #expect(lists.discarded(object, "tags", base: 20, by: 8) == nil)
        lists.send(object, "tags", sent(30, 7))
        lists.receive(9, base: 30, time: 3, [clear])
        #expect(lists.discarded(object, "tags", base: 30, by: 9) == 8)
        lists.receive(10, base: 30, time: 4, [])
        #expect(lists.discarded(object, "tags", base: 30, by: 10) == nil)
    }

    @Test func `hide the changesets under way when the whole object comes, and no later ones`() {
        var lists = BridgeLists()
        lists.send(object, sent(20, 2))
        #expect(lists.count == 0)
        lists.receive(3, base: 10, time: 1, [])
        lists.begin(3, [object])
        lists.send(object, sent(30, 2))
        lists.pass(3, [object])
        lists.send(object, sent(40, 3))
        lists.receive(4, base: 30, time: 2, [])
        #expect(lists.discarded(object, "tags", base: 30, by: 4) == 3)
        lists.confirm(40, passed: 3, end: 40)
        lists.confirm(40, passed: 4, end: 50)
        #expect(lists.count == 0)
    }

    @Test func `do not change when a changeset is sent again`() {
        var lists = BridgeLists()
        for _ in 0..<2 {
            lists.receive(3, base: 10, time: 60, [clear])
            lists.receive(4, base: 20, time: 61, [])
        }
        lists.send(object, "tags", sent(15, 2))
        #expect(lists.bases == [BridgeLists.Base(version: 10, changeset: 3), BridgeLists.Base(version: 20, changeset: 4)])
        #expect(lists.discarded(object, "tags", base: 20, by: 4) == nil && lists.count == 4)
    }

    @Test func `have the client's own elements alone in an object that it created, until an entry gives them`() {
        var lists = BridgeLists()
        lists.create(3, base: 10, [.createObject(object), .createObject(.item("b"))])
        // A repeated changeset changes nothing.
        lists.send(object, "tags", sent(20, 2))
        lists.create(3, base: 10, [.createObject(object), .createObject(.item("b"))])
        #expect(lists.creation(of: object, "tags", base: 10, by: 2) == nil)
        #expect(lists.creation(of: object, "tags", base: 19, by: 3) == 3)
        #expect(lists.creation(of: object, "tags", base: 20, by: 4) == nil)
        #expect(lists.creation(of: object, "other", base: 25, by: 4) == 3)
        lists.receive(object, at: 30)
        #expect(lists.creation(of: object, "other", base: 29, by: 4) == 3)
        #expect(lists.creation(of: object, "other", base: 30, by: 4) == nil)
        lists.confirm(29, passed: 3, end: 40)
        #expect(lists.creation(of: object, "other", base: 29, by: 5) == 3)
        // The server did not have the other one. An older changeset of the same object settles nothing.
        lists.settle(.item("b"), createdBy: 2)
        #expect(lists.creation(of: .item("b"), "tags", base: 40, by: 5) == 3)
        lists.settle(.item("b"), createdBy: 3)
        #expect(lists.creation(of: .item("b"), "tags", base: 40, by: 5) == nil)
        lists.confirm(40, passed: 3, end: 40)
        lists.confirm(40, passed: 3, end: 40)
        #expect(lists.creations.isEmpty && lists.count == 0)
    }

    @Test func `begin anew with each creation of the client, and end with its erasure`() {
        var lists = BridgeLists()
        lists.create(3, base: 10, [.createObject(object)])
        lists.receive(object, at: 20)
        lists.create(5, base: 20, [.eraseObject(object), .createObject(object)])
        #expect(lists.creation(of: object, "tags", base: 20, by: 5) == 5)
        // A view names what earlier changesets made.
        lists.receiveCreations(upTo: 4, at: 30, except: [])
        lists.receiveCreations(upTo: 5, at: 31, except: [object])
        #expect(lists.creation(of: object, "tags", base: 35, by: 6) == 5)
        lists.receiveCreations(upTo: 5, at: 40, except: [])
        #expect(lists.creation(of: object, "tags", base: 39, by: 6) == 5)
        #expect(lists.creation(of: object, "tags", base: 40, by: 6) == nil)
        lists.create(7, base: 40, [.createObject(object), .eraseObject(object)])
        #expect(lists.creations.isEmpty)
    }
}
