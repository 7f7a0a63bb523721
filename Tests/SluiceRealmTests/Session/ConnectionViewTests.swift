import SluiceCore
import SluicePorts
import Testing

@testable import SluiceRealm

private typealias Fixture = ConnectionFixture

@Suite struct `The views of a connection` {
    private static let id = RealmSessionID(session: 1, generation: 1)

    @Test func `follow the newest query set`() {
        var fixture = Fixture.steady()
        #expect(fixture.feed(Fixture.query(1)) == ["store begin 1", "build 1"])
        #expect(fixture.feed(.bootstrap(Self.id, Fixture.part(1, at: 3, isLast: false))) == ["more 3/0 ack 0 [3]"])
        #expect(fixture.feed(Fixture.query(2)) == ["superseded 1", "store begin 2", "build 2"])
        #expect(fixture.feed(.bootstrap(Self.id, Fixture.part(1, at: 3))) == ["superseded 1"])
        #expect(fixture.feed(.bootstrap(Self.id, Fixture.part(2, at: 4))) == ["store view 2 at 4", "last 4/0 ack 0 [4]"])
        // A query set that is not newer is out of order.
        #expect(fixture.feed(Fixture.query(2)).first == "error 109 Transient")
    }

    @Test func `return to the set before one that is refused`() {
        var fixture = Fixture.steady()
        _ = fixture.feed(Fixture.query(1))
        _ = fixture.feed(Fixture.query(2))
        #expect(
            fixture.feed(.queryFailed(Self.id, queryVersion: 2, "no")) == ["query error 2", "superseded 2", "store begin 1", "build 1"])
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(3)])).isEmpty)
        #expect(
            fixture.feed(.queryFailed(Self.id, queryVersion: 1, "no")) == ["query error 1", "store cancel", "download 3/0 ack 0 [3]"])
        // The view of version 0 stays in force, and a mark is answered.
        #expect(fixture.feed(.mark(session: 1, request: 3)) == ["catch 3"])
        #expect(fixture.feed(.caughtUp(Self.id, request: 3)) == ["mark 3"])
    }

    /// The client may have parts of any set from an earlier connection, and drops those of all others at the first part of this one.
    @Test func `begin with the set that a returning client has, before a newer one`() {
        var (fixture, actions) = Fixture.resumed(at: 6, query: 2)
        #expect(actions == ["store begin 2", "build 2 full"])
        #expect(fixture.feed(Fixture.query(3)).isEmpty)
        #expect(
            fixture.feed(.bootstrap(Self.id, Fixture.part(2, at: 10, client: 20, isLast: false))) == [
                "more 10/20 ack 20 [10]", "superseded 2", "store begin 3", "build 3 full",
            ])
        #expect(
            fixture.feed(.queryFailed(Self.id, queryVersion: 3, "no")) == [
                "query error 3", "superseded 3", "store begin 2", "build 2 full",
            ])
        actions = fixture.feed(.bootstrap(Self.id, Fixture.part(2, at: 10, client: 20)))
        #expect(actions == ["store view 2 at 10", "last 10/20 ack 20 [10]"])
    }

    @Test func `keep the first view of a returning client if the set that waited for it is refused`() {
        var (fixture, _) = Fixture.resumed(at: 6, query: 2)
        #expect(fixture.feed(Fixture.query(3)).isEmpty)
        // The view covers the first of them.
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(9, client: 20), Fixture.entry(11, client: 20)])).isEmpty)
        #expect(fixture.feed(.bootstrap(Self.id, Fixture.part(2, at: 10, client: 20))).last == "build 3")
        #expect(
            fixture.feed(.queryFailed(Self.id, queryVersion: 3, "no")) == [
                "query error 3", "store cancel", "error 231 Warning", "download 11/20 ack 20 [11]",
            ])
    }

    @Test func `answer a mark behind a set that waited for the first view of a returning client`() {
        var (fixture, _) = Fixture.resumed(at: 6, query: 2)
        #expect(fixture.feed(Fixture.query(3)).isEmpty && fixture.feed(Fixture.query(4)).isEmpty)
        #expect(fixture.feed(.mark(session: 1, request: 1)) == ["catch 1"])
        #expect(fixture.feed(.caughtUp(Self.id, request: 1)).isEmpty)
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(11, client: 20)])).isEmpty)
        #expect(
            fixture.feed(.bootstrap(Self.id, Fixture.part(2, at: 10, client: 20))) == [
                "store view 2 at 10", "last 10/20 ack 20 [10]", "store begin 4", "build 4",
            ])
        #expect(
            fixture.feed(.bootstrap(Self.id, Fixture.part(4, at: 10, client: 20))) == [
                "store view 4 at 10", "last 10/20 ack 20 [10]", "error 231 Warning", "download 11/20 ack 20 [11]", "mark 1",
            ])
    }

    @Test func `erase the parts of a superseded set to which the session returns`() {
        var fixture = Fixture.steady()
        _ = fixture.feed(Fixture.query(1))
        _ = fixture.feed(.bootstrap(Self.id, Fixture.part(1, at: 3, isLast: false)))
        _ = fixture.feed(Fixture.query(2))
        #expect(
            fixture.feed(.queryFailed(Self.id, queryVersion: 2, "no"))
                == ["query error 2", "superseded 2", "store begin 1", "build 1 full"])
        #expect(fixture.feed(.bootstrap(Self.id, Fixture.part(1, at: 4))) == ["store view 1 at 4", "last 4/0 ack 0 [4]"])
        // The same for a view that was being built again.
        _ = fixture.feed(.permissionsChanged(Self.id))
        _ = fixture.feed(.bootstrap(Self.id, Fixture.part(1, at: 5, isLast: false)))
        _ = fixture.feed(Fixture.query(3))
        #expect(
            fixture.feed(.queryFailed(Self.id, queryVersion: 3, "no"))
                == ["query error 3", "superseded 3", "store begin 1", "build 1 full"])
    }

    @Test func `report a refused set that a newer one has superseded`() {
        var fixture = Fixture.steady()
        _ = fixture.feed(Fixture.query(1))
        _ = fixture.feed(Fixture.query(2))
        #expect(fixture.feed(.queryFailed(Self.id, queryVersion: 1, "no")) == ["query error 1"])
        #expect(fixture.feed(.bootstrap(Self.id, Fixture.part(2, at: 3))) == ["store view 2 at 3", "last 3/0 ack 0 [3]"])
        // A query error for a set that is gone ends the client's process.
        #expect(fixture.feed(.queryFailed(Self.id, queryVersion: 1, "no")).isEmpty)
    }

    @Test func `refuse a set that is too large and keep the present one`() {
        var fixture = Fixture.steady(RealmConnectionSettings(version: 14, salt: 77, queryBytes: 8))
        #expect(fixture.feed(Fixture.query(1)) == ["query error 1"])
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(3)])) == ["download 3/0 ack 0 [3]"])
    }

    @Test func `hold changes back during a bootstrap and skip those that it covers`() {
        var fixture = Fixture.steady()
        _ = fixture.feed(Fixture.query(1))
        let entries = [Fixture.entry(3), Fixture.entry(4, undoes: true), Fixture.entry(5), Fixture.entry(6)]
        #expect(fixture.feed(.append(Self.id, entries)).isEmpty)
        #expect(
            fixture.feed(.bootstrap(Self.id, Fixture.part(1, at: 4)))
                == ["store view 1 at 4", "last 4/0 ack 0 [4]", "error 231 Warning", "download 6/0 ack 0 [5, 6]"])
    }

    @Test func `are built again for new permissions, in old versions by a client reset`() {
        var fixture = Fixture.steady()
        #expect(fixture.feed(.permissionsChanged(Self.id)) == ["store begin 0", "build 0"])
        #expect(fixture.feed(.bootstrap(Self.id, Fixture.part(0, at: 3, isLast: false))) == ["more 3/0 ack 0 [3]"])
        // The client has parts of the first attempt, so the second must erase them.
        #expect(fixture.feed(.permissionsChanged(Self.id)) == ["superseded 0", "store begin 0", "build 0 full"])
        #expect(fixture.feed(.bootstrap(Self.id, Fixture.part(0, at: 4))) == ["store view 0 at 4", "last 4/0 ack 0 [4]"])
        var old = Fixture.steady(RealmConnectionSettings(version: 13, salt: 77))
        #expect(old.feed(.permissionsChanged(Self.id)) == ["error 228 ClientReset", "release"])
    }

    // MARK: Marks

    @Test func `answer the newest mark alone, after the changes before it`() {
        var fixture = Fixture.steady()
        #expect(fixture.feed(.mark(session: 1, request: 1)) == ["catch 1"])
        #expect(fixture.feed(.mark(session: 1, request: 4)) == ["catch 4"])
        #expect(fixture.feed(.caughtUp(Self.id, request: 1)).isEmpty)
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(3)])) == ["download 3/0 ack 0 [3]"])
        #expect(fixture.feed(.caughtUp(Self.id, request: 4)) == ["mark 4"])
        #expect(fixture.feed(.caughtUp(Self.id, request: 4)).isEmpty)
        #expect(fixture.feed(.mark(session: 1, request: 4)).first == "error 109 Transient")
    }

    @Test func `answer no mark after an error`() {
        var fixture = Fixture.steady()
        _ = fixture.feed(.mark(session: 1, request: 1))
        _ = fixture.feed(.failed(Self.id, SluiceError(.timeout, "late")))
        #expect(fixture.feed(.caughtUp(Self.id, request: 1)).isEmpty)
        #expect(fixture.feed(.unbind(session: 1)).isEmpty)
        // The number is free again.
        #expect(fixture.feed(Fixture.bind()).isEmpty)
    }
}
