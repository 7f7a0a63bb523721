package import Foundation
package import SluiceSDK
import TestSupport
package import Testing

package final class Order: Object {
    @Persisted(primaryKey: true) package var _id: String
    @Persisted package var store: String
    @Persisted package var title: String?
    @Persisted package var size: Int
}

package final class Tag: Object {
    @Persisted(primaryKey: true) package var _id: String
    @Persisted package var title: String?
}

/// An app on a device: a user with a synced Realm on the main actor, and what sync said of it.
@MainActor
package final class Phone {
    package let realm: Realm
    package let said: Said
    package let configuration: Realm.Configuration
    package let folder: Folder
    private var tokens: [NotificationToken] = []

    /// Whatever the error handlers were told.
    package final class Said: Sendable {
        package struct Errors: Sendable {
            package var all: [any Error]

            package init(all: [any Error] = []) { self.all = all }

            package var sync: [SyncError] { all.compactMap { $0 as? SyncError } }
        }

        private let errors = Watched(Errors())

        package init() {}

        package var all: [any Error] { errors.value.all }
        package var sync: [SyncError] { errors.value.sync }

        package func add(_ error: any Error) { errors.change { $0.all.append(error) } }

        /// Waits until the condition holds.
        package func wait(_ isEnough: @escaping @Sendable (Errors) -> Bool) async {
            let isMet = await errors.until(isEnough)
            #expect(isMet, "the errors were \(all)")
        }
    }

    package final class Folder: Sendable {
        package let url = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-phone-\(UUID().uuidString)")
        package init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(at: url) }

        /// Where a device of its own has its file.
        package var replica: String { url.appendingPathComponent("a.replica").path }

        /// Writes a file at once, as an editor or a deployment is to do it.
        package func put(_ text: String, at path: String) throws {
            let file = url.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file, options: .atomic)
        }
    }

    private init(_ realm: Realm, _ said: Said, _ folder: Folder) {
        self.realm = realm
        self.said = said
        self.folder = folder
        configuration = realm.configuration
    }

    /// Somebody without a name, or a user of the gateway's.
    package static func user(_ gateway: RunningGateway, _ said: Said, _ folder: Folder, name: String? = nil) async throws -> User {
        let app = App(id: gateway.app, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder.url))
        app.syncManager.errorHandler = { error, _ in said.add(error) }
        return try await app.login(credentials: name.map { .emailPassword(email: $0, password: "password") } ?? .anonymous)
    }

    /// - Parameter queries: what orders to begin with.
    package static func open(
        _ gateway: RunningGateway, orders queries: [String] = [], mode: ClientResetMode = .recoverUnsyncedChanges(), name: String? = nil
    ) async throws -> Phone {
        let (said, folder) = (Said(), try Folder())
        let user = try await user(gateway, said, folder, name: name)
        var configuration = user.flexibleSyncConfiguration(
            clientResetMode: mode,
            initialSubscriptions: { subscriptions in
                for query in queries { subscriptions.append(QuerySubscription<Order>(name: query, where: query)) }
            })
        configuration.objectTypes = [Order.self, Tag.self]
        let realm = try await Realm(configuration: configuration, downloadBeforeOpen: queries.isEmpty ? .never : .always)
        return Phone(realm, said, folder)
    }

    /// - Parameter configuration: of a file that another user's Realm may hold yet, which lets go of it on its own time.
    package static func open(_ configuration: Realm.Configuration, _ said: Said, _ folder: Folder) async throws -> Phone {
        let phone = try await found { () async throws -> Phone? in
            do {
                return Phone(try await Realm(configuration: configuration), said, folder)
            } catch Realm.Error.alreadyOpen { return nil }
        }
        return try #require(phone, "another user's Realm still holds the file")
    }

    package var session: SyncSession {
        guard let session = realm.syncSession else { fatalError("the Realm is synced") }
        return session
    }

    package var orders: Results<Order> { realm.objects(Order.self) }
    package var keys: Set<String> { Set(orders.map(\._id)) }

    package func add(_ key: String, store: String = "north", title: String? = nil, size: Int = 1) throws {
        try realm.write {
            _ = realm.create(Order.self, value: ["_id": key, "store": store, "title": title as Any, "size": size], update: .modified)
        }
    }

    /// Waits until the orders are as wanted.
    package func wait(
        _ isEnough: @escaping @MainActor (Results<Order>) -> Bool, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let results = orders
        let (changes, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = results.observe { _ in signal.yield() }
        let alarm = alarm { signal.finish() }
        for await _ in changes where isEnough(results) { break }
        alarm.cancel()
        token.invalidate()
        #expect(isEnough(results), "\(results.map { "\($0._id) \($0.store) \($0.title ?? "")" })", sourceLocation: sourceLocation)
    }

    /// Whether the device, with all that it had to upload, comes to show what PostgreSQL has of the north's orders.
    package func settles(_ gateway: RunningGateway, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await session.wait(for: .upload)
        let expected = Set(try await gateway.texts("SELECT concat_ws(' ', _id, size) FROM orders WHERE store = 'north'"))
        try await wait({ Set($0.map { "\($0._id) \($0.size)" }) == expected }, sourceLocation: sourceLocation)
    }

    /// Has the gateway forget every device.
    package static func forgetDevices(_ gateway: RunningGateway) async throws { try await gateway.sql("DELETE FROM sluice.client") }
}
