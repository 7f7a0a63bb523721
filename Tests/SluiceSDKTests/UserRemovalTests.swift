import Dispatch
import Foundation
import Synchronization
import Testing

@testable import SluiceSDK

/// What is left of a user who is removed from the device, or whose account is deleted.
@Suite struct `Removing a user` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func server(isWorking: @escaping @Sendable () -> Bool = { true }) throws -> CannedServer {
        try CannedServer { request in
            if !isWorking() { return .init(status: 500, body: #"{"error":"no disk","error_code":"InternalServerError"}"#) }
            if request.line.hasPrefix("DELETE") { return .init(status: 204, body: "") }
            if request.line.contains("/auth/session") { return .init(status: 201, body: #"{"access_token":"h.e30.renewed"}"#) }
            let name = request.body.contains("eve") ? "eve" : "ann"
            return .init(
                status: 200, body: #"{"access_token":"h.e30.first","refresh_token":"refresh","user_id":"\#(name)","device_id":"d"}"#)
        }
    }

    private func app(_ server: CannedServer) -> App {
        App(id: "shop", configuration: AppConfiguration(baseURL: server.url, storageDirectory: folder.url))
    }

    private func logIn(_ app: App, _ name: String = "ann") async throws -> User {
        try await app.login(credentials: .emailPassword(email: "\(name)@example.com", password: "secret"))
    }

    private func open(_ user: User) throws -> Realm {
        var configuration = user.flexibleSyncConfiguration()
        configuration.objectTypes = [Task.self, Team.self]
        return try Realm(configuration: configuration)
    }

    /// Makes a user's file. - Returns: where it is.
    private func makeFile(_ user: User) throws -> URL { try #require(try open(user).configuration.fileURL) }

    /// Ann, who has a file, in an app of a server that works while the flag says so.
    private func ann(
        _ isUp: Flag = Flag()
    ) async throws -> (server: CannedServer, app: App, ann: User, file: URL) {
        let server = try server { isUp.value }
        let app = app(server)
        let ann = try await logIn(app)
        return (server, app, ann, try makeFile(ann))
    }

    private func isThere(_ file: URL) -> Bool { FileManager.default.fileExists(atPath: file.path) }

    @Test func `logs out, forgets the user, takes the files away, and leaves other users alone`() async throws {
        let server = try server()
        let app = app(server)
        let ann = try await logIn(app)
        let eve = try await logIn(app, "eve")
        let files = [try makeFile(ann), try makeFile(eve)]
        #expect(files.allSatisfy(isThere) && app.allUsers.count == 2)
        try await ann.remove()
        #expect(ann.state == .removed && !ann.isLoggedIn && ann.accessToken == nil && ann.refreshToken == nil)
        #expect(app.allUsers.keys.sorted() == ["eve"] && app.currentUser == eve && eve.isLoggedIn)
        #expect(!isThere(files[0]) && isThere(files[1]))
        // The account stays: only this device's tokens are void.
        #expect(server.requests.filter { $0.line.hasPrefix("DELETE") }.map(\.line) == ["DELETE /api/client/v2.0/auth/session HTTP/1.1"])
        let again = try await logIn(app)
        #expect(again.isLoggedIn && again.state == .loggedIn && app.allUsers.count == 2)
    }

    @Test func `is remembered after the end of the program`() async throws {
        let server = try server()
        try await logIn(app(server)).remove()
        let later = App(
            id: "shop",
            configuration: AppConfiguration(baseURL: server.url, defaultRequestTimeoutMS: 5_000, storageDirectory: folder.url))
        #expect(later.allUsers.isEmpty && later.currentUser == nil)
    }

    @Test func `works without the server, whose token ends by its own time`() async throws {
        let isUp = Flag()
        let (_, app, ann, file) = try await ann(isUp)
        isUp.value = false
        try await ann.remove()
        #expect(ann.state == .removed && app.allUsers.isEmpty && !isThere(file))
    }

    @Test func `keeps the files of a Realm that is open, and says so when all else is done`() async throws {
        let server = try server()
        let app = app(server)
        let ann = try await logIn(app)
        let realm = try open(ann)
        let error = await #expect(throws: Realm.Error.self) { try await ann.remove() }
        #expect(error?.code == .alreadyOpen)
        let file = try #require(realm.configuration.fileURL)
        #expect(ann.state == .removed && app.allUsers.isEmpty && isThere(file))
    }

    @Test func `takes away the files after one that cannot be deleted, and throws that one's error`() throws {
        let file = folder.url.appendingPathComponent("a.realm")
        try Data([1]).write(to: file)
        // The kernel's own files cannot be deleted, not even by root.
        let error = #expect(throws: Realm.Error.self) { try RealmFiles.removeUnlessOpen(["/proc/version", file.path]) }
        #expect(error?.code == .fileOperationFailed && error?.message.contains("/proc/version") == true)
        #expect(!isThere(file))
    }

    @Test(.timeLimit(.minutes(1))) func `keeps the files of a Realm that is being opened`() async throws {
        let (_, _, ann, file) = try await ann()
        let removal = Removal(of: ann)
        var configuration = ann.flexibleSyncConfiguration()
        configuration.objectTypes = [Task.self, Team.self]
        // It is asked in the middle of opening.
        configuration.shouldCompactOnLaunch = { _, _ in
            // The removal waits for the opening; what does not wait has had the time to delete.
            removal.begin()
            _ = removal.wait(.milliseconds(500))
            return false
        }
        let realm = try await onThread { [configuration] in Sent(try Realm(configuration: configuration)) }
        #expect(try await onThread { removal.wait(.seconds(30)) } == .success)
        let error = removal.error as? Realm.Error
        #expect(error?.code == .alreadyOpen && isThere(file))
        withExtendedLifetime(realm) {}
    }

    private final class Removal: Sendable {
        private let user: User
        private let failure = Mutex<(any Error)?>(nil)
        private let ended = DispatchSemaphore(value: 0)

        init(of user: User) { self.user = user }

        var error: (any Error)? { failure.withLock { $0 } }

        func begin() {
            user.remove { error in
                self.failure.withLock { $0 = error }
                self.ended.signal()
            }
        }

        func wait(_ time: DispatchTimeInterval) -> DispatchTimeoutResult { ended.wait(timeout: .now() + time) }
    }

    @Test func `deletes the account with a token that is good, and then what is here`() async throws {
        let (server, app, ann, file) = try await ann()
        try await ann.delete()
        #expect(ann.state == .removed && app.allUsers.isEmpty && app.currentUser == nil && !isThere(file))
        let deletion = try #require(server.requests.last { $0.line.hasPrefix("DELETE") })
        #expect(deletion.line == "DELETE /api/client/v2.0/auth/delete HTTP/1.1")
        #expect(deletion.headers["authorization"] == "Bearer h.e30.renewed")
    }

    @Test func `leaves everything as it was when the server does not delete the account`() async throws {
        let isUp = Flag()
        let (server, app, ann, file) = try await ann(isUp)
        // It would stop listening otherwise.
        defer { withExtendedLifetime(server) {} }
        isUp.value = false
        let failure = await #expect(throws: AppError.self) { try await ann.delete() }
        #expect(failure?.code == .internalServerError && failure?.message == "no disk")
        #expect(ann.isLoggedIn && ann.state == .loggedIn && app.currentUser == ann && isThere(file))
        isUp.value = true
        try await ann.logOut()
        let error = await #expect(throws: AppError.self) { try await ann.delete() }
        #expect(error?.code == .invalidSession && ann.state == .loggedOut && app.allUsers.count == 1 && isThere(file))
    }

    private final class Flag: Sendable {
        private let flag = Atomic<Bool>(true)
        var value: Bool {
            get { flag.load(ordering: .relaxed) }
            set { flag.store(newValue, ordering: .relaxed) }
        }
    }
}
