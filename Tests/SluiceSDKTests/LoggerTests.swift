import Foundation
import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization
import Testing

@testable import SluiceSDK

/// Collects from any thread.
private final class Lines: Sendable {
    private let all = Mutex<[String]>([])
    func add(_ line: String) { all.withLock { $0.append(line) } }
    var elements: [String] { all.withLock { $0 } }
}

/// What is logged of sync, and by whose wish.
@Suite(.timeLimit(.minutes(1))) struct LoggerTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A Realm of somebody who is logged out, so that its session says what the test says and nothing else.
    private static func open(_ folder: TemporaryFolder, _ manager: (SyncManager) -> Void) throws -> Realm {
        let configuration = try folder.synced(isLoggedIn: false)
        manager(try #require(configuration.syncConfiguration).user.app.syncManager)
        return try Realm(configuration: configuration)
    }

    private static let reports: [(SyncReport, String)] = [
        (.connection(.connected), "Connected"), (.interrupted(SluiceError(.connectionFailed, "cable cut"), isFault: false), "cable cut"),
        (.downloading(version: 2, rows: 0, expected: 9), "subscription set 2 begins, of about 9 rows"),
        (.downloaded(version: 2), "set 2 is complete"),
        (.setRefused(version: 3, SluiceError(.queryNotQueryable, "no field"), isLast: true), "set 3 is refused"),
        (.resetting(SluiceError(.badClientFile, "unknown file")), "client reset begins"),
        (.stopped(SluiceError(.permissionDenied, "go away")), "go away"),
        (
            .refused([
                CompensatingWrite(
                    changeset: 1, object: ObjectKey(type: "Task", key: .int(7)), code: 231, cause: "", reason: "not yours", fields: [],
                    values: [:])
            ]), "Task 7: not yours"
        ),
    ]

    @Test func `an app's logger hears what its sessions do, by .info where no level is set`() throws {
        let lines = Lines()
        let realm = try Self.open(folder) { manager in
            manager.logger = { level, message in lines.add("\(level) \(message)") }
            #expect(manager.logLevel == .info)
        }
        let session = try #require(realm.syncSession)
        for (report, text) in Self.reports {
            session.take(report)
            #expect(lines.elements.last?.contains(text) == true, "\(lines.elements)")
            #expect(lines.elements.last?.contains("User u1") == true)
        }
        let set = realm.subscriptions
        set.update { set.append(QuerySubscription<Task>(name: "all")) }
        #expect(lines.elements.last == "info User u1: The subscription set 1 is committed, of 1.")
        let count = lines.elements.count
        session.take(.uploaded(4))
        session.take(.connection(.connecting))
        #expect(lines.elements.count == count)
    }

    @Test func `a level shows its own messages and those before it`() throws {
        let lines = Lines()
        let realm = try Self.open(folder) { manager in
            manager.logger = { level, _ in lines.add("\(level)") }
            manager.logLevel = .error
        }
        let session = try #require(realm.syncSession)
        for (report, _) in Self.reports { session.take(report) }
        #expect(Set(lines.elements) == ["error"])
        session.user.app.syncManager.logLevel = .off
        let count = lines.elements.count
        for (report, _) in Self.reports { session.take(report) }
        #expect(lines.elements.count == count)
        session.user.app.syncManager.logLevel = .all
        session.take(.uploaded(4))
        #expect(lines.elements.last == "debug")
    }

    @Test func `a message that is long is cut`() throws {
        let lines = Lines()
        let realm = try Self.open(folder) { $0.logger = { _, message in lines.add(message) } }
        try #require(realm.syncSession).take(.warning(SluiceError(.internalError, String(repeating: "x", count: 9_000))))
        #expect(lines.elements.last?.count == 2_000 && lines.elements.last?.hasSuffix("…") == true)
    }

    @Test func `nothing is logged, and no message made, until the app asks for it`() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let realm = try LoggerTests.open(folder) { #expect($0.logLevel == .off && $0.logger == nil) }
            let session = try #require(realm.syncSession)
            var isMade = false
            func message() -> String {
                isMade = true
                return "made"
            }
            session.log(.fatal, .session, message())
            #expect(!isMade && Logger.logLevel() == .off)
            Logger.setLogLevel(.error, for: Category.Storage.all)
            session.log(.error, .session, message())
            #expect(!isMade)
            Logger.setLogLevel(.error)
            session.log(.info, .session, message())
            #expect(!isMade)
            session.log(.error, .session, message())
            #expect(isMade)
        }
    }

    @Test func `everybody's logger hears categories, each by its level`() async {
        await #expect(processExitsWith: .success) {
            let lines = Lines()
            Logger.shared = Logger { level, category, message in lines.add("\(category.rawValue) \(level) \(message)") }
            #expect(Logger.logLevel() == .info && Logger.shared.level == .info)
            let folder = try TemporaryFolder()
            let session = try #require(try LoggerTests.open(folder) { _ in }.syncSession)
            session.log(.info, .network, "there")
            #expect(lines.elements.last == "Realm.Sync.Client.Network info User u1: there")
            Logger.setLogLevel(.warn, for: Category.Sync.all)
            #expect(Logger.logLevel(for: Category.Sync.Client.reset) == .warn && Logger.logLevel(for: Category.app) == .info)
            Logger.setLogLevel(.trace, for: Category.Sync.Client.changeset)
            session.log(.info, .network, "not there")
            session.log(.trace, .changeset, "there too")
            #expect(lines.elements.last == "Realm.Sync.Client.Changeset trace User u1: there too")
            // What is above takes what is below along.
            Logger.shared.level = .off
            #expect(Logger.logLevel(for: Category.Sync.Client.changeset) == .off)
            let other = Logger(level: .debug) { level, message in lines.add("other \(level) \(message)") }
            Logger.shared = other
            session.log(.debug, .session, "again")
            #expect(lines.elements.last == "other debug User u1: again")
        }
    }

    @Test func `without a logger the log goes to the standard error output`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            Logger.setLogLevel(.info)
            let folder = try TemporaryFolder()
            let session = try #require(try LoggerTests.open(folder) { _ in }.syncSession)
            session.log(.info, .session, "on its way")
        }
        #expect(message(result).contains("Realm.Sync.Client.Session info: User u1: on its way\n"))
    }

    @Test func `levels have RealmSwift's numbers, and categories its names`() {
        #expect(LogLevel.allCases.map(\.rawValue) == Array(0...8) && LogLevel.off.rawValue == 0 && LogLevel.all.rawValue == 8)
        let names =
            Category.allCases.map(\.rawValue) + Category.Storage.allCases.map(\.rawValue) + Category.Sync.allCases.map(\.rawValue)
            + Category.Sync.Client.allCases.map(\.rawValue)
        #expect(Set(names).count == 15 && names.allSatisfy { $0.hasPrefix("Realm") })
    }
}
