import Foundation
import SluiceSDK
import Testing

/// The calls that apps written for Flexible Sync make, in their shapes. That this file compiles is the contract; what needs no
/// server is run as well.
@MainActor @Suite struct CallsOfAppsTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() async throws -> Realm {
        var flexSyncConfig = try folder.user().flexibleSyncConfiguration()
        flexSyncConfig.objectTypes = [Task.self, Team.self]
        return try await Realm(configuration: flexSyncConfig)
    }

    @Test func `subscriptions are managed in batches with a completion`() async throws {
        let realm = try await open()
        let subscriptions = realm.subscriptions
        subscriptions.update(
            {
                subscriptions.append(
                    QuerySubscription<Task> {
                        $0.assignee == "John Doe"
                    })
                subscriptions.append(QuerySubscription<Team>(name: "all_teams"))
            },
            onComplete: { error in
                if error == nil {
                    print("Flexible Sync has updated data to match the subscription")
                }
            })
        #expect(subscriptions.count == 2)
        let foundSubscription = subscriptions.first(named: "all_teams")
        subscriptions.update(
            {
                foundSubscription?.updateQuery(
                    toType: Team.self,
                    where: {
                        $0.teamName == "Documentation"
                    })
                subscriptions.remove {
                    QuerySubscription<Task> {
                        $0.assignee == "John Doe"
                    }
                }
            }, onComplete: nil)
        #expect(realm.subscriptions.count == 1)
        subscriptions.update({ subscriptions.remove(subscriptions.first(named: "all_teams")!) }, onComplete: nil)
        #expect(realm.subscriptions.count == 0)
    }

    @Test func `a date range is an initial subscription`() async throws {
        let secondsInAWeek: TimeInterval = 604800
        let dateLastWeek = (Date.now - secondsInAWeek)
        let dateNextWeek = (Date.now + secondsInAWeek)
        var flexSyncConfig = try folder.user().flexibleSyncConfiguration(
            initialSubscriptions: { subs in
                subs.append(
                    QuerySubscription<Task> {
                        $0.dueDate > dateLastWeek && $0.dueDate < dateNextWeek
                    })
            }, rerunOnOpen: true)
        flexSyncConfig.objectTypes = [Task.self]
        let realm = try await Realm(configuration: flexSyncConfig, actor: MainActor.shared)
        #expect(realm.subscriptions.count == 1)
        try realm.write { realm.add(Task(value: ["dueDate": Date.now])) }
        #expect(realm.objects(Task.self).where { $0.dueDate > dateLastWeek && $0.dueDate < dateNextWeek }.count == 1)
    }

    @Test func `a custom actor has a Realm of its own`() async throws {
        let configuration = try folder.synced([Task.self, Team.self])
        #expect(try await Keeper().count(configuration) == 0)
    }

    @Test(.timeLimit(.minutes(1))) func `an app at the top level of its program makes the same calls`() throws {
        _ = try folder.user()
        let process = Process()
        let output = Pipe()
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("app-at-top-level")
        process.arguments = [folder.url.path]
        process.standardOutput = output
        try process.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        #expect(
            said.split(separator: "\n") == [
                "initial 1", "appended 3 pending", "found unnamed", "results 1 1", "elsewhere 1", "named 2", "tasks 1", "none 0",
            ])
    }

    /// A model of a screen, which keeps what it shows on the main actor.
    @MainActor private final class Screen {
        var realm: Realm?
        var names: [String] = []
        var tokens: [NotificationToken] = []

        func open(_ configuration: Realm.Configuration) async {
            await withCheckedContinuation { done in
                Realm.asyncOpen(configuration: configuration) { result in
                    self.realm = try? result.get()
                    done.resume()
                }
            }
        }

        func watch(_ told: AsyncStream<Void>.Continuation) throws {
            guard let realm else { return }
            tokens.append(
                realm.objects(Team.self).observe { [weak self] change in
                    guard case .update(let teams, _, _, _) = change else { return }
                    self?.names = teams.map(\.teamName)
                    told.yield()
                })
            realm.writeAsync {
                self.names = []
                realm.create(Team.self, value: ["teamName": "a"])
            } onComplete: { error in
                if let error { self.names = ["\(error)"] }
            }
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a screen keeps what callbacks tell it on the main actor`() async throws {
        let screen = Screen()
        await screen.open(folder.configuration([Task.self, Team.self]))
        let (events, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingOldest(4))
        try screen.watch(continuation)
        for await _ in events where screen.names == ["a"] { break }
        #expect(screen.names == ["a"])
    }

    private actor Keeper {
        func count(_ configuration: Realm.Configuration) async throws -> Int {
            let realm = try await Realm(configuration: configuration, actor: self)
            let results = try await realm.objects(Team.self)
                .where { $0.teamName == "Developer Education" }
                .subscribe(name: "team_developer_education", waitForSync: .never)
            return results.count
        }
    }

    /// What needs a server: compiled, and expected to fail by name without one.
    private func withServer() async throws {
        let app = App(
            id: "nobody", configuration: AppConfiguration(baseURL: "http://127.0.0.1:9", storageDirectory: folder.url))
        app.syncManager.errorHandler = { error, session in
            if let error = error as? SyncError, error.code == .writeRejected {
                for write in error.compensatingWriteInfo ?? [] { print(write.objectType, write.primaryKey, write.reason) }
            }
            _ = session?.state
        }
        try await app.emailPasswordAuth.registerUser(email: "a@b.c", password: "secret")
        let user = try await app.login(credentials: Credentials.emailPassword(email: "a@b.c", password: "secret"))
        let realm = try await Realm(configuration: user.flexibleSyncConfiguration(), downloadBeforeOpen: .always)
        let results = try await realm.objects(Team.self)
            .where { $0.members.contains("Bob Smith") }
            .subscribe(name: "bob_smith_teams", waitForSync: .onCreation, timeout: 60)
        print("The number of teams that have Bob Smith as a member is \(results.count)")
        let subscriptions = realm.subscriptions
        try await subscriptions.update {
            subscriptions.removeAll(ofType: Team.self)
        }
        try await realm.syncSession?.wait(for: .upload)
        realm.syncSession?.suspend()
        realm.syncSession?.resume()
        results.unsubscribe()
        try await user.refreshCustomData()
        try await user.logOut()
    }

    @Test func `a server that is not there is an error by name`() async throws {
        let error = await #expect(throws: AppError.self) { try await withServer() }
        #expect(error?.code == .httpRequestFailed)
        #expect(error?.message.contains("127.0.0.1:9") == true)
    }
}
