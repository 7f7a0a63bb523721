import AirportOpsModels
import Foundation
import Logging
import RealmSwift
import SluiceKafka
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One of the ways into a table. What was sent without an acknowledgement is sent again.
protocol IngestSender: Sendable {
    var way: String { get }
    func send(_ numbers: [Int]) async throws
    /// Waits until everything is acknowledged.
    func finish() async throws
}

extension IngestSender {
    func finish() async throws {}
}

struct HTTPSender: IngestSender {
    let field: IngestField
    let token: String
    var way: String { "http" }

    func send(_ numbers: [Int]) async throws {
        let body = Data(numbers.map { IngestPlan.line(way, $0) }.joined(separator: "\n").utf8)
        var attempt = -1
        let areTaken = try await eventually(every: .milliseconds(50)) {
            attempt += 1
            return try await isTaken(body, by: field.url(attempt))
        }
        try #require(areTaken, "No gateway takes anything any more.")
    }

    private func isTaken(_ body: Data, by url: String) async throws -> Bool {
        var request = URLRequest(url: try #require(URL(string: "\(url)/v1/ingest/WeatherObservation")))
        request.httpMethod = "POST"
        request.httpBody = body
        request.timeoutInterval = 60
        request.setValue("application/x-ndjson", forHTTPHeaderField: "Content-Type")
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        // A gateway that is killed closes the connection without an answer.
        guard let (data, response) = try? await URLSession.shared.data(for: request) else { return false }
        let status = (response as? HTTPURLResponse)?.statusCode
        try #require(status != 401 && status != 403 && status != 422, "\(String(decoding: data, as: UTF8.self))")
        return status == 200
    }
}

struct KafkaSender: IngestSender {
    let topic: String
    private let producer: KafkaProducer
    var way: String { "kafka" }

    init(topic: String, servers: String) throws {
        self.topic = topic
        producer = try KafkaProducer(
            KafkaConfiguration(bootstrapServers: servers, clientID: "station"), logger: Logging.Logger(label: "station"))
    }

    func send(_ numbers: [Int]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in numbers { group.addTask { try await send(number) } }
            try await group.waitForAll()
        }
    }

    private func send(_ number: Int) async throws {
        let (key, value) = (Array("\(way)-\(number)".utf8), Array(IngestPlan.line(way, number).utf8))
        let deadline = ContinuousClock.now + .seconds(180)
        while (try? await producer.send(topic: topic, key: key, value: value)) == nil {
            try #require(ContinuousClock.now < deadline, "The broker takes nothing any more.")
        }
    }

    func finish() async throws { await producer.close() }
}

/// An app with its replica; its gateway comes back on the same port.
@MainActor
final class DeviceSender: IngestSender {
    nonisolated var way: String { "sdk" }
    private let realm: Realm
    private let folder: DataFolder
    private let time = Date(timeIntervalSince1970: 1_385_874_000)

    @MainActor init(field: IngestField) async throws {
        folder = try DataFolder()
        let app = App(id: field.app, configuration: AppConfiguration(baseURL: field.url(0)))
        let user = try await app.login(credentials: .emailPassword(email: IngestField.email, password: IngestField.password))
        var configuration = user.flexibleSyncConfiguration()
        configuration.objectTypes = [WeatherObservation.self]
        configuration.fileURL = URL(fileURLWithPath: folder.path).appendingPathComponent("station.realm")
        realm = try await Realm(configuration: configuration)
    }

    @MainActor func send(_ numbers: [Int]) async throws {
        try realm.write {
            for number in numbers {
                realm.create(
                    WeatherObservation.self,
                    value: [
                        "_id": "\(way)-\(number)", "origin": "JFK", "time": time, "temp": IngestPlan.isRefused(number) ? 999.0 : 40.0,
                        "units": "us", "source": way,
                    ] as [String: Any])
            }
        }
        await Task.yield()
    }

    @MainActor func finish() async throws {
        try await realm.syncSession?.wait(for: .upload)
        realm.syncSession?.suspend()
    }
}
