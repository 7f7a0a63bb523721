import Foundation
import GatewayTestSupport
import SluiceSDK
import TestSupport
import Testing

/// A file that one user leaves and another opens.
@Suite(.timeLimit(.minutes(5))) struct `A file of another user` {
    private static let all = "store IN {'north', 'south'}"

    /// A device on which Ann wrote offline, and where Bob, who has the south, logs in.
    @MainActor
    private struct Device {
        let said = Phone.Said()
        let folder: Phone.Folder
        let gateway: RunningGateway
        let bob: User
        let path: URL
        let anns: Realm.Configuration

        init(_ gateway: RunningGateway) async throws {
            self.gateway = gateway
            folder = try Phone.Folder()
            try await gateway.sql(
                """
                DELETE FROM orders;
                INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('s1', 'south', 1)
                """)
            let ann = try await Phone.user(gateway, said, folder)
            bob = try await Phone.user(gateway, said, folder, name: "bob@example.com")
            var configuration = ann.flexibleSyncConfiguration(
                initialSubscriptions: { $0.append(QuerySubscription<Order>(name: "all", where: all)) })
            configuration.objectTypes = [Order.self, Reading.self]
            path = try #require(configuration.fileURL)
            anns = configuration
            let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
            #expect(Set(realm.objects(Order.self).map(\._id)) == ["n1", "s1"])
            realm.syncSession?.suspend()
            try realm.write {
                realm.create(Order.self, value: ["_id": "anns", "store": "south", "size": 1] as [String: Any])
                realm.objects(Order.self).first { $0._id == "s1" }?.title = "Ann's"
                realm.create(Reading.self, value: ["_id": "anns", "store": "south", "value": 1.5] as [String: Any])
            }
            // While Ann's Realm is there, nobody else gets it, nor what she sees in it.
            let other = self.configuration(.recoverUnsyncedChanges())
            let error = await #expect(throws: Realm.Error.self) { _ = try await Realm(configuration: other) }
            #expect(error?.code == .alreadyOpen)
        }

        /// Bob's, with Ann's path.
        func configuration(_ mode: ClientResetMode) -> Realm.Configuration {
            var configuration = bob.flexibleSyncConfiguration(
                clientResetMode: mode,
                initialSubscriptions: { $0.append(QuerySubscription<Order>(name: "all", where: all)) })
            configuration.objectTypes = [Order.self, Reading.self]
            configuration.fileURL = path
            return configuration
        }

        func expectNothingOfAnns() async throws {
            let written = "SELECT count(*) FROM orders WHERE _id = 'anns' OR title IS NOT NULL"
            #expect(try await gateway.count(written) == 0)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.rejected_write") == 0)
        }
    }

    @MainActor
    @Test(arguments: [false, true])
    func `Scenario 62: begins anew where the mode discards, and what was not uploaded is nobody's`(mayRecover: Bool) async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.createUser("bob@example.com", customData: #"{"store":"south"}"#)
            let device = try await Device(gateway)
            let seen = `A client reset`.Seen()
            let mode: ClientResetMode =
                mayRecover
                ? .recoverOrDiscardUnsyncedChanges(beforeReset: seen.before, afterReset: seen.after)
                : .discardUnsyncedChanges(beforeReset: seen.before, afterReset: seen.after)
            let phone = try await Phone.open(device.configuration(mode), device.said, device.folder)
            try await phone.wait { $0.map(\._id) == ["s1"] && $0.first?.title == nil }
            // The app is told after the file shows it, and before anything else happens.
            try await phone.session.wait(for: .download)
            #expect(seen.all == ["before anns,n1,s1 true", "after anns,n1,s1 true > s1 false"])
            try phone.realm.write {
                phone.realm.create(Order.self, value: ["_id": "bobs", "store": "south", "size": 1] as [String: Any])
            }
            try await phone.session.wait(for: .upload)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'bobs'") == 1)
            #expect(device.said.all.isEmpty, "\(device.said.all)")
            try await device.expectNothingOfAnns()
        }
    }

    @MainActor
    @Test(arguments: [false, true])
    func `Scenario 62: is left to the app where the mode does not discard, and moved aside by the next opening alone`(
        isManual: Bool
    ) async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.createUser("bob@example.com", customData: #"{"store":"south"}"#)
            let device = try await Device(gateway)
            let own = Phone.Said()
            let seen = `A client reset`.Seen()
            let configuration = device.configuration(
                isManual
                    ? .manual { error, _ in own.add(error) } : .recoverUnsyncedChanges(beforeReset: seen.before, afterReset: seen.after))
            var phone: Phone? = try await Phone.open(configuration, device.said, device.folder)
            await (isManual ? own : device.said).wait { !$0.sync.isEmpty }
            #expect(own.all.count + device.said.all.count == 1 && seen.all.isEmpty)
            let error = try #require(own.sync.first ?? device.said.sync.first)
            let (backup, _) = try #require(error.clientResetInfo())
            #expect(error.code == .clientResetError && phone?.session.state == .inactive)
            #expect(phone?.keys == ["anns", "n1", "s1"] && !FileManager.default.fileExists(atPath: backup))
            phone = nil
            // The last handle goes when what is on its way to the main thread has come; nothing but an opening moves the file.
            _ = try await eventually {
                #expect(!FileManager.default.fileExists(atPath: backup))
                phone = try await Phone.open(configuration, device.said, device.folder)
                if FileManager.default.fileExists(atPath: backup) { return true }
                phone = nil
                return false
            }
            let fresh = try #require(phone)
            try await fresh.wait { $0.map(\._id) == ["s1"] && $0.first?.title == nil }
            try await fresh.session.wait(for: .upload)
            try await device.expectNothingOfAnns()
            let kept = try await Realm(
                configuration: Realm.Configuration(fileURL: URL(fileURLWithPath: backup), objectTypes: [Order.self]))
            #expect(Set(kept.objects(Order.self).map(\._id)) == ["anns", "n1", "s1"])
        }
    }

    /// What Bob's app is left with is nothing to Ann.
    @MainActor
    @Test func `Scenario 62: is hers again when she opens it, with all that she wrote`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.createUser("bob@example.com", customData: #"{"store":"south"}"#)
            let device = try await Device(gateway)
            let own = Phone.Said()
            let configuration = device.configuration(.manual { error, _ in own.add(error) })
            var phone: Phone? = try await Phone.open(configuration, device.said, device.folder)
            await own.wait { !$0.sync.isEmpty }
            let (backup, _) = try #require(own.sync.first?.clientResetInfo())
            let session = try #require(phone?.session)
            phone = nil
            // The last handle goes when what is on its way to the main thread has come.
            #expect(try await eventually { session.state == .invalid })
            let hers = try await Phone.open(device.anns, device.said, device.folder)
            #expect(hers.keys == ["anns", "n1", "s1"] && !FileManager.default.fileExists(atPath: backup))
            try await hers.session.wait(for: .upload)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'anns'") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE title = 'Ann''s'") == 1)
            #expect(device.said.all.isEmpty, "\(device.said.all)")
        }
    }
}
