import Foundation
import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization
import TestSupport
import Testing

@testable import SluiceSDK

/// A session and what its engine says, in whatever order it comes.
@Suite(.timeLimit(.minutes(1))) struct SessionStateTests {
    let folder: TemporaryFolder
    let server: CannedServer
    let user: User

    init() async throws {
        folder = try TemporaryFolder()
        // It logs in, and knows nothing of sync.
        server = try CannedServer { _ in
            .init(status: 200, body: #"{"access_token":"h.e30.s","refresh_token":"refresh","user_id":"ann","device_id":"d"}"#)
        }
        let app = App(id: "shop", configuration: AppConfiguration(baseURL: server.url, storageDirectory: folder.url))
        user = try await app.login(credentials: .emailPassword(email: "ann@example.com", password: "secret"))
    }

    private func open(_ mode: ClientResetMode = .manual()) throws -> Realm {
        var configuration = user.flexibleSyncConfiguration(clientResetMode: mode)
        configuration.objectTypes = [Task.self, Team.self, Reading.self]
        return try Realm(configuration: configuration)
    }

    private func session(_ realm: Realm) throws -> SluiceSDK.SyncSession { try #require(realm.syncSession) }

    /// A session whose engine does not run, so that none says anything but the test.
    private func silentSession(_ realm: Realm) throws -> SluiceSDK.SyncSession {
        let sync = try #require(realm.configuration.syncConfiguration)
        return SluiceSDK.SyncSession(replica: realm.core.file.replica, configuration: realm.configuration, sync: sync)
    }

    /// The steps of the download that is outstanding, up to its end, while the token lives.
    private func downloading(
        _ session: SluiceSDK.SyncSession
    ) -> (steps: AsyncStream<Double>, token: SluiceSDK.SyncSession.ProgressNotificationToken?) {
        let (steps, continuation) = AsyncStream<Double>.makeStream(bufferingPolicy: .bufferingOldest(16))
        let token = session.addProgressNotification(for: .download, mode: .forCurrentlyOutstandingWork) { step in
            continuation.yield(step.progressEstimate)
            if step.isTransferComplete { continuation.finish() }
        }
        return (steps, token)
    }

    /// Collects from any thread.
    private final class Heard<Element: Sendable>: Sendable {
        private let all = Mutex<[Element]>([])
        var elements: [Element] { all.withLock { $0 } }
        func add(_ element: Element) { all.withLock { $0.append(element) } }
    }

    @Test func `an end that is told after the app has resumed does not leave the session inactive`() throws {
        let session = try silentSession(open())
        defer { session.close() }
        let error = SluiceError(.badAuthentication, "revoked")
        session.resume()
        session.take(.stopped(error))
        #expect(session.state == .inactive && session.connectionState == .disconnected)
        session.take(.resumed)
        session.take(.connection(.connected))
        #expect(session.state == .active && session.connectionState == .connected)
        // A suspension is the app's, which the engine does not end.
        session.suspend()
        session.take(.resumed)
        session.take(.connection(.connected))
        #expect(session.state == .inactive && session.connectionState == .disconnected)
    }

    @Test func `observers of the connection hear each change once, in order, until the session ends`() async throws {
        typealias Change = SluiceSDK.SyncSession.ConnectionChange
        let session = try silentSession(open())
        let (changes, continuation) = AsyncStream<Change>.makeStream()
        let token = session.observe(\.connectionState, options: [.initial, .new]) { _, change in continuation.yield(change) }
        let ended = session.observe(\.connectionState) { _, _ in Issue.record("The token has been invalidated.") }
        ended.invalidate()
        session.resume()
        session.take(.connection(.connecting))
        session.take(.connection(.connecting))
        session.take(.connection(.connected))
        session.suspend()
        session.take(.connection(.connected))
        var heard: [Change] = []
        for await change in changes {
            heard.append(change)
            if heard.count == 4 { break }
        }
        #expect(
            heard == [
                Change(oldValue: nil, newValue: .disconnected), Change(oldValue: .disconnected, newValue: .connecting),
                Change(oldValue: .connecting, newValue: .connected), Change(oldValue: .connected, newValue: .disconnected),
            ])
        token.invalidate()

        // A stream has the newest state, and ends with the session.
        session.resume()
        session.take(.connection(.connecting))
        var states = session.connectionStates.makeAsyncIterator()
        #expect(await states.next() == .connecting)
        session.take(.connection(.connected))
        #expect(await states.next() == .connected)
        session.close()
        #expect(await states.next() == .disconnected)
        #expect(await states.next() == nil)
        var late = session.connectionStates.makeAsyncIterator()
        #expect(await late.next() == .disconnected)
        #expect(await late.next() == nil)
    }

    @Test func `a session that is over stays so`() throws {
        let realm = try open()
        let session = try session(realm)
        session.close()
        session.take(.stopped(SluiceError(.badAuthentication, "revoked")))
        session.suspend()
        session.resume()
        #expect(session.state == .invalid && session.connectionState == .disconnected && session.configuration() == nil)
    }

    @Test func `the handler of a client reset finds the session stopped, and can resume it`() throws {
        let states = Heard<SluiceSDK.SyncSession.State>()
        let realm = try open(
            .manual { _, session in
                if let session { states.add(session.state) }
                session?.resume()
            })
        let session = try session(realm)
        session.take(.clientReset(SluiceError(.badClientFile, "restored")))
        #expect(states.elements == [.inactive] && session.state == .active)
    }

    @Test func `a wait ends when the user logs out`() async throws {
        let realm = try open()
        let session = try session(realm)
        for direction in [SluiceSDK.SyncSession.ProgressDirection.download, .upload] {
            for _ in 0..<10 {
                let (begun, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
                let waiting = _Concurrency.Task {
                    continuation.finish()
                    try await session.wait(for: direction)
                }
                for await _ in begun {}
                try await user.logOut()
                let error = await #expect(throws: SyncError.self) { try await waiting.value }
                #expect(error?.code == .clientUserError)
                _ = try await user.app.login(credentials: .emailPassword(email: "ann@example.com", password: "secret"))
            }
        }
    }

    @Test func `refused writes that nobody hears of are not taken for told`() throws {
        let realm = try open()
        let session = try session(realm)
        let object = ObjectKey(type: "Task", key: .string("t1"))
        let refused = SyncReport.refused([CompensatingWrite(object: object, code: 231, reason: "not yours")])
        #expect(!session.take(refused))
        let heard = Heard<String>()
        user.app.syncManager.errorHandler = { error, _ in heard.add("\(error)") }
        #expect(session.take(refused) && heard.elements.count == 1)
        session.close()
        #expect(!session.take(refused) && heard.elements.count == 1)
    }

    @Test func `the progress of a download comes to its end when the server refuses the set`() async throws {
        let realm = try open()
        let session = try session(realm)
        try await realm.objects(Task.self).subscribe(name: "bad", waitForSync: .never)
        let (steps, token) = downloading(session)
        session.take(.setRefused(version: 1, SluiceError(.querySyntax, "bad"), isLast: true))
        #expect(await steps.reduce(into: []) { $0.append($1) } == [1])
        withExtendedLifetime(token) {}
    }

    @Test func `a refused set ends the progress of none that is on its way`() async throws {
        let realm = try open()
        let session = try session(realm)
        try await realm.objects(Task.self).subscribe(name: "large", waitForSync: .never)
        let (steps, token) = downloading(session)
        session.take(.downloading(version: 1, rows: 5, expected: 10))
        session.take(.setRefused(version: 2, SluiceError(.querySyntax, "bad"), isLast: false))
        session.take(.downloading(version: 1, rows: 10, expected: 10))
        session.take(.downloaded(version: 1))
        #expect(await steps.reduce(into: []) { $0.append($1) } == [0.45, 0.9, 1])
        withExtendedLifetime(token) {}
    }

    @Test func `the end of an older set does not end the progress of the newest`() async throws {
        let realm = try open()
        let session = try session(realm)
        for name in ["first", "second"] { try await realm.objects(Task.self).subscribe(name: name, waitForSync: .never) }
        let (steps, token) = downloading(session)
        session.take(.downloading(version: 1, rows: 5, expected: 10))
        session.take(.downloaded(version: 1))
        session.take(.downloading(version: 2, rows: 5, expected: 10))
        session.take(.downloaded(version: 2))
        #expect(await steps.reduce(into: []) { $0.append($1) } == [0.45, 0.99, 1])
        withExtendedLifetime(token) {}
    }

    @Test func `the progress of a set that is refused is over when what is on its way has come`() async throws {
        let realm = try open()
        let session = try session(realm)
        for name in ["large", "bad"] { try await realm.objects(Task.self).subscribe(name: name, waitForSync: .never) }
        let (steps, token) = downloading(session)
        session.take(.downloading(version: 1, rows: 5, expected: 10))
        session.take(.setRefused(version: 2, SluiceError(.querySyntax, "bad"), isLast: false))
        session.take(.downloaded(version: 1))
        #expect(await steps.reduce(into: []) { $0.append($1) } == [0.45, 1])
        withExtendedLifetime(token) {}
    }

    @Test func `the progress of an upload comes to its end with asymmetric objects`() async throws {
        let realm = try open()
        let session = try session(realm)
        try realm.write { realm.create(Reading.self, value: ["celsius": 20.5]) }
        let (steps, continuation) = AsyncStream<SluiceSDK.SyncSession.Progress>.makeStream(bufferingPolicy: .bufferingOldest(16))
        let token = session.addProgressNotification(for: .upload, mode: .forCurrentlyOutstandingWork) { step in
            continuation.yield(step)
            if step.isTransferComplete { continuation.finish() }
        }
        var told = steps.makeAsyncIterator()
        let first = await told.next()
        #expect(first?.progressEstimate == 0 && first?.transferredBytes == 0)
        let bytes = try #require(first?.transferrableBytes)
        #expect(bytes > 0)
        let replica = _replica(of: realm)
        let batch = try #require(try await replica.pendingIngest(after: 0))
        try await replica.acknowledgeIngest(upTo: batch.number)
        session.take(.ingested(batch.number))
        let last = await told.next()
        #expect(last?.progressEstimate == 1 && last?.transferredBytes == bytes && last?.transferrableBytes == bytes)
        withExtendedLifetime(token) {}
    }

    @Test func `the progress of an upload comes to its end when what is outstanding is taken back`() async throws {
        let realm = try open()
        let session = try session(realm)
        try realm.write { realm.create(Reading.self, value: ["celsius": 20.5]) }
        let (steps, continuation) = AsyncStream<Double>.makeStream(bufferingPolicy: .bufferingOldest(16))
        let token = session.addProgressNotification(for: .upload, mode: .forCurrentlyOutstandingWork) { step in
            continuation.yield(step.progressEstimate)
            if step.isTransferComplete { continuation.finish() }
        }
        var told = steps.makeAsyncIterator()
        #expect(await told.next() == 0)
        let replica = _replica(of: realm)
        let batch = try #require(try await replica.pendingIngest(after: 0))
        var cut = IngestCut(batch: batch.number)
        cut.dropped = [0]
        cut.refused = batch.objects.map { CompensatingWrite(changeset: batch.number, object: $0.object, code: 803, reason: "too large") }
        let report = try #require(try await replica.shortenIngest(cut))
        session.take(.refused(report.writes))
        #expect(await told.next() == 1)
        withExtendedLifetime(token) {}
    }

    // MARK: Logging in and out

    private func logIn() async throws {
        _ = try await user.app.login(credentials: .emailPassword(email: "ann@example.com", password: "secret"))
    }

    @Test func `a login goes on with what the log-out ended, and not with what the app has suspended`() async throws {
        let realm = try open()
        let session = try session(realm)
        try await user.logOut()
        #expect(session.state == .inactive)
        try await logIn()
        #expect(session.state == .active)
        session.suspend()
        try await logIn()
        #expect(session.state == .inactive)
        try await user.logOut()
        try await logIn()
        #expect(session.state == .inactive)
        session.resume()
        #expect(session.state == .active)
        // What the app wants while nobody is logged in comes with the login.
        session.suspend()
        try await user.logOut()
        session.resume()
        #expect(session.state == .inactive)
        try await logIn()
        #expect(session.state == .active)
    }

    @Test func `a Realm that is opened by somebody who is logged out waits for nothing, and begins with the login`() async throws {
        try await user.logOut()
        let realm = try open()
        let session = try session(realm)
        #expect(session.state == .inactive)
        let tasks = realm.objects(Task.self)
        func fails(_ wait: () async throws -> Void) async {
            let error = await #expect(throws: SyncError.self) { try await wait() }
            #expect(error?.code == .clientUserError)
        }
        await fails { try await tasks.subscribe() }
        for seconds in [Double.infinity, .greatestFiniteMagnitude, .nan, 1e10] {
            await fails { try await tasks.subscribe(name: "\(seconds)", timeout: seconds) }
            await fails { try await realm.waitUntilSynced(timeout: seconds) }
        }
        let set = realm.subscriptions
        await fails { try await set.update { set.append(QuerySubscription<Team>()) } }
        let (answers, answer) = AsyncStream<(any Error)?>.makeStream(bufferingPolicy: .bufferingOldest(1))
        update(set) { answer.yield($0) }
        for await error in answers {
            #expect((error as? SyncError)?.code == .clientUserError)
            break
        }
        #expect(realm.subscriptions.state == .pending)
        try await logIn()
        #expect(session.state == .active)
        let late = await #expect(throws: NSError.self) { _ = try await realm.waitUntilSynced(timeout: 0.01) }
        #expect(late?.code == Int(ETIMEDOUT))
    }

    // In async code the same words mean the call that waits.
    private func update(_ set: SyncSubscriptionSet, _ onComplete: @escaping @Sendable ((any Error)?) -> Void) {
        set.update({ set.append(QuerySubscription<Team>(name: "teams")) }, onComplete: onComplete)
    }

    @Test func `a session that is suspended before it begins stays so`() throws {
        var configuration = user.flexibleSyncConfiguration(
            initialSubscriptions: { [user] subscriptions in
                subscriptions.append(QuerySubscription<Task>(name: "all"))
                for session in user.allSessions { session.suspend() }
            })
        configuration.objectTypes = [Task.self, Team.self, Reading.self]
        let realm = try Realm(configuration: configuration)
        let session = try session(realm)
        #expect(session.state == .inactive)
        session.resume()
        #expect(session.state == .active)
    }

    // MARK: What the app is told, and may ask for

    @Test func `a warning of the server reaches the error handler as one`() throws {
        let realm = try open()
        let session = try session(realm)
        let heard = Heard<SyncError.Code?>()
        user.app.syncManager.errorHandler = { error, _ in heard.add((error as? SyncError)?.code) }
        session.take(.warning(SluiceError(.limitsExceeded, "Transaction 7 is too large.")))
        #expect(heard.elements == [.serverWarning] && session.state == .active)
    }

    @Test func `the error of a client reset has where the file will be, and the token, by RealmSwift's keys`() throws {
        let realm = try open()
        let session = try session(realm)
        let heard = Heard<SyncError>()
        user.app.syncManager.errorHandler = { error, _ in if let error = error as? SyncError { heard.add(error) } }
        session.take(.clientReset(SluiceError(.badClientFile, "restored")))
        let error = try #require(heard.elements.first)
        let (backup, token) = try #require(error.clientResetInfo())
        #expect(error.userInfo["recovered_realm_location_path"] as? String == backup)
        #expect(error.userInfo["error_action_token"] as? SyncError.ActionToken == token)
        #expect((error as NSError).userInfo["recovered_realm_location_path"] as? String == backup)
    }

    @Test func `the older name of discarding is the same mode`() {
        guard case .discardUnsyncedChanges(_?, _?) = (OlderApp.self as any AppOfAnyAge.Type).mode else {
            Issue.record("it is another")
            return
        }
    }

    @Test(arguments: [SluiceSDK.SyncSession.ProgressDirection.download, .upload])
    func `a wait without async ends on the queue that it is given`(direction: SluiceSDK.SyncSession.ProgressDirection) async throws {
        let realm = try open()
        let session = try session(realm)
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "waiting")
        queue.setSpecific(key: key, value: true)
        let (answers, answer) = AsyncStream<(isThere: Bool, code: SyncError.Code?)>.makeStream(bufferingPolicy: .bufferingOldest(1))
        session.wait(for: direction, queue: queue) { error in
            answer.yield((DispatchQueue.getSpecific(key: key) == true, (error as? SyncError)?.code))
        }
        try await user.logOut()
        for await (isThere, code) in answers {
            #expect(isThere && code == .clientUserError)
            break
        }
        withExtendedLifetime(realm) {}
    }

    @Test func `the app may have it tried again at once, whatever the pauses have come to`() async throws {
        func attempts() -> Int { server.requests.filter { $0.headers["upgrade"] != nil }.count }
        let realm = try open()
        let session = try session(realm)
        // By themselves eight attempts take the pauses of 1, 2, … 64 seconds, less a quarter.
        let isTried = try await eventually(within: .seconds(50)) {
            session.reconnect()
            return attempts() >= 8
        }
        #expect(isTried, "\(attempts())")
        withExtendedLifetime(realm) {}
    }

    // MARK: The file of a client reset

    /// Without waiting for the server: the file is new when it has been moved, and only then.
    @Test func `a file that is set aside at the opening is a new one for who waits once`() async throws {
        var configuration = user.flexibleSyncConfiguration(clientResetMode: .manual())
        configuration.objectTypes = [Task.self, Team.self, Reading.self]
        let path = try #require(configuration.fileURL?.path)
        do { _ = try open() }
        try await user.logOut()
        do { _ = try await Realm(configuration: configuration, downloadBeforeOpen: .once) }
        let token = SyncError.ActionToken(path: path, backup: ClientResetBackup.backup(of: path))
        ClientResetBackup.ask(token)
        let shared = configuration
        let error = await #expect(throws: SyncError.self) { _ = try await Realm(configuration: shared, downloadBeforeOpen: .once) }
        #expect(error?.code == .clientUserError && FileManager.default.fileExists(atPath: token.backup))
    }

    @Test(arguments: [false, true])
    func `a file that the server knows again stays, unless the app has asked for it to be moved`(isAsked: Bool) throws {
        let heard = Heard<SyncError>()
        do {
            let realm = try open(.manual { error, _ in if let error = error as? SyncError { heard.add(error) } })
            let session = try session(realm)
            session.take(.clientReset(SluiceError(.badClientFile, "restored")))
            let (_, token) = try #require(heard.elements.first?.clientResetInfo())
            if isAsked { SluiceSDK.SyncSession.immediatelyHandleError(token) }
            session.resume()
            // Without a download: it may have no subscriptions.
            session.take(.connection(.connected))
        }
        let (backup, _) = try #require(heard.elements.first?.clientResetInfo())
        _ = try open()
        #expect(FileManager.default.fileExists(atPath: backup) == isAsked)
    }

    /// SQLite's last connection deletes the log by its name when it closes, also when a new file has the name by then. It looks whether its
    /// file has moved, but before it copies the log into it.
    @Test(arguments: [false, true])
    func `a file that is let go of while it is moved or deleted takes nothing of the new one with it`(isMoved: Bool) async throws {
        let schema = SluiceCore.Schema([ModelSchema.of(Task.self).objectType(isSynced: true)])
        for round in 0..<100 {
            let path = folder.url.appendingPathComponent("file\(round)").path
            let backup = ClientResetBackup.backup(of: path)
            let old = Mutex<SluiceReplica.Replica?>(try SluiceReplica.Replica(path: path, schema: schema))
            async let closed: Void = old.withLock { $0 = nil }
            if isMoved { try ClientResetBackup.move(path, to: backup) } else { _ = try RealmFiles.removeUnlessOpen(path) }
            let new = try SluiceReplica.Replica(path: path, schema: schema)
            await closed
            // Another connection reads what the first has written.
            #expect(try new.currentSubscriptionSet().version == 0)
            for ending in ["", "-wal", "-shm"] { #expect(FileManager.default.fileExists(atPath: path + ending), "\(round)\(ending)") }
        }
    }

    private func token(of name: String) throws -> SyncError.ActionToken {
        let path = folder.url.appendingPathComponent(name).path
        try Data("rows".utf8).write(to: URL(fileURLWithPath: path))
        return SyncError.ActionToken(path: path, backup: ClientResetBackup.backup(of: path))
    }

    @Test func `a file that is another user's is moved at once when that one asks for it and nobody has it open`() throws {
        let token = try token(of: "file")
        ClientResetBackup.note(token, user: "shop/bob")
        SluiceSDK.SyncSession.immediatelyHandleError(token)
        #expect(!FileManager.default.fileExists(atPath: token.path) && FileManager.default.fileExists(atPath: token.backup))
    }

    @Test(arguments: [false, true], [false, true])
    func `a file that is another user's is moved by that one's opening alone, asked for or not`(isOwnersFirst: Bool, isAsked: Bool) throws {
        let token = try token(of: "file")
        let path = token.path
        ClientResetBackup.note(token, user: "shop/bob")
        if isAsked { ClientResetBackup.ask(token) }
        if isOwnersFirst { try ClientResetBackup.performNoted(path, for: "shop/ann") }
        try ClientResetBackup.performNoted(path, for: "shop/bob")
        #expect(FileManager.default.fileExists(atPath: path) == isOwnersFirst)
        #expect(FileManager.default.fileExists(atPath: token.backup) != isOwnersFirst)
    }

    @Test func `a reset that could not be stored keeps no file open`() throws {
        let configuration: Realm.Configuration
        do {
            let realm = try open(.discardUnsyncedChanges())
            configuration = realm.configuration
            let session = try session(realm)
            session.reset.take(.before)
            session.reset.take(.failed)
        }
        #expect(try Realm.deleteFiles(for: configuration))
    }
}

/// The app's mode, asked for without the warning that it is named by its older name.
private protocol AppOfAnyAge {
    static var mode: ClientResetMode { get }
}

private enum OlderApp: AppOfAnyAge {
    @available(*, deprecated)
    static var mode: ClientResetMode { .discardLocal(beforeReset: { _ in }, afterReset: { _, _ in }) }
}
