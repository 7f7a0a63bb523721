import RealmTestSupport
import SluiceCore
import SluicePorts
import Testing

@testable import SluiceRealm

/// A running connection with its doubles. The messages and situations are those of `ConnectionFixture`.
struct ConnectionRun {
    let journal: Journal
    let time: ManualTime
    let views: JournalViews
    let observer: CountingObserver
    let connection: RealmConnection

    /// The choices of a test.
    struct Setup {
        var settings = RealmConnectionSettings(version: 14, salt: 77)
        var record = RealmClientRecord(file: ConnectionFixture.file)
        var entries: [RealmStreamEntry] = []
        /// The server versions of uploads.
        var versions: [UInt64: UInt64] = [:]
        var rejected: [RealmRejectedUpdate] = []
        /// The changeset before the last one of each upload.
        var previous: UInt64 = 0
        var mailbox = RealmMailboxBounds()
        /// The newest version of the server.
        var newest: UInt64 = 2
        /// `true` if the views need no upload for a confirmation.
        var confirms = false
    }

    /// Every duration is another one, so that a test can wait for one sleep.
    static let waits = RealmConnectionWaits(allot: 1_001, open: 1_002, store: 1_003, view: 1_004, integrate: 1_005)

    init(_ setup: Setup = Setup()) {
        journal = Journal()
        time = ManualTime()
        views = JournalViews(journal, newest: setup.newest, confirms: setup.confirms)
        observer = CountingObserver()
        var services = RealmConnectionServices(
            store: JournalStore(journal: journal, record: setup.record, entries: setup.entries), views: views,
            writes: JournalWrites(journal: journal, versions: setup.versions, rejected: setup.rejected, previous: setup.previous),
            coding: RealmCodec(compression: RunLengthCompression()), environment: time)
        services.observer = observer
        services.waits = Self.waits
        services.mailbox = setup.mailbox
        connection = RealmConnection(setup.settings, user: "anna", services: services, sink: JournalSink(journal))
    }

    /// Runs a connection, ends it behind the body, and checks that nothing of it remains.
    static func with(_ setup: Setup = Setup(), _ body: (ConnectionRun) async throws -> Void) async throws {
        let run = ConnectionRun(setup)
        try await withThrowingTaskGroup(of: Void.self) { group in
            let connection = run.connection
            group.addTask { await connection.run() }
            // Before the error of a body is thrown, as the group waits for the connection.
            defer { connection.end(.disconnected) }
            try await body(run)
            connection.end(.disconnected)
            try await group.waitForAll()
        }
        #expect(await run.connection.taskCount == 0)
        #expect(await run.connection.sessionCounts.all == 0)
        #expect(run.observer.counts.sessions == 0)
    }

    func receive(_ messages: RealmClientMessage...) throws {
        let codec = RealmCodec(compression: RunLengthCompression())
        for message in messages { connection.received(try codec.encode(message)) }
    }

    // MARK: Situations

    /// Opens session 1, up to the building of its first view.
    func open() async throws -> JournalView {
        try receive(ConnectionFixture.bind(), ConnectionFixture.ident())
        #expect(await journal.through("build 0 full schema") == ["open 2", "views 2", "begin 0", "build 0 full schema"])
        return try #require(await views.next())
    }

    /// Opens session 1, with the view of query version 0 at version 2 and the object `task`.
    func steady() async throws -> JournalView {
        let view = try await open()
        view.yield(.part(ConnectionFixture.part(0, at: 2, [[.create(ConnectionFixture.task)]])))
        #expect(await journal.through("1: last 2/0 ack 0 [2]") == ["view 0 at 2", "1: last 2/0 ack 0 [2]"])
        return view
    }
}
