import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(WeatherIngest.self) }

/// Takes in weather observations: brings US units to SI, and sets apart what no station can have measured.
final class WeatherIngest: IngestRules {
    static let name = "WeatherIngest"
    static let version = "1.0"
    static let configKeys: [String: ConfigKey]? = [:]

    init(log: PluginLog) {}

    /// Objects of other types are accepted as they are.
    func ingest(type: String, objects: [PluginValue]) throws -> [IngestVerdict] {
        guard type == "WeatherObservation" else { return objects.map { _ in .accept } }
        return objects.map { Self.verdict(on: $0) }
    }

    private static func verdict(on object: PluginValue) -> IngestVerdict {
        do throws(Rejection) {
            let units = try units(of: object)
            var normal = object
            for quantity in Quantity.all {
                guard let value = try number(object, quantity.name) else { continue }
                let converted = units == .us ? quantity.fromUS(value) : value
                try quantity.check(converted, given: value, in: units)
                if units == .us { normal.set(quantity.name, to: .double(converted)) }
            }
            guard units == .us else { return .accept }
            normal.set("units", to: "si")
            return .transform(normal)
        } catch { return .reject(reason: error.reason) }
    }

    enum Units: String { case us, si }

    private static func units(of object: PluginValue) throws(Rejection) -> Units {
        guard let value = object["units"], !value.isNull else {
            throw Rejection(reason: "units is missing; it must be \"us\" or \"si\"")
        }
        guard let units = value.string.flatMap({ Units(rawValue: $0) }) else {
            throw Rejection(reason: "units is \(value.json); it must be \"us\" or \"si\"")
        }
        return units
    }

    /// Nil when the station did not report the quantity.
    private static func number(_ object: PluginValue, _ name: String) throws(Rejection) -> Double? {
        guard let value = object[name], !value.isNull else { return nil }
        guard let number = value.number else { throw Rejection(reason: "\(name) is \(value.json), not a number") }
        return number
    }
}

/// Why an observation is set apart.
struct Rejection: Error {
    var reason: String
}
