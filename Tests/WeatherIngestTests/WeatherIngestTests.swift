import Foundation
import Glibc
import Logging
import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import Testing

@Suite struct `Ingesting weather` {
    /// `SLUICE_TEST_PLUGIN_HOST` is the folder of another build, such as one with a sanitizer (`dev/asan`).
    private static let folder: String = {
        if let folder = ProcessInfo.processInfo.environment["SLUICE_TEST_PLUGIN_HOST"] { return folder }
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let path = String(decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return path.split(separator: "/").dropLast().map { "/" + $0 }.joined()
    }()

    private static let quantities = [
        "temp", "dewpoint", "humidity", "wind_direction", "wind_speed", "wind_gust", "precipitation", "pressure", "visibility",
    ]

    private static let schema: Schema = {
        var properties = [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "origin", type: .string, isOptional: true),
            Property(id: 3, name: "time", type: .timestamp, isOptional: true),
            Property(id: 4, name: "units", type: .string, isOptional: true),
            Property(id: 5, name: "source", type: .string, isOptional: true),
        ]
        for (index, name) in quantities.enumerated() {
            properties.append(Property(id: UInt32(index + 6), name: name, type: .double, isOptional: true))
        }
        return Schema([
            ObjectType(name: "WeatherObservation", kind: .asymmetric, properties: properties),
            ObjectType(name: "Other", kind: .asymmetric, properties: [Property(id: 1, name: "_id", type: .string)]),
        ])
    }()

    /// - Parameter times: how often the plugin stands in the chain.
    private func verdicts(
        _ objects: [[String: Value]], type: String = "WeatherObservation", times: Int = 1
    ) async throws -> [IngestVerdict] {
        let plugin = PluginSpec(path: "\(Self.folder)/libWeatherIngest.so", deadline: 30_000_000_000)
        let chain = PluginChain(
            plugins: Array(repeating: plugin, count: times), hostExecutable: "\(Self.folder)/sluice-plugin-host",
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await chain.start()
        let type = try #require(Self.schema[type])
        do {
            let verdicts = try await chain.ingest(ObjectRows(type: type, values: objects), schema: Self.schema)
            await chain.stop()
            return verdicts
        } catch {
            await chain.stop()
            throw error
        }
    }

    /// The first observation of nycflights13 at Kennedy airport.
    private let kennedy: [String: Value] = [
        "_id": .string("JFK-2013-01-01T06:00Z"), "origin": .string("JFK"), "time": .timestamp(Timestamp(seconds: 1_357_020_000)),
        "units": .string("us"), "temp": .double(39.02), "dewpoint": .double(26.06), "humidity": .double(59.37),
        "wind_direction": .double(260),
        "wind_speed": .double(12.65858), "wind_gust": .null, "precipitation": .double(0.5), "pressure": .double(1_012.6),
        "visibility": .double(10),
    ]

    private static func rejected(_ reason: String) -> IngestVerdict { .reject(reason: "WeatherIngest rejected it: \(reason)") }

    /// By one who sees it, and by a second one of the chain, who sees what the first made of it: SI.
    @Test(arguments: [1, 2]) func `US units become SI`(times: Int) async throws {
        let verdicts = try await verdicts([kennedy], times: times)
        let expected: [String: Value] = [
            "units": .string("si"), "temp": .double(3.9), "dewpoint": .double(-3.3), "humidity": .double(59.37),
            "wind_direction": .double(260), "wind_speed": .double(5.6589), "precipitation": .double(12.7),
            "pressure": .double(1_012.6), "visibility": .double(16.0934),
        ]
        #expect(verdicts == [.amend(expected)])
    }

    @Test func `SI stays as it is`() async throws {
        let object: [String: Value] = ["_id": .string("a"), "units": .string("si"), "temp": .double(-12.25), "wind_speed": .double(3)]
        #expect(try await verdicts([object]) == [.accept])
    }

    @Test(arguments: [
        ("temp", 60.1, "temp is 60.1 °C, outside of -90…60 °C"), ("temp", -91, "temp is -91 °C, outside of -90…60 °C"),
        ("temp", .nan, "temp is nan °C, outside of -90…60 °C"), ("dewpoint", 100, "dewpoint is 100 °C, outside of -90…60 °C"),
        ("humidity", 100.5, "humidity is 100.5 %, outside of 0…100 %"), ("humidity", -1, "humidity is -1 %, outside of 0…100 %"),
        ("wind_direction", 361, "wind_direction is 361 °, outside of 0…360 °"),
        ("wind_speed", -0.5, "wind_speed is -0.5 m/s, outside of 0…120 m/s"),
        ("wind_speed", 120.01, "wind_speed is 120.01 m/s, outside of 0…120 m/s"),
        ("wind_gust", 500, "wind_gust is 500 m/s, outside of 0…120 m/s"),
        ("precipitation", -1, "precipitation is -1 mm, outside of 0…500 mm"),
        ("pressure", 849, "pressure is 849 hPa, outside of 850…1100 hPa"),
        ("pressure", .infinity, "pressure is inf hPa, outside of 850…1100 hPa"),
        ("visibility", -2, "visibility is -2 km, outside of 0…400 km"),
    ])
    func `the impossible is rejected with field, value and range`(field: String, value: Double, reason: String) async throws {
        let object: [String: Value] = ["_id": .string("a"), "units": .string("si"), field: .double(value)]
        #expect(try await verdicts([object]) == [Self.rejected(reason)])
    }

    @Test(arguments: [
        ("temp", -90), ("temp", 60), ("humidity", 0), ("humidity", 100), ("wind_direction", 0), ("wind_direction", 360), ("wind_speed", 0),
        ("wind_speed", 120), ("pressure", 850), ("pressure", 1_100), ("precipitation", 0),
    ])
    func `the ends of a range are possible`(field: String, value: Double) async throws {
        let object: [String: Value] = ["_id": .string("a"), "units": .string("si"), field: .double(value)]
        #expect(try await verdicts([object]) == [.accept])
    }

    @Test func `the storm of Newark is rejected with the value as it came`() async throws {
        let newark: [String: Value] = ["_id": .string("EWR-2013-02-12T08:00Z"), "units": .string("us"), "wind_speed": .double(1_048.36058)]
        #expect(try await verdicts([newark]) == [Self.rejected("wind_speed is 468.66 m/s (1048.36058 as it came), outside of 0…120 m/s")])
    }

    @Test func `units must be said`() async throws {
        let objects: [[String: Value]] = [
            ["_id": .string("a")], ["_id": .string("b"), "units": .null], ["_id": .string("c"), "units": .string("metric")],
        ]
        #expect(
            try await verdicts(objects) == [
                Self.rejected("units is missing; it must be \"us\" or \"si\""),
                Self.rejected("units is missing; it must be \"us\" or \"si\""),
                Self.rejected("units is \"metric\"; it must be \"us\" or \"si\""),
            ])
    }

    @Test func `one bad observation does not touch its neighbours`() async throws {
        var bad = kennedy
        bad["pressure"] = .double(10)
        let verdicts = try await verdicts([kennedy, bad, kennedy])
        #expect(verdicts[0] == verdicts[2])
        #expect(verdicts[1] == Self.rejected("pressure is 10 hPa, outside of 850…1100 hPa"))
    }

    @Test func `other types pass`() async throws {
        #expect(try await verdicts([["_id": .string("a")]], type: "Other") == [.accept])
    }
}
