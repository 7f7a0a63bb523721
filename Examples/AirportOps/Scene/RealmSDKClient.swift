import RealmTestClient
import SluiceCore
import SluiceRealm

/// A client of Realm's sync protocol, as an app with a Realm SDK contains one: the tests' client, over a WebSocket.
@MainActor
final class RealmSDKClient {
    private let client: RealmTestClient

    /// The class of flights, as the app's schema file has it.
    private static let schema: Schema = {
        var properties = [Property(id: 1, name: "_id", type: .int)]
        func add(_ names: [String], _ type: PropertyType, isOptional: Bool = false) {
            for name in names {
                properties.append(Property(id: UInt32(properties.count + 1), name: name, type: type, isOptional: isOptional))
            }
        }
        add(["year", "month", "day", "sched_dep_time", "sched_arr_time", "flight", "distance", "hour", "minute"], .int)
        add(["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"], .int, isOptional: true)
        add(["carrier", "origin", "dest"], .string)
        add(["tailnum", "remark", "gate"], .string, isOptional: true)
        add(["time_hour"], .timestamp)
        return Schema([ObjectType(name: "Flight", properties: properties)])
    }()

    /// Connects and waits for the objects of a query.
    init(_ url: String, app: String, token: String, query: String) async throws {
        client = RealmTestClient(Self.schema)
        try await client.connect(url, app: app, token: token)
        try await client.subscribe(["Flight": query])
    }

    var count: Int { client.file.objects.count }

    private static func flight(_ key: Int) -> ObjectKey { ObjectKey(type: "Flight", key: .int(Int64(key))) }

    func write(remark: String, of key: Int) async throws {
        try await client.write([.update(RealmPath(Self.flight(key), "remark"), .value(.string(remark)))])
        try await client.synchronize()
    }

    /// Waits until the client has a gate that others wrote.
    func receive(gate: String, of key: Int) async throws {
        try await client.receive { $0.objects[Self.flight(key)]?["gate"] == .string(gate) }
    }

    func disconnect() { client.disconnect() }
}
