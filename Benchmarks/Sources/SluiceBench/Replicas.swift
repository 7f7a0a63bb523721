import Foundation
import RealmSwift

/// Opens replicas, each with its own login.
@MainActor
enum Replicas {
    static func open(
        _ gateway: RunningGateway, folder: String, download: Realm.OpenBehavior = .always,
        _ query: @escaping @Sendable (Query<Item>) -> Query<Bool>
    ) async throws -> Realm {
        let app = App(
            id: gateway.appID, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: URL(fileURLWithPath: folder)))
        let user = try await app.login(credentials: .anonymous)
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            subscriptions.append(QuerySubscription<Item>(name: "items", query: query))
        })
        configuration.objectTypes = [Item.self]
        configuration.fileURL = URL(fileURLWithPath: folder).appendingPathComponent("items.realm")
        return try await Realm(configuration: configuration, downloadBeforeOpen: download)
    }
}

/// Waits until a condition of the main actor holds. It polls every 5 ms and suspends in between.
@MainActor
func until(_ what: String, within limit: Double = 120, _ condition: () -> Bool) async throws {
    let deadline = seconds() + limit
    while !condition() {
        guard seconds() < deadline else { throw BenchFailure("In \(limit.text()) s it did not come true that \(what).") }
        try await Task.sleep(for: .milliseconds(5))
    }
}
