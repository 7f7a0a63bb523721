import SluiceCore
import TestSupport
import Testing

@testable import SluiceQuery

/// Patterns and folded texts against the plainest code that has their meaning.
@Suite struct `Matching of texts` {
    private static let letters = ["a", "A", "b", "é", "É", "水", "*", "?"]

    private static func text(_ random: inout SplitMix64, of letters: [String] = letters) -> String {
        (0..<random.below(9)).map { _ in random.pick(letters) }.joined()
    }

    /// A star is any run of bytes, a question mark one byte and the rest of its character.
    private static func isLike(_ text: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        if first == UInt8(ascii: "*") { return (text.startIndex...text.endIndex).contains { isLike(text[$0...], rest) } }
        guard let byte = text.first else { return false }
        if first == UInt8(ascii: "?") { return isLike(text.dropFirst().drop { $0 & 0xC0 == 0x80 }, rest) }
        return byte == first && isLike(text.dropFirst(), rest)
    }

    @Test(arguments: seeds(20)) func `a pattern matches as the plainest code finds`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var found = 0
        for _ in 0..<500 {
            let text = Array(Self.text(&random).utf8)
            let folds = random.chance(50)
            // Half of the patterns are made of the text, so that enough of them match.
            let written = random.chance(50) ? Array(Self.text(&random).utf8) : text.map { random.chance(20) ? UInt8(ascii: "*") : $0 }
            let pattern = folds ? Folding.folded(written) : written
            let expected = Self.isLike((folds ? Folding.folded(text) : text)[...], pattern[...])
            let matches = text.withUnsafeBufferPointer { bytes in
                pattern.withUnsafeBufferPointer { Haystack(bytes: bytes, folds: folds).isLike($0) }
            }
            #expect(matches == expected, "seed \(seed): \(text) LIKE \(pattern), folded: \(folds)")
            found += matches ? 1 : 0
        }
        #expect((50...450).contains(found), "seed \(seed): \(found) of 500 match, which tells little")
    }

    @Test(arguments: seeds(20)) func `a part is found where it stands, and nowhere else`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            let (text, part) = (
                Array(Self.text(&random).utf8), Array(Self.text(&random, of: ["a", "A", "é"]).utf8.prefix(random.below(4)))
            )
            let (whole, needle) = (Folding.folded(text), Folding.folded(part))
            let places = (0..<max(0, whole.count - needle.count + 1)).filter { whole[$0...].starts(with: needle) }
            text.withUnsafeBufferPointer { bytes in
                needle.withUnsafeBufferPointer { needle in
                    let haystack = Haystack(bytes: bytes, folds: true)
                    #expect((-1...text.count).filter { haystack.matches(needle, at: $0) } == places, "seed \(seed): \(part) in \(text)")
                    #expect(haystack.contains(needle) == !places.isEmpty, "seed \(seed): \(part) in \(text)")
                }
            }
        }
    }

    /// A-Z and the letters from À to Þ but ×, of the same length and folded once for all.
    @Test func `folds the letters of the first two blocks alone`() {
        for scalar in (UInt32(0)...0x2FF).compactMap({ Unicode.Scalar($0) }) {
            let text = String(scalar)
            let isFolded = (65...90).contains(scalar.value) || (0xC0...0xDE).contains(scalar.value) && scalar.value != 0xD7
            let expected = isFolded ? Unicode.Scalar(scalar.value + 32).map { String($0) } : text
            #expect(Folding.folded(text) == expected, "\(scalar.value)")
            #expect(Folding.folded(Folding.folded(text)) == Folding.folded(text), "\(scalar.value)")
        }
        #expect(Folding.folded(Folding.upper) == Folding.lower && Folding.upper.count == Folding.lower.count)
    }
}

/// Shapes on the sphere: what they contain does not depend on where the meridians begin.
@Suite struct `Shapes on the sphere` {
    private static func degrees(_ range: ClosedRange<Double>, _ random: inout SplitMix64) -> Double {
        Double.random(in: range, using: &random)
    }

    private static func turned(_ longitude: Double) -> Double {
        let whole = (longitude + 180).truncatingRemainder(dividingBy: 360)
        return (whole < 0 ? whole + 360 : whole) - 180
    }

    private static func place(_ longitude: Double, _ latitude: Double) throws -> Geometry.Place {
        try #require(Geometry.Place(longitude: turned(longitude), latitude: latitude))
    }

