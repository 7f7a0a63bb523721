package import SluiceCore
package import SluiceValues

/// A type with a property of each kind, and pools of values and literals for them that meet often and lie at the edges.
package enum Samples {
    package static let type = ObjectType(
        name: "Sample",
        properties: [
            Property(id: 1, name: "_id", type: .objectId),
            Property(id: 2, name: "flag", type: .bool, isOptional: true),
            Property(id: 3, name: "number", type: .int, isOptional: true),
            Property(id: 4, name: "ratio", type: .double, isOptional: true),
            Property(id: 5, name: "small", type: .float, isOptional: true),
            Property(id: 6, name: "price", type: .decimal, isOptional: true),
            Property(id: 7, name: "name", type: .string, isOptional: true),
            Property(id: 8, name: "data", type: .binary, isOptional: true),
            Property(id: 9, name: "at", type: .timestamp, isOptional: true),
            Property(id: 10, name: "owner", type: .uuid, isOptional: true),
            Property(id: 11, name: "store", type: .string),
            Property(id: 12, name: "tags", type: .string, collection: .list),
            Property(id: 13, name: "scores", type: .int, collection: .set),
            Property(id: 14, name: "weights", type: .double, collection: .list, isOptional: true),
            Property(id: 15, name: "blend", type: .mixed),
            Property(id: 16, name: "friend", type: .link(to: "Sample"), isOptional: true),
            Property(id: 17, name: "other", type: .int, isOptional: true),
            Property(id: 18, name: "extra", type: .dictionary_string, collection: .dictionary),
            Property(id: 19, name: "place", type: .embedded("Place"), isOptional: true),
        ])

    /// What the sample's `place` holds: a point of GeoJSON, and more.
    package static let place = ObjectType(
        name: "Place", kind: .embedded,
        properties: [
            Property(id: 1, name: "type", type: .string, isOptional: true),
            Property(id: 2, name: "coordinates", type: .double, collection: .list),
            Property(id: 3, name: "x", type: .mixed),
        ], primaryKey: nil)
    package static let schema = Schema([type, place])

    package static let texts = [
        "", "a", "A", "b", "aB", "Ab", "abc", "ABC", "a*", "É", "é", "ß", "×", "÷", "xÉy", "🦄", "100%", "a_b", "[c]", "z",
        "a\0", "a\0b",
        // Equal to Swift: composed and decomposed, and letters that look the same. Case pairs beyond ASCII.
        "e\u{301}", "K", "\u{212A}", "k", "\u{3A9}", "\u{2126}", "\u{3C9}",
    ]
    package static let ints: [Int64] = [
        0, 1, -1, 2, 3, 5, .max, .min, 9_007_199_254_740_991, 9_007_199_254_740_993, -9_007_199_254_740_993,
    ]
    package static let doubles: [Double] = [
        0, -0.0, 1, 1.5, -1.5, 0.1, 2, 9_007_199_254_740_992, 1e300, -.infinity, .infinity, .nan, .leastNonzeroMagnitude,
    ]
    package static let floats: [Float] = [0, -0.0, 1, 1.5, 0.1, -2.25, .infinity, .nan, 16_777_216]
    package static let blobs: [[UInt8]] = [[], [0], [1, 2], [1, 2, 3], [255], [0x61], Array("aB".utf8), [0xC3, 0x89]]
    package static let times = [
        Timestamp(seconds: 0), Timestamp(seconds: 1), Timestamp(seconds: 1, nanoseconds: 500), Timestamp(seconds: -1, nanoseconds: -1),
        Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_000), Timestamp(seconds: 1 << 53), Timestamp(seconds: -1 << 53),
    ]
    package static let decimals = [
        "0", "-0", "1", "1.0", "0.1", "1.5", "-1.5", "9007199254740993", "1e30", "inf", "nan", "0.10000000000000000000000000001",
    ]
    .compactMap { Decimal128(rounding: $0) }
    package static let ids = (0..<4).map { ObjectIdentifierBytes(high: 0x0102_0304_0506_0708, low: UInt32($0)) }
    package static let uuids = (0..<4).map { UUIDBytes(high: 7, low: UInt64($0) << 60) }

    package static func value(_ type: PropertyType, _ random: inout SplitMix64) -> Value {
        switch type {
        case .bool: return .bool(random.chance(50))
        case .int: return .int(random.pick(ints))
        case .double: return .double(random.pick(doubles))
        case .float: return .float(random.pick(floats))
        case .decimal: return .decimal(random.pick(decimals))
        case .string: return .string(random.pick(texts))
        case .binary: return .binary(random.pick(blobs))
        case .timestamp: return .timestamp(random.pick(times))
        case .objectId: return .objectId(random.pick(ids))
        case .uuid: return .uuid(random.pick(uuids))
        case .link: return .objectId(random.pick(ids))
        case .embedded: return place(&random)
        case .mixed:
            if random.chance(10) { return .list([.int(1)]) }
            return value(random.pick([.bool, .int, .double, .float, .decimal, .string, .binary, .timestamp, .objectId, .uuid]), &random)
        }
    }

    /// Mostly a point, and mostly where `QueryWriter` has its shapes.
    private static func place(_ random: inout SplitMix64) -> Value {
        let numbers = [random.pick([-180.0, -10, 0, 0.5, 1, 10, 179]), random.pick([-90.0, -1, 0, 0.5, 1, 45, 91])]
        var values: [String: Value] = [
            "type": .string(random.chance(90) ? "Point" : "Line"),
            "coordinates": .list(numbers.prefix(random.chance(90) ? 2 : 1).map { .double($0) }),
        ]
        if random.chance(50) { values["x"] = random.pick([.null, .int(1), .list([.string("a"), .list([.bool(true)])])]) }
        if random.chance(5) { values["type"] = nil }
        return .dictionary(values)
    }

    package static func row(_ random: inout SplitMix64, of type: ObjectType = Samples.type) -> Row {
        var row = Row(
            type.properties.map { property in
                switch property.collection {
                case .dictionary: return .dictionary([:])
                case .list, .set:
                    return .list(
                        (0..<random.below(4)).map { _ in
                            property.isOptional && random.chance(30) ? .null : value(property.type, &random)
                        })
                case .none:
                    return property.isOptional && random.chance(25) ? .null : value(property.type, &random)
                }
            })
        if random.chance(5) { row.values.removeLast(random.below(6)) }
        if random.chance(5) { row[random.below(row.values.count)] = nil }
        return row
    }
}

extension PropertyType {
    /// The element type of the dictionary in the sample.
    static var dictionary_string: PropertyType { .string }
}
