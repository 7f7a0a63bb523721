import AirportOpsModels
import Foundation
import RealmSwift
import SluicePostgres
import Synchronization
import Testing

/// An agent's device that writes one transaction after the other while its gateway and its database come and go.
@MainActor
final class GateAgent {
    let number: Int
    /// How many transactions are in its file. Each counts one up at the agent's own flight, and one at flight 0, which all share.
    private(set) var writes = 0
    private let realm: Realm
    private let folder: DataFolder
    private let told = Told()
    /// Errors that the app was told of.
    var errors: [String] { told.errors.withLock { $0 } }

    private final class Told: Sendable {
        let errors = Mutex<[String]>([])
    }

    /// - Parameter number: of the agent's own flight, which is there.
    init(_ number: Int, of field: IngestField) async throws {
        self.number = number
        folder = try DataFolder()
        let place = URL(fileURLWithPath: folder.path)
        let app = App(id: field.app, configuration: AppConfiguration(baseURL: field.url(number), storageDirectory: place))
        app.syncManager.errorHandler = { [told] error, _ in told.errors.withLock { $0.append("\(error)") } }
        let user = try await app.login(credentials: .emailPassword(email: IngestField.email, password: IngestField.password))
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            subscriptions.append(QuerySubscription<Flight> { $0.origin == "JFK" })
        })
        configuration.objectTypes = [Flight.self]
        configuration.fileURL = place.appendingPathComponent("agent.realm")
        realm = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
    }

    /// Writes until the last fault is over, and says when what it wrote after each is acknowledged.
    func write(during faults: Int, at pace: Pace) async throws -> [String] {
        var fault = 0
        repeat {
            fault = await pace.mark(of: "faults")
            for _ in 0..<10 {
                try write()
                // The pace of a user who writes on, whatever happens meanwhile.
                try await Task.sleep(for: .milliseconds(20))
            }
            // Who goes on writing meanwhile may wait for ever: it is for all that there is.
            try await realm.syncSession?.wait(for: .upload)
            await pace.advance("agent \(number)", to: fault)
        } while fault < faults
        return []
    }

    /// Writes once, and waits until the gateway has acknowledged it.
    func upload() async throws {
        try write()
        try await realm.syncSession?.wait(for: .upload)
    }

    private func write() throws {
        let own = try #require(realm.object(ofType: Flight.self, forPrimaryKey: number))
        let shared = try #require(realm.object(ofType: Flight.self, forPrimaryKey: 0))
        try realm.write {
            own.increment(\.dep_delay)
            own.remark = "\(writes)"
            shared.increment(\.dep_delay)
        }
        writes += 1
    }

    /// What its file has of flights, once it has everything.
    func flights() async throws -> [String] {
        try await realm.syncSession?.wait(for: .download)
        realm.refresh()
        return realm.objects(Flight.self).sorted(byKeyPath: "_id").map { flight in
            "\(flight._id) \(flight.dep_delay.map { "\($0)" } ?? "null") \(flight.remark ?? "null") \(flight.carrier)"
        }
    }

    func end() { realm.syncSession?.suspend() }
}

/// Another program that adds one flight after the other by SQL.
actor FlightDesk {
    /// Ids of flights of which PostgreSQL has said that they are committed; and of those of which it has said nothing.
    private(set) var committed: [Int] = []
    private(set) var unknown: [Int] = []

    /// The columns that an agent's file is held against.
    static let query = """
        SELECT "_id" || ' ' || coalesce(dep_delay::text, 'null') || ' ' || coalesce(remark, 'null') || ' ' || carrier
        FROM flights WHERE origin = 'JFK' ORDER BY "_id"
        """

    static func insert(_ ids: ClosedRange<Int>) -> String {
        """
        INSERT INTO flights ("_id", year, month, day, sched_dep_time, sched_arr_time, dep_delay, carrier, flight, origin, dest, distance,
            hour, minute, time_hour)
        SELECT id, 2013, 12, 1, 517, 830, 0, 'UA', id, 'JFK', 'IAH', 1400, 5, 17, '2013-12-01T05:00:00Z'
        FROM generate_series(\(ids.lowerBound), \(ids.upperBound)) id
        """
    }

    func write(to postgres: String, during faults: Int, at pace: Pace) async throws -> [String] {
        var connection: PostgresConnection?
        for id in 1_000... {
            if await pace.mark(of: "faults") >= faults { break }
            do {
                let open = if let connection { connection } else { try await PostgresConnection.connect(postgres) }
                connection = open
                try await open.query(Self.insert(id...id))
                committed.append(id)
            } catch {
                unknown.append(id)
                await connection?.close()
                connection = nil
            }
            // The pace of a program that writes on, whatever happens meanwhile.
            try await Task.sleep(for: .milliseconds(20))
        }
        await connection?.close()
        return []
    }
}