    @Test(arguments: seeds(10)) func `a box has what lies between its edges, also across the antimeridian`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let (west, width) = (Self.degrees(-180...180, &random), Self.degrees(1...170, &random))
            let (south, height) = (Self.degrees(-80...0, &random), Self.degrees(1...80, &random))
            let box = try Geometry(box: Self.place(west, south), Self.place(west + width, south + height))
            for _ in 0..<10 {
                let (east, north) = (Self.degrees(-5...355, &random), Self.degrees(-5...95, &random))
                guard south + north <= 90, south + north >= -90, abs(east - width) > 1e-9, abs(north - height) > 1e-9 else { continue }
                let isInside = (0...width).contains(east) && (0...height).contains(north)
                #expect(try box.contains(Self.place(west + east, south + north)) == isInside, "seed \(seed): \(box), \(east) \(north)")
            }
        }
    }

    @Test(arguments: seeds(10)) func `a circle has its centre, and a larger one what a smaller one has`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let center = try Self.place(Self.degrees(-180...180, &random), Self.degrees(-89...89, &random))
            let place = try Self.place(Self.degrees(-180...180, &random), Self.degrees(-89...89, &random))
            let radius = Self.degrees(0...3, &random)
            let (small, large) = (try Geometry(circle: center, radians: radius), try Geometry(circle: center, radians: radius + 0.1))
            #expect(small.contains(center) && (!small.contains(place) || large.contains(place)), "seed \(seed): \(small) \(place)")
            // Half of the circumference reaches everywhere.
            #expect(try Geometry(circle: center, radians: .pi).contains(place), "seed \(seed): \(center) \(place)")
            // Distances are symmetric.
            let back = try Geometry(circle: place, radians: radius)
            #expect(small.contains(place) == back.contains(center), "seed \(seed): \(center) \(place) \(radius)")
        }
    }

    @Test(arguments: seeds(10)) func `a polygon has the same in either direction, from any vertex and on any meridian`(seed: UInt64) throws
    {
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let corners = (0..<3).map { _ in (Self.degrees(-30...30, &random), Self.degrees(-60...60, &random)) }
            let (longitude, latitude) = (Self.degrees(-35...35, &random), Self.degrees(-65...65, &random))
            func contains(turnedBy angle: Double, _ order: [Int]) throws -> Bool {
                let loop = try (order + [order[0]]).map { try Self.place(corners[$0].0 + angle, corners[$0].1) }
                return try Geometry(polygon: [loop]).contains(Self.place(longitude + angle, latitude))
            }
            let expected = try contains(turnedBy: 0, [0, 1, 2])
            for order in [[1, 2, 0], [2, 1, 0], [0, 2, 1]] {
                #expect(try contains(turnedBy: 0, order) == expected, "seed \(seed): \(corners) \(longitude) \(latitude) \(order)")
            }
            for angle in [90.0, 175, -178.5] {
                #expect(try contains(turnedBy: angle, [0, 1, 2]) == expected, "seed \(seed): \(corners) \(longitude) \(latitude) \(angle)")
            }
        }
    }
}

/// Aggregates of values in any order.
@Suite struct `Aggregates` {
    @Test(arguments: seeds(20)) func `of whole numbers are those of all of them at once`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let numbers = (0..<random.below(12)).map { _ in Int64(random.below(2_000)) - 1_000 }
            var values = numbers.map { Value.int($0) } + (0..<random.below(3)).map { _ in Value.null }
            values.shuffle(using: &random)
            func result(_ function: Aggregate) -> Value { Aggregation.apply(function, values, of: .int) }
            #expect(result(.sum) == .int(numbers.reduce(0, +)), "seed \(seed): \(values)")
            #expect(result(.min) == numbers.min().map { Value.int($0) } ?? .null, "seed \(seed): \(values)")
            #expect(result(.max) == numbers.max().map { Value.int($0) } ?? .null, "seed \(seed): \(values)")
            let average: Value = numbers.isEmpty ? .null : .double(Double(numbers.reduce(0, +)) / Double(numbers.count))
            #expect(result(.average) == average, "seed \(seed): \(values)")
        }
    }

    @Test(arguments: seeds(20)) func `of mixed values take numbers alone for sums, and the ends of the order`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let values = (0..<random.below(10)).map { _ in
                random.chance(50) ? Value.int(Int64(random.below(50))) : .string(random.pick(["", "a", "é"]))
            }
            let shuffled = values.shuffled(using: &random)
            for function in [Aggregate.min, .max, .sum, .average] {
                let (one, other) = (Aggregation.apply(function, values, of: .mixed), Aggregation.apply(function, shuffled, of: .mixed))
                #expect(SortOrder.compare(one, other) == .equal, "seed \(seed): \(function) of \(values)")
            }
            let sorted = values.sorted { SortOrder.compare($0, $1) == .less }
            #expect(Aggregation.apply(.min, values, of: .mixed) == sorted.first ?? .null, "seed \(seed): \(values)")
            #expect(Aggregation.apply(.max, values, of: .mixed) == sorted.last ?? .null, "seed \(seed): \(values)")
            let sum = values.reduce(into: Int64(0)) { if case .int(let number) = $1 { $0 += number } }
            let found = Aggregation.apply(.sum, values, of: .mixed)
            #expect(SortOrder.compare(found, .int(sum)) == .equal, "seed \(seed): \(values)")
        }
    }
}
