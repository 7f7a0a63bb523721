import Dispatch
import Foundation
import SluiceCore
import SluiceReplica
import Synchronization
import TestSupport
import Testing

@testable import SluiceSDK

/// The numbers and names that RealmSwift gives errors, and what the server's errors become.
@Suite struct SyncErrorTests {
    @Test func `codes and domains have RealmSwift's numbers and names`() {
        let realm: [Realm.Error.Code: Int] = [
            .fail: 1, .fileAccess: 2, .filePermissionDenied: 3, .fileExists: 4, .fileNotFound: 5, .fileFormatUpgradeRequired: 6,
            .incompatibleLockFile: 8, .addressSpaceExhausted: 9, .schemaMismatch: 10, .alreadyOpen: 12, .invalidInput: 13,
            .outOfDiskSpace: 14, .incompatibleSession: 15, .unsupportedFileFormatVersion: 16, .multipleSyncAgents: 17,
            .subscriptionFailed: 18, .fileOperationFailed: 19, .invalidDatabase: 20, .incompatibleHistories: 21,
            .noSubscriptionForWrite: 22,
        ]
        for (code, number) in realm { #expect(code.rawValue == number) }
        let sync: [SyncError.Code: Int] = [
            .clientSessionError: 4, .clientUserError: 5, .clientInternalError: 6, .clientResetError: 7, .underlyingAuthError: 8,
            .permissionDeniedError: 9, .invalidFlexibleSyncSubscriptions: 10, .writeRejected: 11, .connectionFailed: 12,
            .tlsHandshakeFailed: 13, .serverWarning: 14,
        ]
        for (code, number) in sync { #expect(code.rawValue == number) }
        let app: [AppError.Code] = [
            .unknown, .httpRequestFailed, .invalidSession, .badRequest, .userNotFound, .userAppDomainMismatch, .domainNotAllowed,
            .readSizeLimitExceeded, .invalidParameter, .missingParameter, .functionExecutionError, .internalServerError,
            .authProviderNotFound, .valueNotFound, .valueAlreadyExists, .valueDuplicateName, .functionNotFound, .functionSyntaxError,
            .functionInvalid, .apiKeyAlreadyExists, .executionTimeLimitExceeded, .notCallable, .userAlreadyConfirmed, .userDisabled,
            .authError, .accountNameInUse, .invalidPassword, .maintenanceInProgress, .mongoDBError,
        ]
        #expect(app.map(\.rawValue) == [-1] + Array(1...28))
        #expect(Realm.Error.errorDomain == "io.realm" && SyncError.errorDomain == "io.realm.sync" && AppError.errorDomain == "io.realm.app")
    }

    @Test(arguments: [
        (ErrorCode.permissionDenied, SyncError.Code.permissionDeniedError), (.tokenExpired, .clientUserError),
        (.badAuthentication, .clientUserError), (.invalidSession, .clientUserError), (.userDisabled, .clientUserError),
        (.badClientFile, .clientResetError), (.userMismatch, .clientResetError), (.connectionFailed, .connectionFailed),
        (.timeout, .connectionFailed), (.tlsHandshakeFailed, .tlsHandshakeFailed),
        (.queryNotQueryable, .invalidFlexibleSyncSubscriptions), (.queryIndexedFieldMissing, .invalidFlexibleSyncSubscriptions),
        (.compensatingWrite, .writeRejected), (.writeNotAllowed, .writeRejected), (.replicaCorrupt, .clientInternalError),
        (.internalError, .clientInternalError), (.badChangeset, .clientSessionError), (.limitsExceeded, .clientSessionError),
    ])
    func `an error of the server has the code that RealmSwift gives it`(code: ErrorCode, expected: SyncError.Code) {
        let error = _syncError(SluiceError(code, "what happened"))
        #expect(error.code == expected && error.message.contains("what happened"))
        let bridged = error as NSError
        #expect(bridged.domain == "io.realm.sync" && bridged.code == expected.rawValue)
        #expect(bridged.localizedDescription.contains("what happened"))
        #expect(error.clientResetInfo() == nil && error.compensatingWriteInfo == nil)
        #expect(error.serverLogURL == nil && error.deleteRealmUserInfo() == nil)
    }

    @Test func `errors are caught by their codes`() {
        func caught(_ error: any Error) -> String {
            do {
                throw error
            } catch Realm.Error.subscriptionFailed {
                return "subscription"
            } catch SyncError.writeRejected {
                return "write"
            } catch AppError.invalidPassword {
                return "password"
            } catch {
                return "other"
            }
        }
        #expect(caught(_syncError(SluiceError(.compensatingWrite, ""))) == "write")
        #expect(caught(_syncError(SluiceError(.timeout, ""))) == "other")
    }
}

/// `==` of errors of any type.
@Suite struct ErrorComparisonTests {
    private func isSame(_ left: any Error, _ right: any Error) -> Bool { left == right }

    @Test func `errors of one domain with one code are equal, whatever their texts and types`() {
        let refused = _syncError(SluiceError(.queryUnsupported, "one"))
        #expect(isSame(refused, _syncError(SluiceError(.queryNotQueryable, "another"))))
        #expect(isSame(refused, NSError(domain: "io.realm.sync", code: 10)) && !isSame(refused, NSError(domain: "io.realm", code: 10)))
        #expect(!isSame(refused, _syncError(SluiceError(.timeout, "one"))))
        #expect(SyncSubscriptionState.error(refused) == .error(NSError(domain: "io.realm.sync", code: 10)))
        #expect(SyncSubscriptionState.error(refused) != .error(_syncError(SluiceError(.timeout, "one"))))
    }
}

/// Opening without a server.
@Suite(.timeLimit(.minutes(1))) struct OfflineTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Somebody who logged in in an earlier run, to a server that is gone.
    private func configuration(cancels: Bool) throws -> Realm.Configuration {
        let place = folder.url.appendingPathComponent("tasks")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let user = #"{"id":"u1","provider":"local-userpass","access_token":"a.b.c","refresh_token":"r"}"#
        try #"{"users":[\#(user)],"current":"u1"}"#
            .write(to: place.appendingPathComponent("users.json"), atomically: true, encoding: .utf8)
        // Nothing listens on the discard port.
        let app = App(id: "tasks", configuration: AppConfiguration(baseURL: "http://127.0.0.1:9", storageDirectory: folder.url))
        var configuration = try #require(app.currentUser).flexibleSyncConfiguration(cancelAsyncOpenOnNonFatalErrors: cancels)
        configuration.objectTypes = [Task.self, Team.self]
        return configuration
    }

    @Test func `somebody who has logged in before opens, subscribes, writes and reads without a connection`() throws {
        let configuration = try configuration(cancels: false)
        do {
            let realm = try Realm(configuration: configuration)
            #expect(realm.syncSession?.parentUser()?.isLoggedIn == true && realm.syncSession?.state == .active)
            let set = realm.subscriptions
            set.update { set.append(QuerySubscription<Task>(name: "all")) }
            try realm.write { realm.add(Task(value: ["taskName": "offline"])) }
        }
        let again = try Realm(configuration: configuration)
        #expect(again.objects(Task.self).first?.taskName == "offline" && again.subscriptions.state == .pending)
    }

    @Test func `a synced file is open in one process at a time`() throws {
        let configuration = try configuration(cancels: false)
        let path = try #require(configuration.fileURL).path
        try FileManager.default.createDirectory(
            atPath: URL(fileURLWithPath: path).deletingLastPathComponent().path, withIntermediateDirectories: true)
        do {
            // The lock is the open file's, as it would be another process's.
            let other = try SyncClaim.take(path)
            let error = #expect(throws: Realm.Error.self) { _ = try Realm(configuration: configuration) }
            #expect(error?.code == .multipleSyncAgents && error?.fileURL?.path == path && other != nil)
        }
        do {
            let realm = try Realm(configuration: configuration)
            #expect(try SyncClaim.take(path, within: 0) == nil && realm.syncSession != nil)
        }
        #expect(try SyncClaim.take(path) != nil)
        #expect(try Realm.deleteFiles(for: configuration) && !FileManager.default.fileExists(atPath: SyncClaim.file(of: path)))
    }

    @Test func `an opening that is to end with the connection does, and says so`() async throws {
        let configuration = try configuration(cancels: true)
        let error = await #expect(throws: SyncError.self) { _ = try await Realm(configuration: configuration, downloadBeforeOpen: .always) }
        #expect(error?.code == .connectionFailed)
    }

    /// Logs in, and says nothing to who wants to sync until the semaphore is signaled.
    private func silentServer(_ silence: DispatchSemaphore) throws -> CannedServer {
        try CannedServer { request in
            if request.headers["upgrade"] != nil { silence.wait() }
            return .init(status: 200, body: #"{"access_token":"a.b.c","refresh_token":"r","user_id":"u","device_id":"d"}"#)
        }
    }

    /// As others' code tells it from a connection that is refused.
    @Test func `a connection that takes too long ends such an opening with the system's ETIMEDOUT`() async throws {
        let silence = DispatchSemaphore(value: 0)
        defer { for _ in 0..<64 { silence.signal() } }
        let server = try silentServer(silence)
        let app = App(
            id: "tasks",
            configuration: AppConfiguration(
                baseURL: server.url, syncTimeouts: SyncTimeoutOptions(connectTimeout: 300), storageDirectory: folder.url))
        var configuration = try await app.login(credentials: .anonymous).flexibleSyncConfiguration(cancelAsyncOpenOnNonFatalErrors: true)
        configuration.objectTypes = [Task.self, Team.self]
        let impatient = configuration
        let failure = await #expect(throws: (any Error).self) { _ = try await Realm(configuration: impatient, downloadBeforeOpen: .always) }
        let error = try #require(failure) as NSError
        #expect(error.domain == NSPOSIXErrorDomain && error.code == Int(ETIMEDOUT), "\(error)")
        #expect(failure as? SyncError == nil && !error.localizedDescription.isEmpty)
    }

    /// Whoever waits keeps the session, not the file.
    @Test(arguments: [false, true])
    func `Scenario 18: what waits for the server ends with an error when the Realm goes`(isWaiting: Bool) async throws {
        let (answers, answer) = AsyncStream<(any Error)?>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let session = try begin { session in
            if isWaiting { wait(for: session, answer) }
        } onComplete: {
            answer.yield($0)
        }
        #expect(session.state == .invalid)
        if !isWaiting { wait(for: session, answer) }
        var count = 0
        for await error in answers {
            #expect(error is SyncError, "\(String(describing: error))")
            count += 1
            if count == 3 { break }
        }
    }

    private func wait(for session: SyncSession, _ answer: AsyncStream<(any Error)?>.Continuation) {
        for direction in [SyncSession.ProgressDirection.upload, .download] { session.wait(for: direction) { answer.yield($0) } }
    }

    /// A Realm that has subscribed and written, and goes. - Returns: its session.
    private func begin(
        _ body: (SyncSession) -> Void, onComplete: @escaping @Sendable ((any Error)?) -> Void
    ) throws -> SyncSession {
        let realm = try Realm(configuration: try configuration(cancels: false))
        let set = realm.subscriptions
        set.update({ set.append(QuerySubscription<Task>(name: "all")) }, onComplete: onComplete)
        try realm.write { realm.add(Task(value: ["taskName": "offline"])) }
        let session = try #require(realm.syncSession)
        body(session)
        return session
    }

    @Test func `an opening that waits for the server is given up when its task is cancelled`() async throws {
        let configuration = try configuration(cancels: false)
        // Unstructured because: the test cancels it.
        let opening = _Concurrency.Task { _ = try await Realm(configuration: configuration, downloadBeforeOpen: .always) }
        opening.cancel()
        await #expect(throws: CancellationError.self) { try await opening.value }
    }

    @Test func `an opening that is cancelled calls nobody back`() async throws {
        let queue = DispatchQueue(label: "opening")
        let called = Mutex(0)
        let task = Realm.asyncOpen(configuration: try configuration(cancels: false), callbackQueue: queue) { _ in
            called.withLock { $0 += 1 }
        }
        let (steps, step) = AsyncStream<Double>.makeStream(bufferingPolicy: .bufferingOldest(8))
        task.addProgressNotification(queue: queue) { step.yield($0.progressEstimate) }
        for await estimate in steps {
            #expect(estimate < 1)
            break
        }
        task.cancel()
        await task.task.value
        queue.sync {}
        #expect(called.withLock { $0 } == 0)
    }

    @Test func `an app names itself and adds headers to the connection`() async throws {
        let (requests, note) = AsyncStream<CannedServer.Request>.makeStream(bufferingPolicy: .bufferingOldest(64))
        let server = try CannedServer { request in
            note.yield(request)
            if request.line.hasPrefix("POST /api/client/v2.0/auth/session") {
                return .init(status: 201, body: #"{"access_token":"a.b.c"}"#)
            }
            return .init(status: 200, body: #"{"access_token":"a.b.c","refresh_token":"r","user_id":"u","device_id":"d"}"#)
        }
        let app = App(id: "tasks", configuration: AppConfiguration(baseURL: server.url, storageDirectory: folder.url))
        #expect(app.syncManager.sdk.hasPrefix("sluice-swift/") && !app.syncManager.sdk.contains(" "))
        app.syncManager.userAgent = "shop/7"
        app.syncManager.customRequestHeaders = ["X-Tenant": "blue"]
        app.syncManager.authorizationHeaderName = "X-App-Token"
        #expect(app.syncManager.sdk.hasSuffix(" shop/7"))
        var configuration = try await app.login(credentials: .anonymous).flexibleSyncConfiguration()
        configuration.objectTypes = [Task.self, Team.self]
        let realm = try await Realm(configuration: configuration)
        for await request in requests where request.headers["upgrade"]?.lowercased() == "websocket" {
            #expect(request.headers["x-tenant"] == "blue" && request.headers["x-app-token"] == "Bearer a.b.c")
            #expect(request.headers["authorization"] == nil)
            break
        }
        withExtendedLifetime(realm) {}
    }

    @Test func `a session connects for as long as nobody answers, and does not when it is suspended`() async throws {
        let silence = DispatchSemaphore(value: 0)
        defer { for _ in 0..<64 { silence.signal() } }
        let server = try silentServer(silence)
        let app = App(id: "tasks", configuration: AppConfiguration(baseURL: server.url, storageDirectory: folder.url))
        var configuration = try await app.login(credentials: .anonymous).flexibleSyncConfiguration()
        configuration.objectTypes = [Task.self, Team.self]
        let realm = try await Realm(configuration: configuration)
        let session = try #require(realm.syncSession)
        #expect(try await eventually { session.connectionState == .connecting } && session.state == .active)
        session.suspend()
        #expect(session.connectionState == .disconnected && session.state == .inactive)
    }

    @Test func `somebody who is logged out waits for nothing`() async throws {
        let configuration = try folder.synced(isLoggedIn: false)
        let error = await #expect(throws: SyncError.self) { _ = try await Realm(configuration: configuration, downloadBeforeOpen: .once) }
        #expect(error?.code == .clientUserError)
        let realm = try await Realm(configuration: configuration)
        for direction in [SyncSession.ProgressDirection.upload, .download] {
            await #expect(throws: SyncError.self) { try await realm.syncSession?.wait(for: direction) }
        }
    }

    @Test func `a session says what it belongs to, and is over with its Realm`() throws {
        var session: SyncSession?
        do {
            let realm = try Realm(configuration: try configuration(cancels: true))
            session = realm.syncSession
            #expect(session?.configuration()?.cancelAsyncOpenOnNonFatalErrors == true && session?.parentUser()?.id == "u1")
            #expect(session?.parentUser()?.allSessions.contains { $0 === session } == true)
            session?.suspend()
            #expect(session?.state == .inactive && session?.connectionState == .disconnected)
            session?.resume()
            #expect(session?.state == .active)
        }
        #expect(session?.state == .invalid && session?.configuration() == nil)
        #expect(session?.addProgressNotification(for: .upload, mode: .reportIndefinitely) { _ in } == nil)
    }

    @Test func `removing a user ends waiting, logs out and deletes the files`() async throws {
        let configuration = try configuration(cancels: false)
        let user = try #require(configuration.syncConfiguration?.user)
        do { _ = try await Realm(configuration: configuration) }
        let path = try #require(configuration.fileURL?.path)
        #expect(FileManager.default.fileExists(atPath: path))
        try await user.remove()
        #expect(user.state == .removed && !FileManager.default.fileExists(atPath: path))
    }
}
