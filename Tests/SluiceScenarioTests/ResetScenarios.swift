import Foundation
import GatewayTestSupport
import SluiceSDK
import Synchronization
import TestSupport
import Testing

/// What becomes of a device that the gateway has forgotten, in each mode.
@Suite(.timeLimit(.minutes(5))) struct `A client reset` {
    private static let rows = "INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('n2', 'north', 2)"

    /// What the callbacks saw.
    final class Seen: Sendable {
        private let seen = Mutex<[String]>([])
        var all: [String] { seen.withLock { $0 } }

        private static func keys(_ realm: Realm) -> String { realm.objects(Order.self).map(\._id).sorted().joined(separator: ",") }

        @Sendable func before(_ before: Realm) {
            seen.withLock { $0.append("before \(Self.keys(before)) \(before.isFrozen)") }
        }

        @Sendable func after(_ before: Realm, _ after: Realm) {
            seen.withLock { $0.append("after \(Self.keys(before)) \(before.isFrozen) > \(Self.keys(after)) \(after.isFrozen)") }
        }
    }

    /// A phone with something unsynced whose gateway has forgotten it and has other rows meanwhile.
    @MainActor
    private static func forgotten(_ gateway: RunningGateway, _ mode: ClientResetMode) async throws -> Phone {
        try await gateway.sql(rows)
        let phone = try await Phone.open(gateway, orders: ["store == 'north'"], mode: mode)
        phone.session.suspend()
        try phone.add("mine")
        try phone.add("n1", title: "mine too", size: 7)
        try await gateway.sql("DELETE FROM orders WHERE _id = 'n2'; INSERT INTO orders (_id, store, size) VALUES ('n3', 'north', 3)")
        try await Phone.forgetDevices(gateway)
        phone.session.resume()
        return phone
    }

    @MainActor
    @Test func `Scenarios 47, 48: recovering keeps what was not uploaded, and uploads it`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let seen = Seen()
            let mode = ClientResetMode.recoverUnsyncedChanges(beforeReset: seen.before, afterReset: seen.after)
            let phone = try await Self.forgotten(gateway, mode)
            try await phone.wait { Set($0.map(\._id)) == ["n1", "n3", "mine"] }
            try await phone.session.wait(for: .upload)
            #expect(seen.all == ["before mine,n1,n2 true", "after mine,n1,n2 true > mine,n1,n3 false"])
            #expect(try await gateway.count("SELECT size FROM orders WHERE _id = 'n1' AND title = 'mine too'") == 7)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
            #expect(phone.said.all.isEmpty && phone.realm.subscriptions.state == .complete, "\(phone.said.all)")
            // A device like any other afterwards.
            try phone.add("later")
            try await phone.session.wait(for: .upload)
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n3'")
            try await phone.wait { Set($0.map(\._id)) == ["n1", "mine", "later"] }
        }
    }

    /// Offline both sides change the same, and the server later.
    @MainActor
    @Test func `Scenario 48: recovering puts one's own values over the server's, and its deletions over one's own edits`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(
                "INSERT INTO orders (_id, store, title, size) SELECT 'n' || i, 'north', 'old', i FROM generate_series(1, 4) i")
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            try phone.add("n1", title: "mine", size: 7)
            try phone.add("n2", title: "mine", size: 7)
            try phone.realm.write {
                phone.realm.delete(try #require(phone.orders.first { $0._id == "n3" }))
                phone.orders.first { $0._id == "n4" }?.size = 8
            }
            try phone.add("both", title: "mine", size: 5)
            try await gateway.sql(
                """
                UPDATE orders SET title = 'theirs', size = 100 WHERE _id = 'n1';
                DELETE FROM orders WHERE _id = 'n2';
                UPDATE orders SET size = 30 WHERE _id = 'n3';
                UPDATE orders SET title = 'beside' WHERE _id = 'n4';
                INSERT INTO orders (_id, store, title, size) VALUES ('both', 'north', 'theirs', 500), ('new', 'north', 'theirs', 6)
                """)
            try await Phone.forgetDevices(gateway)
            phone.session.resume()
            let expected: Set = ["n1 mine 7", "n4 beside 8", "both mine 5", "new theirs 6"]
            try await phone.wait { Set($0.map { "\($0._id) \($0.title ?? "") \($0.size)" }) == expected }
            try await phone.session.wait(for: .upload)
            let others = Set(try await gateway.texts("SELECT concat_ws(' ', _id, title, size) FROM orders"))
            #expect(others == expected && phone.said.all.isEmpty, "\(others), \(phone.said.all)")
        }
    }

    @MainActor
    @Test func `Scenario 47: discarding shows what the server has, and no more`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let seen = Seen()
            let mode = ClientResetMode.discardUnsyncedChanges(beforeReset: seen.before, afterReset: seen.after)
            let phone = try await Self.forgotten(gateway, mode)
            try await phone.wait { Set($0.map(\._id)) == ["n1", "n3"] }
            // The app is told after the file shows it, and before anything else happens.
            try await phone.session.wait(for: .download)
            #expect(phone.orders.first { $0._id == "n1" }?.title == nil)
            #expect(seen.all == ["before mine,n1,n2 true", "after mine,n1,n2 true > n1,n3 false"])
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
            try phone.add("later")
            try await phone.session.wait(for: .upload)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id IN ('mine', 'later')") == 1)
        }
    }

    @MainActor
    @Test func `Scenario 49: where recovery is disabled, one mode discards and the other leaves it to the app`() async throws {
        let sync = try #require(ShopApp.files["sync/config.json"])
            .replacing(#""type": "flexible","#, with: #""type": "flexible", "is_recovery_mode_disabled": true,"#)
        try await RunningGateway.with(files: ["sync/config.json": sync]) { @MainActor gateway in
            let discarding = try await Self.forgotten(gateway, .recoverOrDiscardUnsyncedChanges())
            try await discarding.wait { Set($0.map(\._id)) == ["n1", "n3"] }
            #expect(discarding.said.all.isEmpty)
        }
        try await RunningGateway.with(files: ["sync/config.json": sync]) { @MainActor gateway in
            let phone = try await Self.forgotten(gateway, .recoverUnsyncedChanges())
            await phone.said.wait { !$0.sync.isEmpty }
            let error = try #require(phone.said.sync.first)
            #expect(error.code == .clientResetError && error.clientResetInfo() != nil)
            #expect(phone.session.state == .inactive && phone.keys == ["mine", "n1", "n2"])
        }
    }

    @MainActor
    private final class Held {
        var phone: Phone?
        init(_ phone: Phone) { self.phone = phone }
    }

    @MainActor
    @Test func `Scenario 49: where recovery is allowed again before the next opening, the file stays where it is`() async throws {
        let sync = try #require(ShopApp.files["sync/config.json"])
            .replacing(#""type": "flexible","#, with: #""type": "flexible", "is_recovery_mode_disabled": true,"#)
        let forbidding = ShopApp.files.merging(["sync/config.json": sync]) { $1 }
        try await RunningGateway.deploy { deployment in
            let (held, backup, port) = try await deployment.run(forbidding) { @MainActor gateway in
                let phone = try await Self.forgotten(gateway, .recoverUnsyncedChanges())
                await phone.said.wait { !$0.sync.isEmpty }
                return (Held(phone), try #require(phone.said.sync.first?.clientResetInfo()).0, gateway.port)
            }
            try await deployment.run(ShopApp.files, port: port) { @MainActor gateway in
                let (session, configuration, folder) = try #require(held.phone.map { ($0.session, $0.configuration, $0.folder) })
                session.resume()
                try await held.phone?.wait { Set($0.map(\._id)) == ["n1", "n3", "mine"] }
                try await session.wait(for: .upload)
                held.phone = nil
                // The last handle goes when what is on its way to the main thread has come.
                #expect(try await eventually { session.state == .invalid })
                let realm = try await Realm(configuration: configuration)
                #expect(Set(realm.objects(Order.self).map(\._id)) == ["n1", "n3", "mine"])
                #expect(!FileManager.default.fileExists(atPath: backup))
                withExtendedLifetime(folder) {}
            }
        }
    }

    /// Without a subscription there is no bootstrap to wait for.
    @MainActor
    @Test func `Scenario 47: a file that only sends is reset at once, and what waits in it is sent`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let (seen, said, folder) = (Seen(), Phone.Said(), try Phone.Folder())
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration(
                clientResetMode: .discardUnsyncedChanges(beforeReset: seen.before, afterReset: seen.after))
            configuration.objectTypes = [Order.self, Reading.self]
            let realm = try await Realm(configuration: configuration)
            let session = try #require(realm.syncSession)
            func send(_ key: String) throws {
                try realm.write { realm.create(Reading.self, value: ["_id": key, "store": "north", "value": 1.5] as [String: Any]) }
            }
            try send("r1")
            try await session.wait(for: .upload)
            session.suspend()
            try send("r2")
            try send("r3")
            try await Phone.forgetDevices(gateway)
            session.resume()
            try await session.wait(for: .upload)
            #expect(seen.all == ["before  true", "after  true >  false"])
            #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 3))
            #expect(said.all.isEmpty, "\(said.all)")
            withExtendedLifetime(folder) {}
        }
    }

    @MainActor
    @Test func `Scenario 47: the manual mode tells the app, keeps the file beside and begins anew`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let own = Phone.Said()
            var phone: Phone? = try await Self.forgotten(
                gateway, .manual { error, session in own.add(session == nil ? CancellationError() : error) })
            await own.wait { !$0.all.isEmpty }
            let (backup, token) = try #require(own.sync.first?.clientResetInfo())
            #expect(phone?.said.all.isEmpty == true, "the mode's own handler is told instead")
            let path = try #require(phone?.configuration.fileURL?.path)
            let beside = URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent("recovered-realms")
            #expect(URL(fileURLWithPath: backup).deletingLastPathComponent().path == beside.path)
            SyncSession.immediatelyHandleError(token)
            #expect(FileManager.default.fileExists(atPath: path), "a file that is open stays")
            #expect(!FileManager.default.fileExists(atPath: backup))
            let (configuration, folder) = (try #require(phone?.configuration), phone?.folder)
            phone = nil
            // The last handle goes when what is on its way to the main thread has come.
            let isMoved = try await eventually {
                SyncSession.immediatelyHandleError(token)
                return !FileManager.default.fileExists(atPath: path)
            }
            #expect(isMoved)
            #expect(FileManager.default.fileExists(atPath: backup))
            let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
            #expect(Set(realm.objects(Order.self).map(\._id)) == ["n1", "n3"])
            let kept = try await Realm(
                configuration: Realm.Configuration(fileURL: URL(fileURLWithPath: backup), objectTypes: [Order.self, Tag.self]))
            #expect(Set(kept.objects(Order.self).map(\._id)) == ["n1", "n2", "mine"])
            withExtendedLifetime(folder) {}
        }
    }

    @MainActor
    @Test func `Scenario 50: a reset during an asynchronous opening ends with the opened Realm`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let (said, folder) = (Phone.Said(), try Phone.Folder())
            let user = try await Phone.user(gateway, said, folder)
            var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
                subscriptions.append(QuerySubscription<Order> { $0.store == "north" })
            })
            configuration.objectTypes = [Order.self]
            do { _ = try await Realm(configuration: configuration, downloadBeforeOpen: .always) }
            try await Phone.forgetDevices(gateway)
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n2'")
            let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
            #expect(realm.objects(Order.self).map(\._id) == ["n1"])
            #expect(said.all.isEmpty, "\(said.all)")
        }
    }

    @MainActor
    @Test func `Scenario 54: forgetting one device's file resets that device alone`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let seen = Seen()
            let first = try await Phone.open(
                gateway, orders: ["store == 'north'"], mode: .recoverUnsyncedChanges(beforeReset: seen.before, afterReset: seen.after))
            let other = Seen()
            let second = try await Phone.open(
                gateway, orders: ["store == 'north'"], mode: .recoverUnsyncedChanges(beforeReset: other.before, afterReset: other.after))
            for phone in [first, second] { phone.session.suspend() }
            try await gateway.sql("DELETE FROM sluice.client WHERE id = (SELECT min(id) FROM sluice.client)")
            for phone in [first, second] { phone.session.resume() }
            try first.add("mine")
            try await first.session.wait(for: .upload)
            try await second.wait { $0.contains { $0._id == "mine" } }
            #expect(seen.all.count == 2 && other.all.isEmpty)
        }
    }
}
