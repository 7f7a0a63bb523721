import Foundation
import SluicePostgres

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Measures asymmetric objects: by HTTP until Kafka acknowledges them, and from Kafka into their table.
///
/// By HTTP 64 connections send NDJSON, and the reference writes as many records with librdkafka alone. The sink drains a backlog: the
/// gateway is paused while the records are written, and then runs until the table has them. The reference copies the same rows with psql.
@MainActor
struct IngestBenchmark {
    let setup: Setup

    private static let connections = 64
    private static let objectsPerRequest = 500
    private static let name = "bench_ingest"
    private static var topic: String { "\(name).ingest.Event" }

    private static let tables = ["events", "events_copy"].map {
        """
        CREATE TABLE \($0) (
            "_id" bigint PRIMARY KEY, store bigint NOT NULL, quantity bigint NOT NULL, price double precision NOT NULL,
            name text NOT NULL, note text NOT NULL, updated timestamptz NOT NULL);
        """
    }.joined()

    func run(_ report: inout Report) async throws {
        let (conninfo, sql) = try await setup.database(Self.name)
        try await sql.script(Self.tables)
        let gateway = try await setup.gateway(Self.name, conninfo, kafka: true, app: "ingest-app")
        let count = setup.scaled(200_000) / Self.objectsPerRequest * Self.objectsPerRequest
        let token = try await login(gateway)
        var next = 0
        var (http, bare, sink, copy): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
        for round in 0...setup.rounds {
            let elapsed = try await send(count, from: next, gateway, token)
            try await stored(next + count, sql)
            next += count
            let written = try await produce(count, from: 1_000_000_000 + next, to: "\(Self.topic).bare")

            gateway.child.pause()
            _ = try await produce(count, from: next, to: Self.topic)
            let begin = seconds()
            gateway.child.go()
            try await stored(next + count, sql)
            let drained = seconds() - begin
            let copied = try await self.copy(count, from: next, conninfo)
            next += count
            guard round > 0 else { continue }
            http.append(Double(count) / elapsed)
            bare.append(Double(count) / written)
            sink.append(Double(count) / drained)
            copy.append(Double(count) / copied)
            say(
                "    HTTP \(http.last?.short ?? "")/s, librdkafka \(bare.last?.short ?? "")/s; sink \(sink.last?.short ?? "")/s, "
                    + "COPY \(copy.last?.short ?? "")/s")
        }
        report.add(
            "ingest by HTTP, NDJSON of 200 B objects, \(Self.connections) connections, acknowledged by Kafka",
            ours: "\(http.median.short) objects/s", reference: "librdkafka alone \(bare.median.short) records/s",
            ratio: "\((zip(http, bare).map { $0 / $1 }.median * 100).text()) %", target: "30,000/s")
        report.add(
            "ingest from Kafka into the table, \(count.formatted()) objects waiting",
            ours: "\(sink.median.short) objects/s", reference: "COPY FROM by psql \(copy.median.short) rows/s",
            ratio: "\((zip(sink, copy).map { $0 / $1 }.median * 100).text()) %", target: "50 %")
        gateway.child.stop()
        await sql.close()
    }

    private struct Login: Decodable {
        var access_token: String
    }

    private func login(_ gateway: RunningGateway) async throws -> String {
        guard let url = URL(string: "\(gateway.url)/api/client/v2.0/app/\(gateway.appID)/auth/providers/anon-user/login") else {
            throw BenchFailure("\(gateway.url) is no address.")
        }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data("{}".utf8)
        let (data, _) = try await URLSession.shared.data(for: request)
        return try JSONDecoder().decode(Login.self, from: data).access_token
    }

    /// - Returns: Seconds until the last object is acknowledged.
    private func send(_ count: Int, from first: Int, _ gateway: RunningGateway, _ token: String) async throws -> Double {
        guard let url = URL(string: "\(gateway.url)/v1/ingest/Event") else { throw BenchFailure("\(gateway.url) is no address.") }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.timeoutInterval = 120
        request.setValue("application/x-ndjson", forHTTPHeaderField: "Content-Type")
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        let bodies = stride(from: first, to: first + count, by: Self.objectsPerRequest).map { start in
            Data((start..<start + Self.objectsPerRequest).map(Self.line).joined(separator: "\n").utf8)
        }
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = Self.connections
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let begin = seconds()
        let asked = request
        try await withThrowingTaskGroup(of: Int.self) { group in
            var waiting = bodies.makeIterator()
            let next = { (group: inout ThrowingTaskGroup<Int, any Error>) in
                guard let body = waiting.next() else { return }
                group.addTask {
                    var request = asked
                    request.httpBody = body
                    return (try await session.data(for: request).1 as? HTTPURLResponse)?.statusCode ?? 0
                }
            }
            for _ in 0..<Self.connections { next(&group) }
            while let status = try await group.next() {
                guard status == 200 else { throw BenchFailure("A request was answered with \(status).") }
                next(&group)
            }
        }
        return seconds() - begin
    }

    private static let note = String(repeating: "n", count: 80)

    /// Returns an object in the form that `limits/kafkaproduce` writes.
    private static func line(_ key: Int) -> String {
        "{\"_id\":\(key),\"store\":\(key % 100),\"quantity\":\(key % 1_000),\"price\":\(key % 5_000).25,\"name\":\"item \(key + 10_000_000_000)\","
            + "\"note\":\"\(note)\",\"updated\":\"2023-11-14T22:13:20Z\"}"
    }

    /// - Returns: Seconds until the last record is acknowledged.
    private func produce(_ count: Int, from first: Int, to topic: String) async throws -> Double {
        let child = try Child(
            setup.program("limit-kafkaproduce"), [setup.kafka, topic, "\(first)", "\(count)"], log: setup.log("limit-kafkaproduce"))
        guard let elapsed = Double(try await child.line()) else { throw BenchFailure("limit-kafkaproduce does not say how long it took.") }
        return elapsed
    }

    /// - Returns: The duration in seconds.
    private func copy(_ count: Int, from first: Int, _ conninfo: String) async throws -> Double {
        let path = "\(setup.workspace)/events.tsv"
        let rows = (first..<first + count).map {
            "\($0)\t\($0 % 100)\t\($0 % 1_000)\t\($0 % 5_000).25\titem \($0 + 10_000_000_000)\t\(Self.note)\t2023-11-14T22:13:20Z\n"
        }
        try rows.joined().write(toFile: path, atomically: false, encoding: .utf8)
        let begin = seconds()
        let psql = try Child(
            setup.postgresProgram("psql"), [conninfo, "--quiet", "--command", "\\copy events_copy FROM '\(path)'"], log: setup.log("psql"))
        guard await psql.end() == 0 else { throw BenchFailure("psql could not copy.") }
        return seconds() - begin
    }

    /// Waits until `count` objects are in the table. The sink commits its offsets with the rows. No event is available, so it polls every 5
    /// ms.
    private func stored(_ count: Int, _ sql: PostgresConnection) async throws {
        let deadline = seconds() + 300
        while seconds() < deadline {
            let offsets = try await sql.query(
                "SELECT coalesce(sum(next_offset), 0)::bigint FROM sluice.ingest_offset WHERE topic = '\(Self.topic)'")
            if (offsets.int(0, 0) ?? 0) >= Int64(count) { return }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw BenchFailure("In 300 s not all of \(count) objects came into the table.")
    }
}
