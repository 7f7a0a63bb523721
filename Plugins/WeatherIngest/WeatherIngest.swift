import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(WeatherIngest.self) }

/// Ingests weather observations. It converts US units to SI and rejects values that no station can measure.
final class WeatherIngest: IngestRules {
    static let name = "WeatherIngest"
    static let version = "1.0"
    static let configKeys: [String: ConfigKey]? = [:]

    init(log: PluginLog) {}

    /// Checks observations. Objects of other classes are accepted unchanged.
    func ingest(type: String, objects: [PluginRow]) throws -> [IngestVerdict] {
        guard type == "WeatherObservation" else { return objects.map { _ in .accept } }
        return objects.map { Self.verdict(on: $0) }
    }

    private static func verdict(on object: PluginRow) -> IngestVerdict {
        do throws(Rejection) {
            let units = try units(of: object)
            var converted: [PluginValue.Member] = []
            for quantity in Quantity.all {
                guard let value = try number(object, quantity.name) else { continue }
                let measured = units == .us ? quantity.fromUS(value) : value
                try quantity.check(measured, given: value, in: units)
                converted.append(.init(quantity.name, .double(measured)))
            }
            return units == .us ? .amend(.object(converted + [.init("units", "si")])) : .accept
        } catch { return .reject(reason: error.reason) }
    }

    enum Units: String { case us, si }

    private static func units(of object: PluginRow) throws(Rejection) -> Units {
        if object.has("units", equalTo: Units.us.rawValue) { return .us }
        if object.has("units", equalTo: Units.si.rawValue) { return .si }
        let found = object.isNull("units") ? "missing" : object["units"]?.json ?? "missing"
        throw Rejection(reason: "units is \(found); it must be \"us\" or \"si\"")
    }

    /// Returns nil if the station did not report the quantity.
    private static func number(_ object: PluginRow, _ name: String) throws(Rejection) -> Double? {
        if let number = object.number(name) { return number }
        guard let value = object[name], !value.isNull else { return nil }
        throw Rejection(reason: "\(name) is \(value.json), not a number")
    }
}

/// The rejection of an observation.
struct Rejection: Error {
    var reason: String
}
