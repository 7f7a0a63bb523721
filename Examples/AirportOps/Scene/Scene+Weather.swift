import AirportOpsModels
import Foundation
import Logging
import RealmSwift
import SluiceKafka

extension AirportScene {
    /// Reports per station. Every tenth is impossible.
    private static let reports = 200

    /// Sends reports of three stations while the gateway is killed and the broker restarted. Each accepted report is stored once.
    func reportWeather() async throws {
        let sdk = try setup.data.weather(origin: "JFK", month: 12, count: Self.reports)
        let http = try setup.data.weather(origin: "LGA", month: 12, count: Self.reports)
        let kafka = try setup.data.weather(origin: "EWR", month: 12, count: Self.reports)
        let third = Self.reports / 3
        try await send(sdk[..<third], http[..<third], kafka[..<third])
        gateways[0].kill()
        try writeWeather(sdk[third..<(2 * third)])
        gateways[0] = try await Gateway.start(setup, port: gateway.port)
        try await send([], http[third..<(2 * third)], kafka[third..<(2 * third)])
        if let restart = setup.restartKafka { try await run(restart) }
        try await send(sdk[(2 * third)...], http[(2 * third)...], kafka[(2 * third)...])
        let expected = [sdk, http, kafka].reduce(0) { $0 + $1.indices.filter { !Self.isImpossible($0) }.count }
        let impossible = 3 * Self.reports - expected
        try await eventually("all \(expected) accepted observations are in PostgreSQL", seconds: 90) {
            try await self.number("SELECT count(*) FROM weather_observations") == expected
        }
        // Rejections may be recorded after the last accepted observation is stored.
        try await eventually("all \(impossible) impossible observations are recorded as rejected") {
            try await self.number("SELECT count(DISTINCT object::jsonb ->> '_id') FROM sluice.ingest_rejected") >= impossible
        }
        let rejected = try await number("SELECT count(DISTINCT object::jsonb ->> '_id') FROM sluice.ingest_rejected")
        try require(rejected == impossible, "\(impossible) observations are impossible, \(rejected) are recorded as rejected")
        let foreign = try await number("SELECT count(*) FROM weather_observations WHERE units <> 'si' OR temp > 60")
        try require(foreign == 0, "\(foreign) observations are not normalised")
        let reason = try await value("SELECT reason FROM sluice.ingest_rejected LIMIT 1")
        figures.observations = expected
        figures.rejectedObservations = impossible
        reporter.step(
            "f",
            "\(expected) observations of three stations are stored once each, across a SIGKILL of the gateway and a restart of the broker; "
                + "\(impossible) impossible ones were rejected (\(reason ?? ""))")
    }

    private nonisolated static func isImpossible(_ index: Int) -> Bool { index % 10 == 9 }

    private func send(_ sdk: ArraySlice<Weather>, _ http: ArraySlice<Weather>, _ kafka: ArraySlice<Weather>) async throws {
        try writeWeather(sdk)
        try await postWeather(http)
        try await produceWeather(kafka)
    }

    /// Writes reports through the SDK, as asymmetric objects, ten per transaction.
    private func writeWeather(_ reports: ArraySlice<Weather>) throws {
        guard let realm = a.realm else { throw SceneFailure("Ada has no realm.") }
        for start in stride(from: reports.startIndex, to: reports.endIndex, by: 10) {
            try realm.write {
                for index in start..<min(start + 10, reports.endIndex) {
                    realm.create(WeatherObservation.self, value: object(reports[index], impossible: Self.isImpossible(index)))
                }
            }
        }
    }

    private func object(_ report: Weather, impossible: Bool) -> [String: Any] {
        var values: [String: Any] = ["_id": report.id("sdk"), "origin": report.origin, "units": "us", "source": "sdk"]
        values["time"] = ISO8601DateFormatter().date(from: report.time) ?? Date(timeIntervalSince1970: 0)
        let numbers = [
            ("temp", impossible ? 999 : report.temp), ("humidity", report.humidity), ("wind_direction", report.windDirection),
            ("wind_speed", report.windSpeed), ("pressure", report.pressure),
        ]
        for (name, value) in numbers { if let value { values[name] = value } }
        return values
    }

    /// Sends reports by HTTP, as NDJSON. A batch without an answer is sent again.
    private func postWeather(_ reports: ArraySlice<Weather>) async throws {
        guard let token = a.user?.accessToken else { throw SceneFailure("Ada has no access token.") }
        let lines = reports.indices.map { line(reports[$0], "http", impossible: Self.isImpossible($0)) }
        guard !lines.isEmpty else { return }
        let body = Data(lines.joined(separator: "\n").utf8)
        try await eventually("the gateway takes \(lines.count) lines of NDJSON", seconds: 60) {
            let url = "\(self.gateway.url)/v1/ingest/WeatherObservation"
            guard let answer = try? await HTTP.post(url, body, type: "application/x-ndjson", token: token) else { return false }
            if answer.status == 401 { throw SceneFailure("HTTP ingest: \(answer.body)") }
            return answer.status == 200
        }
    }

    /// Sends reports directly to the ingest topic, like any other producer.
    private func produceWeather(_ reports: ArraySlice<Weather>) async throws {
        guard !reports.isEmpty else { return }
        let producer = try KafkaProducer(
            KafkaConfiguration(bootstrapServers: setup.kafka, clientID: "station-ewr"), logger: Logging.Logger(label: "station"))
        for index in reports.indices {
            let text = line(reports[index], "kafka", impossible: Self.isImpossible(index))
            _ = try await producer.send(
                topic: "\(setup.appID).ingest.WeatherObservation", key: Array(reports[index].origin.utf8), value: Array(text.utf8))
        }
        await producer.close()
    }

    private func line(_ report: Weather, _ source: String, impossible: Bool) -> String {
        var report = report
        if impossible { report.temp = 999 }
        return report.json(source: source)
    }
}
