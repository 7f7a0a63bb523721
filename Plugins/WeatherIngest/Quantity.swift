/// One measured quantity: its conversion from US units, and its possible range.
struct Quantity: Sendable {
    let name: String
    /// The SI unit, for reasons of rejections.
    let unit: String
    /// The conversion to SI is `(value - offset) * factor`.
    let offset: Double
    let factor: Double
    /// The range in SI, inclusive.
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
        // Inches to millimetres. The upper end exceeds the record for an hour.
        Quantity("precipitation", "mm", factor: 25.4, possible: 0...500),
        // A millibar is a hectopascal.
        Quantity("pressure", "hPa", factor: 1, possible: 850...1_100),
        // Miles to kilometres. The upper end is that of the clearest air.
        Quantity("visibility", "km", factor: 1.609344, possible: 0...400),
    ]

    /// Returns the SI value, rounded to four decimals, which is finer than any station measures.
    func fromUS(_ value: Double) -> Double { Self.rounded((value - offset) * factor, to: 10_000) }

    /// Checks a value against the possible range.
    /// - Parameters:
    ///   - value: The value in SI.
    ///   - given: The received value, for the reason.
    func check(_ value: Double, given: Double, in units: WeatherIngest.Units) throws(Rejection) {
        // NaN is in no range.
        guard !possible.contains(value) else { return }
        let origin = units == .us && value != given ? " (\(given) as it came)" : ""
        let range = "\(Self.short(possible.lowerBound))…\(Self.short(possible.upperBound)) \(unit)"
        throw Rejection(reason: "\(name) is \(Self.short(value)) \(unit)\(origin), outside of \(range)")
    }

    /// Returns the text for reasons, with at most two decimals.
    private static func short(_ value: Double) -> String {
        let text = "\(rounded(value, to: 100))"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// Rounds half away from zero, to the given parts of one. It needs no mathematics library.
    private static func rounded(_ value: Double, to parts: Double) -> Double {
        let scaled = value * parts
        guard scaled.magnitude < 1e15 else { return value }
        return Double(Int64(scaled + (scaled < 0 ? -0.5 : 0.5))) / parts
    }
}
