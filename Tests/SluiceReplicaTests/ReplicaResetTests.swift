import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import Testing

/// A file whose server side begins anew.
@Suite struct ReplicaResetTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A file with a row of the server's, a write and a new object of the app's own, and an asymmetric object.
    private func file() async throws -> Replica {
        let replica = try await Replica.make(folder)
        try await replica.setIdentity(ReplicaIdentity(client: ClientID(rawValue: 7), secret: [1]))
        try await replica.apply(batch(5, put: [todo(1, "server's")]))
        try replica.rename(1, "mine")
        try replica.create(2, "new")
        try replica.write { try $0.create(type: 1, key: .int(1), values: ["celsius": .double(20)]) }
        return replica
    }

    @Test func `is the user's who opened it first, also one who was never in a session, until it is given up or copied`() async throws {
        func open(_ owner: String?, at path: String? = nil) throws -> Replica {
            try Replica(
                path: path ?? folder.file, schema: testSchema, options: ReplicaOptions(owner: owner), environment: TestEnvironment())
        }
        func isForeign(_ owner: String?, at path: String? = nil) async throws -> Bool { try await open(owner, at: path).isForeign() }
        let anns = try open("ann")
        let version = try anns.addSubscriptionSet([subscription("Todo", "TRUEPREDICATE")])
        try await anns.setSubscriptionState(version: version, .complete)
        try anns.create(2, "new")
        let copy = folder.file + ".copy"
        try anns.writeCopy(to: copy)
        let (own, nobodys) = (try await isForeign("ann"), try await isForeign(nil))
        #expect(!own && !nobodys)
        let bobs = try open("bob")
        #expect(try await bobs.identity() == nil)
        #expect(try await bobs.isForeign())
        // A reset of his that keeps writes leaves them hers.
        try await bobs.forgetServer(reset: .recover)
        #expect(try await bobs.isForeign())
        try await bobs.forgetServer(reset: .disown)
        let (his, hers) = (try await isForeign("bob"), try await isForeign("ann"))
        #expect(!his && hers)
        // A copy is whose who opens it.
        let (first, second) = (try await isForeign("eve", at: copy), try await isForeign("ann", at: copy))
        #expect(!first && second)
    }

    private func bootstrap(_ replica: Replica) async throws {
        try await replica.beginBootstrap(version: 1)
        var buffer = RowBuffer()
        let row = buffer.append(todo(1, "restored"))
        try await replica.stage(type: 0, rows: [row], of: buffer)
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 9), types: [0])
    }

    @Test(arguments: [
        (ReplicaReset.discard, [1: "restored"]), (.recover, [1: "mine", 2: "new"]), (.disown, [1: "restored"]),
    ])
    func `shows what there was until the server's state is there, and keeps subscriptions and its user's asymmetric objects`(
        reset: ReplicaReset, shown: [Int64: String]
    ) async throws {
        let replica = try await file()
        let set = try replica.currentSubscriptionSet()
        try await replica.forgetServer(reset: reset)
        #expect(try replica.titles() == [1: "mine", 2: "new"])
        #expect(try await replica.identity() == nil)
        #expect(
            try replica.currentSubscriptionSet() == StoredSubscriptionSet(version: 1, state: .pending, subscriptions: set.subscriptions))
        try await bootstrap(replica)
        #expect(try replica.titles() == shown)
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: .max).map(\.number) == (reset == .recover ? [1, 2] : []))
        #expect(try replica.currentSubscriptionSet().subscriptions == set.subscriptions)
        #expect(try await replica.pendingIngest(after: 0)?.objects.map(\.object.key) == (reset == .disown ? nil : [.int(1)]))
        #expect(try await replica.resetUnderWay() == (nil, 0))
    }

    /// The app is shown the file as it was when the reset is about to happen, which may be long after the error.
    @Test(arguments: [(ReplicaReset.discard, [1: "restored"]), (.recover, [1: "restored", 2: "new"])])
    func `shows what the old server had taken until the new one's state is there, and does not send it again`(
        reset: ReplicaReset, shown: [Int64: String]
    ) async throws {
        do {
            let replica = try await file()
            try await replica.acknowledgeUpload(upTo: 1, lsn: LSN(rawValue: 100))
            try await replica.forgetServer(reset: reset)
        }
        // Once more, as when the gateway goes away again before it has sent everything.
        let replica = try open()
        try await replica.forgetServer(reset: reset)
        #expect(try replica.titles() == [1: "mine", 2: "new"])
        func pending() async throws -> [Changeset] { try await replica.pendingChangesets(after: 0, maximumBytes: .max) }
        #expect(try await pending().flatMap(\.changes).map(\.object.key) == [.int(2)])
        try replica.create(3, "meanwhile")
        try await bootstrap(replica)
        let isRecovered = reset == .recover
        #expect(try replica.titles() == (isRecovered ? shown.merging([3: "meanwhile"]) { $1 } : shown))
        #expect(try await pending().map(\.number) == (isRecovered ? [1, 2] : []))
        #expect(try await pending().flatMap(\.changes).map(\.object.key) == (isRecovered ? [.int(2), .int(3)] : []))
        try replica.create(4, "later")
        #expect(try await pending().map(\.number) == (isRecovered ? [1, 2, 3] : [1]))
    }

    @Test func `has what is recovered written anew: in the same order, and later than what the gateway has by then`() async throws {
        let replica = try await file()
        try await replica.forgetServer(reset: .recover)
        let gateway = SystemEnvironment().wallMilliseconds() + 60_000
        try await replica.observe(gateway)
        try await bootstrap(replica)
        let recovered = try await replica.pendingChangesets(after: 0, maximumBytes: .max)
        #expect(recovered.map(\.number) == [1, 2] && recovered.allSatisfy { $0.base == LSN(rawValue: 8) })
        #expect(HybridTime(milliseconds: gateway) < recovered[0].time && recovered[0].time < recovered[1].time)
    }

    @Test func `is known and counted after the program has ended, until one has succeeded`() async throws {
        _ = try await file()
        for count in 1...3 as ClosedRange<UInt64> {
            try await open().forgetServer(reset: .discard)
            let replica = try open()
            #expect(try await replica.resetUnderWay() == (.discard, count))
            #expect(try replica.titles() == [1: "mine", 2: "new"], "nothing is lost before the server's state is there")
        }
        let replica = try open()
        try await bootstrap(replica)
        #expect(try await replica.resetUnderWay() == (nil, 0))
        #expect(try replica.titles() == [1: "restored"])
    }

    private func open() throws -> Replica { try Replica(path: folder.file, schema: testSchema, environment: TestEnvironment()) }
}
