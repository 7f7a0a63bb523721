import Foundation
import GatewayTestSupport
import SluiceSDK
import Synchronization
import TestSupport
import Testing

import class GatewayTestSupport.Tag

/// The numbers are those of the acceptance scenarios; the app's side of them, against a gateway and PostgreSQL.
@Suite(.timeLimit(.minutes(5))) struct `Subscriptions of an app` {
    private static let rows = """
        INSERT INTO orders (_id, store, title, size) VALUES
        ('n1', 'north', 'a', 1), ('n2', 'north', 'b', 2), ('s1', 'south', 'c', 3), ('s2', 'south', 'd', 4)
        """

    @MainActor
    @Test func `Scenario 1: a field that is not queryable fails its set alone, and a later set completes`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            #expect(phone.keys == ["n1", "n2"])
            let subscriptions = phone.realm.subscriptions
            let error = await #expect(throws: Realm.Error.self) {
                try await subscriptions.update {
                    subscriptions.append(QuerySubscription<Tag>(name: "bad", where: "title LIKE '*x*' AND _id == 'y' AND title == 'z'"))
                    subscriptions.append(QuerySubscription<Order>(name: "worse", where: "size > 3"))
                }
            }
            #expect(error?.code == .subscriptionFailed)
            guard case .error(let reason) = subscriptions.state else {
                Issue.record("the set is \(subscriptions.state)")
                return
            }
            #expect((reason as? SyncError)?.code == .invalidFlexibleSyncSubscriptions && subscriptions.error != nil)
            await phone.said.wait { $0.sync.contains { $0.code == .invalidFlexibleSyncSubscriptions } }
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n3', 'north', 1)")
            try await phone.wait { Set($0.map(\._id)) == ["n1", "n2", "n3"] }
            try await subscriptions.update {
                subscriptions.remove(named: "bad")
                subscriptions.remove(named: "worse")
                subscriptions.append(QuerySubscription<Order>(name: "south") { $0.store == "south" })
            }
            #expect(subscriptions.state == .complete && phone.keys == ["n1", "n2", "n3", "s1", "s2"])
        }
    }

    @MainActor
    @Test func `Scenarios 10, 11, 21: objects come and go with the set, from the empty one on, also when nothing changes`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway)
            try await phone.session.wait(for: .download)
            #expect(phone.realm.subscriptions.count == 0 && phone.realm.subscriptions.state == .complete)
            #expect(phone.keys.isEmpty)
            let north = phone.orders.where { $0.store == "north" }
            try await north.subscribe(name: "north")
            #expect(phone.keys == ["n1", "n2"])
            try await phone.orders.where { $0.store == "south" && $0.size > 3 }.subscribe()
            #expect(phone.keys == ["n1", "n2", "s2"])
            // Another name for what already exists.
            let before = phone.realm.subscriptions
            try await north.subscribe(name: "north again")
            #expect(before.state == .superseded && phone.keys == ["n1", "n2", "s2"])
            let subscriptions = phone.realm.subscriptions
            try await subscriptions.update {
                subscriptions.first(named: "north")?.updateQuery(toType: Order.self) { $0.store == "south" && $0.size < 4 }
                subscriptions.remove(named: "north again")
            }
            #expect(phone.keys == ["s1", "s2"])
            try await subscriptions.update { subscriptions.removeAll() }
            #expect(phone.keys.isEmpty && subscriptions.state == .complete)
            #expect(throws: Realm.Error.self) { try phone.add("n9") }
        }
    }

    @MainActor
    @Test func `Scenarios 15, 16, 17: sets made offline are sent later, after the writes that were made before them`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            try phone.add("n3", title: "before the change")
            let subscriptions = phone.realm.subscriptions
            let answers = Mutex<[String]>([])
            for store in ["east", "west", "south"] {
                subscriptions.update {
                    subscriptions.removeAll()
                    subscriptions.append(QuerySubscription<Order>(name: store) { $0.store == store })
                } onComplete: { error in
                    answers.withLock { $0.append("\(store) \(error.map { "\($0)" } ?? "nil")") }
                }
            }
            try phone.add("s3", store: "south", title: "after the change")
            #expect(subscriptions.state == .pending && phone.keys == ["n1", "n2", "n3", "s3"])
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            try await phone.session.wait(for: .download)
            try await phone.wait { Set($0.map(\._id)) == ["s1", "s2", "s3"] }
            #expect(subscriptions.state == .complete)
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id IN ('n3', 's3')") == 2)
            while answers.withLock({ $0.count }) < 3 { await _Concurrency.Task.yield() }
            #expect(answers.withLock { Set($0) } == ["east nil", "west nil", "south nil"])
        }
    }

    @MainActor
    @Test func `Scenario 18: the end of a session ends what waits for it`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let id = try await gateway.createUser("waiter@example.com")
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"], name: "waiter@example.com")
            phone.session.suspend()
            let subscriptions = phone.realm.subscriptions
            let (answers, answer) = AsyncStream<String>.makeStream()
            subscriptions.update {
                subscriptions.append(QuerySubscription<Order>(name: "late") { $0.store == "south" })
            } onComplete: { error in
                answer.yield("\((error as? SyncError)?.code ?? .clientInternalError)")
                answer.finish()
            }
            _ = try await gateway.request("PUT", "/admin/v1/users/\(id)/disable", admin: true)
            phone.session.resume()
            for await code in answers { #expect(code == "\(SyncError.Code.clientUserError)") }
            #expect(phone.session.state == .inactive)
            let error = await #expect(throws: SyncError.self) { try await phone.session.wait(for: .download) }
            #expect(error?.code == .clientUserError)
        }
    }

    @MainActor
    @Test func `Scenario 18: the removal of the user ends what waits`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            let (subscriptions, session) = (phone.realm.subscriptions, phone.session)
            let answers = Phone.Said()
            subscriptions.update {
                subscriptions.append(QuerySubscription<Order>(name: "late") { $0.store == "south" })
            } onComplete: {
                answers.add($0 ?? CancellationError())
            }
            session.resume()
            session.suspend()
            let user = try #require(session.parentUser())
            // The Realm is open, so that its file stays.
            let error = await #expect(throws: Realm.Error.self) { try await user.remove() }
            #expect(error?.code == .alreadyOpen && user.state == .removed)
            await answers.wait { !$0.all.isEmpty }
            #expect(answers.sync.map(\.code) == [.clientUserError], "\(answers.all)")
            let late = await #expect(throws: SyncError.self) { try await session.wait(for: .download) }
            #expect(late?.code == .clientUserError)
        }
    }

    @MainActor
    @Test func `an opening whose initial subscriptions the server refuses fails with the reason`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let (said, folder) = (Phone.Said(), try Phone.Folder())
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration(
                initialSubscriptions: { $0.append(QuerySubscription<Order>(name: "no indexed field", where: "size > 3")) })
            configuration.objectTypes = [Order.self]
            let error = await #expect(throws: Realm.Error.self) {
                _ = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
            }
            #expect(error?.code == .subscriptionFailed, "\(String(describing: error))")
            let opened = await withCheckedContinuation { done in
                Realm.asyncOpen(configuration: configuration) { result in done.resume(returning: Result { _ = try result.get() }) }
            }
            #expect(throws: Realm.Error.self) { try opened.get() }
        }
    }

    @MainActor
    @Test func `subscribing with always waits for the server again`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            let results = phone.orders.where { $0.store == "north" }
            try await results.subscribe(name: "again")
            let first = try #require(phone.realm.subscriptions.first(named: "again")?.updatedAt)
            try await results.subscribe(name: "again", waitForSync: .always)
            #expect(try #require(phone.realm.subscriptions.first(named: "again")).updatedAt > first)
            #expect(phone.realm.subscriptions.state == .complete)
        }
    }

    @MainActor
    @Test func `an opening that downloads once needs the server for a new file alone`() async throws {
        let (said, folder) = (Phone.Said(), try Phone.Folder())
        let configuration = try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration(
                initialSubscriptions: { $0.append(QuerySubscription<Order>(name: "north") { $0.store == "north" }) })
            configuration.objectTypes = [Order.self]
            let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
            #expect(Set(realm.objects(Order.self).map(\._id)) == ["n1", "n2"])
            realm.syncSession?.suspend()
            return configuration
        }
        // There is no server any more, and it is not waited for.
        let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
        #expect(Set(realm.objects(Order.self).map(\._id)) == ["n1", "n2"])
        // A file that was never subscribed is there all the same.
        var plain = try #require(realm.syncSession?.parentUser()).flexibleSyncConfiguration()
        plain.objectTypes = [Order.self]
        plain.fileURL = folder.url.appendingPathComponent("plain.realm")
        do { _ = try await Realm(configuration: plain) }
        _ = try await Realm(configuration: plain, downloadBeforeOpen: .once)
    }

    /// A planted file has subscriptions, and what is new since it was made is not in it.
    @MainActor
    @Test func `an opening that downloads once does so for a file that is planted from a seed`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            let seed = phone.folder.url.appendingPathComponent("seed.realm")
            try phone.realm.writeCopy(toFile: seed)
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n9', 'north', 9)")
            let (said, folder) = (Phone.Said(), try Phone.Folder())
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration()
            configuration.objectTypes = [Order.self, Tag.self]
            configuration.seedFilePath = seed
            let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
            #expect(realm.objects(Order.self).contains { $0._id == "n9" })
        }
    }

    @MainActor
    @Test func `Scenario 20: progress goes up to 1, for empty results too, and an upload's as well`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 3000) AS i")
            let phone = try await Phone.open(gateway)
            for query in ["store == 'north'", "store == 'nowhere'"] {
                let (steps, subscriptions) = (Steps(), phone.realm.subscriptions)
                subscriptions.update({ subscriptions.append(QuerySubscription<Order>(name: query, where: query)) }, onComplete: nil)
                let token = phone.session.addProgressNotification(for: .download, mode: .forCurrentlyOutstandingWork) { steps.add($0) }
                await steps.wait { $0.last == 1 }
                #expect(steps.all == steps.all.sorted(), "\(query): \(steps.all)")
                token?.invalidate()
            }
            let (some, all) = (Steps(), Steps())
            phone.session.suspend()
            for number in 1...20 { try phone.add("new\(number)", title: String(repeating: "x", count: 1_000)) }
            let outstanding = phone.session.addProgressNotification(for: .upload, mode: .forCurrentlyOutstandingWork) { some.add($0) }
            let indefinite = phone.session.addProgressNotification(for: .upload, mode: .reportIndefinitely) { all.add($0) }
            await some.wait { !$0.isEmpty }
            #expect(some.all == [0])
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            await some.wait { $0.last == 1 }
            await all.wait { $0.last == 1 }
            #expect(some.all == some.all.sorted() && all.all == all.all.sorted())
            let told = some.all.count
            try phone.add("later")
            try await phone.session.wait(for: .upload)
            await all.wait { $0.filter { $0 == 1 }.count == 2 }
            #expect(some.all.count == told)
            withExtendedLifetime((outstanding, indefinite)) {}
        }
    }

    @MainActor
    @Test func `Scenario 20: progress that is reported for good goes on with the next set, of what was outstanding it is over`()
        async throws
    {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(
                "INSERT INTO orders (_id, store, size) SELECT 'n' || i, (ARRAY['north', 'south'])[i % 2 + 1], i FROM generate_series(1, 3000) AS i"
            )
            let phone = try await Phone.open(gateway)
            let (always, once, gone) = (Steps(), Steps(), Steps())
            @MainActor func subscribe(_ store: String) {
                let set = phone.realm.subscriptions
                set.update({ set.append(QuerySubscription<Order>(name: store, where: "store == '\(store)'")) }, onComplete: nil)
            }
            subscribe("north")
            let kept = [
                phone.session.addProgressNotification(for: .download, mode: .reportIndefinitely) { always.add($0) },
                phone.session.addProgressNotification(for: .download, mode: .forCurrentlyOutstandingWork) { once.add($0) },
            ]
            let token = phone.session.addProgressNotification(for: .download, mode: .reportIndefinitely) { gone.add($0) }
            for steps in [always, once, gone] { await steps.wait { $0.last == 1 } }
            token?.invalidate()
            let (all, count) = (once.all, gone.all.count)
            #expect(all == all.sorted() && all.filter { $0 == 1 }.count == 1)
            subscribe("south")
            await always.wait { $0.filter { $0 == 1 }.count == 2 }
            let second = always.all.drop { $0 < 1 }.dropFirst()
            #expect(second.first ?? 1 < 1 && second.elementsEqual(second.sorted()), "\(always.all)")
            #expect(once.all == all && gone.all.count <= count + 1)
            #expect(phone.session.connectionState == .connected)
            phone.session.suspend()
            #expect(phone.session.connectionState == .disconnected)
            withExtendedLifetime(kept) {}
        }
    }

    @MainActor
    @Test func `Scenario 20: an opening's progress goes up to 1`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 3000) AS i")
            let (said, folder, steps) = (Phone.Said(), try Phone.Folder(), Steps())
            let user = try await Phone.user(gateway, said, folder)
            var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
                subscriptions.append(QuerySubscription<Order> { $0.store == "north" })
            })
            configuration.objectTypes = [Order.self]
            let opened = configuration
            let count: Int = try await withCheckedThrowingContinuation { continuation in
                let task = Realm.asyncOpen(configuration: opened) { result in
                    continuation.resume(with: result.map { $0.objects(Order.self).count })
                }
                task.addProgressNotification { steps.add($0) }
            }
            #expect(count == 3_000)
            await steps.wait { $0.last == 1 }
            #expect(steps.all == steps.all.sorted() && steps.all.count >= 2, "\(steps.all)")
        }
    }

    @MainActor
    @Test func `Scenario 52: a suspended session keeps what is written and catches up when it is resumed`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            #expect(phone.session.state == .inactive)
            try phone.add("mine")
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('theirs', 'north', 1)")
            #expect(phone.keys == ["n1", "n2", "mine"])
            phone.session.resume()
            #expect(phone.session.state == .active)
            try await phone.session.wait(for: .upload)
            try await phone.wait { Set($0.map(\._id)) == ["n1", "n2", "mine", "theirs"] }
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
        }
    }
}

/// The steps of a transfer.
final class Steps: Sendable {
    private let steps = Watched<[Double]>([])

    func add(_ progress: SyncSession.Progress) { steps.change { $0.append(progress.progressEstimate) } }
    var all: [Double] { steps.value }

    /// Waits for what comes on a queue of the SDK's.
    func wait(_ isEnough: @escaping @Sendable ([Double]) -> Bool) async { #expect(await steps.until(isEnough), "\(all)") }
}
