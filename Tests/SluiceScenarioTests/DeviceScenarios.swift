import Foundation
import GatewayTestSupport
import SluicePostgres
import SluiceSDK
import Synchronization
import Testing

import class GatewayTestSupport.Tag

/// Devices that know a part, were away for long, were forgotten, or began with a file from elsewhere.
@Suite(.timeLimit(.minutes(5))) struct `Devices that differ` {
    private static let rows = "INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('n2', 'north', 2)"

    @MainActor
    @Test func `Scenario 43: a device that knows a part of a class creates objects whole, and leaves the rest of others alone`()
        async throws
    {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(
                """
                \(Self.rows); UPDATE orders SET secret = 'kept';
                INSERT INTO tags (_id, title, labels, place) VALUES ('old', 'a', '{x,y}', '{"x": 1}')
                """)
            // Neither class has all that the server has.
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            let subscriptions = phone.realm.subscriptions
            try await subscriptions.update { subscriptions.append(QuerySubscription<Tag>(name: "tags")) }
            try phone.realm.write {
                phone.realm.create(Tag.self, value: ["_id": "new", "title": "b"])
                phone.realm.object(ofType: Tag.self, forPrimaryKey: "old")?.title = "c"
                phone.orders.first { $0._id == "n1" }?.title = "d"
            }
            try phone.add("mine")
            try await phone.session.wait(for: .upload)
            #expect(try await gateway.count("SELECT count(*) FROM tags WHERE _id = 'new' AND labels = '{}' AND place IS NULL") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM tags WHERE title = 'c' AND labels = '{x,y}' AND place IS NOT NULL") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE title = 'd' AND secret = 'kept'") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine' AND secret IS NULL") == 1)
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
        }
    }

    @MainActor
    @Test func `Scenario 51: a device that was away for longer than anything is remembered needs no reset`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            let other = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            try phone.add("mine")
            try phone.add("n1", title: "from afar", size: 1)
            // Meanwhile: changes by an app and by SQL, and a hundred days.
            try other.realm.write {
                other.orders.first { $0._id == "n1" }?.size = 7
                other.realm.delete(other.orders.first { $0._id == "n2" } ?? Order())
            }
            try other.add("theirs")
            try await other.session.wait(for: .upload)
            try await gateway.sql(
                """
                INSERT INTO orders (_id, store, size) VALUES ('n4', 'north', 4);
                UPDATE sluice.client SET seen_at = now() - interval '100 days' WHERE id = (SELECT min(id) FROM sluice.client);
                UPDATE sluice.horizon SET at = now() - interval '1 day'
                """)
            // It can write from before the deletion until it knows of it.
            try await other.session.wait(for: .download)
            other.session.suspend()
            other.session.resume()
            try other.add("later")
            try await other.session.wait(for: .upload)
            // What a gateway does every ten minutes.
            let pool = PostgresPool(gateway.conninfo, size: 1)
            try await ClientStore(pool: pool).advanceHorizon()
            await pool.close()
            #expect(try await gateway.count("SELECT count(*) FROM sluice.row_clock WHERE deleted_lsn IS NOT NULL") == 0)
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            for device in [phone, other] {
                try await device.wait { orders in
                    Set(orders.map(\._id)) == ["n1", "n4", "mine", "theirs", "later"]
                        && orders.contains { $0.title == "from afar" && $0.size == 7 }
                }
            }
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
        }
    }

    @MainActor
    @Test func `Scenario 53: what is known of all devices is erased, and each resets and keeps what it had not uploaded`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            var phones: [Phone] = []
            let resets = Mutex((before: 0, after: 0))
            let mode = ClientResetMode.recoverUnsyncedChanges(
                beforeReset: { _ in resets.withLock { $0.before += 1 } }, afterReset: { _, _ in resets.withLock { $0.after += 1 } })
            for number in 1...2 {
                let phone = try await Phone.open(gateway, orders: ["store == 'north'"], mode: mode)
                phone.session.suspend()
                try phone.add("mine\(number)")
                phones.append(phone)
            }
            try await gateway.sql(
                "TRUNCATE sluice.client, sluice.ingest_number, sluice.ingest_answer, sluice.row_clock, sluice.rejected_write")
            try await gateway.sql("UPDATE sluice.horizon SET lsn = '0/0'")
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n2'")
            for phone in phones { phone.session.resume() }
            for phone in phones { try await phone.wait { Set($0.map(\._id)) == ["n1", "mine1", "mine2"] } }
            #expect(try await gateway.count("SELECT count(*) FROM sluice.client") ?? 0 >= 2)
            for phone in phones {
                try await phone.session.wait(for: .upload)
                #expect(phone.realm.subscriptions.state == .complete && phone.session.state == .active)
            }
            let (before, after) = resets.withLock { $0 }
            #expect(before == 2 && after == 2)
            #expect(phones.allSatisfy { $0.said.all.isEmpty }, "\(phones.map(\.said.all))")
        }
    }

    @MainActor
    @Test func `Scenario 55: a bundled file shows its content at once and synchronises, also when the gateway has forgotten its origin`()
        async throws
    {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let origin = try await Phone.open(gateway, orders: ["store == 'north'"])
            let bundle = origin.folder.url.appendingPathComponent("bundle.realm")
            try origin.realm.writeCopy(toFile: bundle)
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n2'; INSERT INTO orders (_id, store, size) VALUES ('n3', 'north', 3)")
            for isForgotten in [false, true] {
                if isForgotten { try await Phone.forgetDevices(gateway) }
                let (said, folder) = (Phone.Said(), try Phone.Folder())
                let user = try await Phone.user(gateway, said, folder)
                var configuration = user.flexibleSyncConfiguration()
                configuration.objectTypes = [Order.self, Tag.self]
                configuration.seedFilePath = bundle
                let realm = try await Realm(configuration: configuration)
                let orders = realm.objects(Order.self)
                #expect(Set(orders.map(\._id)).isSuperset(of: ["n1"]), "forgotten: \(isForgotten)")
                #expect(realm.subscriptions.count == 1)
                let session = try #require(realm.syncSession)
                try await session.wait(for: .download)
                let key = "new\(isForgotten)"
                try realm.write { _ = realm.create(Order.self, value: ["_id": key, "store": "north", "size": 1]) }
                try await session.wait(for: .upload)
                realm.refresh()
                #expect(Set(orders.map(\._id)).isSuperset(of: ["n1", "n3", key]) && !orders.contains { $0._id == "n2" })
                #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = '\(key)'") == 1)
                #expect(said.all.isEmpty, "\(said.all)")
            }
        }
    }

    @MainActor
    @Test func `a logout ends what waits, and the login of the same user goes on with what was written meanwhile`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let (said, folder) = (Phone.Said(), try Phone.Folder())
            let app = App(id: "shop", configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder.url))
            app.syncManager.errorHandler = { error, _ in said.add(error) }
            try await app.emailPasswordAuth.registerUser(email: "ann@example.com", password: "password")
            let credentials = Credentials.emailPassword(email: "ann@example.com", password: "password")
            let user = try await app.login(credentials: credentials)
            var configuration = user.flexibleSyncConfiguration(initialSubscriptions: {
                $0.append(QuerySubscription<Order> { $0.store == "north" })
            })
            configuration.objectTypes = [Order.self, Tag.self]
            let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
            let session = try #require(realm.syncSession)
            try await user.logOut()
            #expect(user.state == .loggedOut && session.state == .inactive)
            try realm.write { _ = realm.create(Order.self, value: ["_id": "mine", "store": "north", "size": 1]) }
            let error = await #expect(throws: SyncError.self) { try await session.wait(for: .upload) }
            #expect(error?.code == .clientUserError)
            let again = try await app.login(credentials: credentials)
            #expect(again == user && session.state == .active)
            try await session.wait(for: .upload)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
            #expect(said.all.isEmpty, "\(said.all)")
        }
    }
}
