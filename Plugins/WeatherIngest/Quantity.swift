/// One measured quantity: how it comes from US units, and what is possible.
struct Quantity: Sendable {
    let name: String
    /// The SI unit, as reasons name it.
    let unit: String
    /// The US unit is `(value - offset) * factor` in SI.
    let offset: Double
    let factor: Double
    /// In SI; both ends included.
    let possible: ClosedRange<Double>

    private init(_ name: String, _ unit: String, offset: Double = 0, factor: Double, possible: ClosedRange<Double>) {
        self.name = name
        self.unit = unit
        self.offset = offset
        self.factor = factor
        self.possible = possible
    }

    static let all = [
        // °F to °C.
        Quantity("temp", "°C", offset: 32, factor: 5 / 9, possible: -90...60),
        Quantity("dewpoint", "°C", offset: 32, factor: 5 / 9, possible: -90...60),
        Quantity("humidity", "%", factor: 1, possible: 0...100),
        Quantity("wind_direction", "°", factor: 1, possible: 0...360),
        // Miles per hour to metres per second.
        Quantity("wind_speed", "m/s", factor: 0.44704, possible: 0...120),
        Quantity("wind_gust", "m/s", factor: 0.44704, possible: 0...120),
        // Inches to millimetres; the upper end is beyond any hour on record.
        Quantity("precipitation", "mm", factor: 25.4, possible: 0...500),
        // Millibar are hectopascal.
        Quantity("pressure", "hPa", factor: 1, possible: 850...1_100),
        // Miles to kilometres; the upper end is the clearest air there is.
        Quantity("visibility", "km", factor: 1.609344, possible: 0...400),
    ]

    /// To four decimals, which is far finer than any station measures.
    func fromUS(_ value: Double) -> Double { Self.rounded((value - offset) * factor, to: 10_000) }

    /// - Parameters:
    ///   - value: in SI.
    ///   - given: as it came, for the reason.
    func check(_ value: Double, given: Double, in units: WeatherIngest.Units) throws(Rejection) {
        // NaN is in no range.
        guard !possible.contains(value) else { return }
        let origin = units == .us && value != given ? " (\(given) as it came)" : ""
        let range = "\(Self.short(possible.lowerBound))…\(Self.short(possible.upperBound)) \(unit)"
        throw Rejection(reason: "\(name) is \(Self.short(value)) \(unit)\(origin), outside of \(range)")
    }

    /// As reasons print it: two decimals at most.
    private static func short(_ value: Double) -> String {
        let text = "\(rounded(value, to: 100))"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// Rounds half away from zero, to the given parts of one. Written out so that the plugin needs no mathematics library.
    private static func rounded(_ value: Double, to parts: Double) -> Double {
        let scaled = value * parts
        guard scaled.magnitude < 1e15 else { return value }
        return Double(Int64(scaled + (scaled < 0 ? -0.5 : 0.5))) / parts
    }
}
