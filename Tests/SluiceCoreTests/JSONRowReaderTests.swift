import SluiceCore
import SluiceValues
import TestSupport
import Testing

/// The reader against the slow and obvious way: `JSON.parse` and `ExtendedJSON.row`.
@Suite struct JSONRowReaderTests {
    static let store = ObjectType(
        name: "Store", properties: [Property(id: 1, name: "_id", type: .uuid), Property(id: 2, name: "name", type: .string)])
    static let address = ObjectType(
        name: "Address", kind: .embedded, properties: [Property(id: 1, name: "street", type: .string)], primaryKey: nil)
    static let event = ObjectType(
        name: "Event", kind: .asymmetric,
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "isNew", type: .bool),
            Property(id: 3, name: "price", type: .double), Property(id: 4, name: "weight", type: .float, isOptional: true),
            Property(id: 5, name: "cost", type: .decimal, isOptional: true), Property(id: 6, name: "name", type: .string),
            Property(id: 7, name: "näme", type: .string, isOptional: true),
            Property(id: 8, name: "made", type: .timestamp, isOptional: true),
            Property(id: 9, name: "part", type: .objectId, isOptional: true), Property(id: 10, name: "lot", type: .uuid, isOptional: true),
            Property(id: 11, name: "photo", type: .binary, isOptional: true), Property(id: 12, name: "store", type: .link(to: "Store")),
            Property(id: 13, name: "other", type: .link(to: "Nowhere")), Property(id: 14, name: "address", type: .embedded("Address")),
            Property(id: 15, name: "extra", type: .mixed), Property(id: 16, name: "tags", type: .string, collection: .set),
            Property(id: 17, name: "counts", type: .int, collection: .list, isOptional: true),
            Property(id: 18, name: "pairs", type: .mixed, collection: .dictionary),
        ])
    static let schema = Schema([store, address, event])

    private static func slowly(_ text: [UInt8]) -> Row? {
        try? ExtendedJSON.row(JSON.parse(text), type: event, schema: schema)
    }

    private static func quickly(_ text: [UInt8], _ reader: inout JSONRowReader, _ buffer: inout RowBuffer) -> Row? {
        guard let row = reader.read(text[...], into: &buffer) else { return nil }
        return buffer.withView(row) { Row($0) }
    }

    @Test(arguments: seeds(10, soak: 200)) func `reads what the slow way reads, or leaves it to that`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var reader = JSONRowReader(Self.event, in: Self.schema)
        var buffer = RowBuffer()
        var taken = 0
        for _ in 0..<500 {
            // Half of them are objects, of the others most are not.
            let isOdd = generator.chance(50)
            var text = Self.object(&generator, odd: isOdd)
            if isOdd, generator.chance(50) { Self.damage(&text, &generator) }
            let before = (buffer.cells.count, buffer.arena)
            let row = Self.quickly(text, &reader, &buffer)
            if row == nil {
                #expect(buffer.cells.count == before.0 && buffer.arena == before.1, "seed \(seed)")
            } else {
                taken += 1
                #expect(row == Self.slowly(text), "seed \(seed): \(String(decoding: text, as: UTF8.self))")
            }
        }
        #expect(taken > 200, "seed \(seed)")
    }

    @Test func `takes what senders write`() {
        var reader = JSONRowReader(Self.event, in: Self.schema)
        var buffer = RowBuffer()
        let required = #""_id": 7, "isNew": true, "price": 1.5, "name": "a""#
        let members = [
            #""price": 2"#, #""price": -0.001"#, #""price": 1.5e300"#, #""price": 0.1234567890123456789"#, #""_id": -9223372036854775808"#,
            #""weight": 0.1"#, #""weight": null"#, #""cost": "12.50""#, #""cost": {"$numberDecimal":"1E+3"}"#, #""cost": 3"#,
            #""cost": 3.25"#,
            #""name": "say \"hi\"\n\u00e9\ud83d\udeeb 水""#, #""näme": "x""#, #""made": "2023-11-14T22:13:20.125+02:00""#,
            #""made": {"$date": "1969-12-31T23:59:59.999Z"}"#, #""made": 1700000000000"#, #""part": "65a1b2c3d4e5f60718293a4b""#,
            #""part": { "$oid" : "65a1b2c3d4e5f60718293a4B" }"#, #""lot": "0b0e36f4-1a5d-4b7c-9f60-3c2f1f0a9b8e""#,
            #""store": {"$uuid":"0b0e36f4-1a5d-4b7c-9f60-3c2f1f0a9b8e"}"#, #""store": null"#, #""photo": "AQL/""#, #""other": 5"#,
            #""address": {"street": "High, [St] \" }"}"#, #""extra": [1, {"a": "]"}, null]"#, #""extra": 12"#, #""tags": ["b", "a"]"#,
            #""counts": [1, null, 2]"#, #""pairs": {"a": {"$oid": "65a1b2c3d4e5f60718293a4b"}}"#,
        ]
        for member in members {
            let name = member.prefix { $0 != ":" }
            let others = required.split(separator: ", ").filter { !$0.hasPrefix(name) }
            let text = Array("{\((others + [member[...]]).joined(separator: ", "))}".utf8)
            let row = Self.quickly(text, &reader, &buffer)
            #expect(row != nil && row == Self.slowly(text), "\(member)")
        }
    }

    @Test func `leaves to the slow way what that refuses`() {
        var reader = JSONRowReader(Self.event, in: Self.schema)
        var buffer = RowBuffer()
        let good = #""_id": 7, "isNew": true, "price": 1.5, "name": "a""#
        let deep = String(repeating: "[", count: Limits.nestingDepth) + String(repeating: "]", count: Limits.nestingDepth)
        let texts = [
            "", "{", "[]", "{}", "{\(good)", "{\(good)} x", "{\(good),}", "{\(good), \"_id\": 8}", "{\(good), \"nothing\": 8}",
            "{\(good), \"cost\": \"1E-9223372036854775808\"}", "{\(good), \"cost\": \"1E9223372036854775807\"}",
            "{\(good), \"extra\": \(deep)}", "{\(good), \"extra\": [1}}", "{\(good), \"weight\": 1e39}", "{\(good), \"tags\": null}",
            #"{"_id": 01, "isNew": true, "price": 1.5, "name": "a"}"#, #"{"_id": 1, "isNew": true, "price": 1., "name": "a"}"#,
            #"{"_id": 1, "isNew": true, "price": 1e400, "name": "a"}"#, #"{"_id": 1, "isNew": truE, "price": 1, "name": "a"}"#,
            #"{"_id": 1, "isNew": true, "price": 1, "name": "\ud800"}"#, #"{"_id": 1, "isNew": true, "price": 1}"#,
            "{\"_id\": 1, \"isNew\": true, \"price\": 1, \"name\": \"a\tb\"}", "{\(good), \"made\": \"2023-02-30\"}",
        ]
        for text in texts {
            #expect(Self.slowly(Array(text.utf8)) == nil && Self.quickly(Array(text.utf8), &reader, &buffer) == nil, "\(text)")
        }
        let bad = Array("{\(good), \"näme\": \"".utf8) + [0xC3, 0x28] + Array("\"}".utf8)
        #expect(Self.slowly(bad) == nil && Self.quickly(bad, &reader, &buffer) == nil)
    }

    // MARK: Texts

    /// - Parameter odd: whether values may be of another type than their property, or none at all.
    private static func object(_ generator: inout SplitMix64, odd: Bool) -> [UInt8] {
        var members: [String] = []
        for property in event.properties where property.isRequired || generator.chance(30) {
            var value = value(of: property, &generator)
            if odd, generator.chance(5) { value = other(&generator) }
            while !odd, (try? ExtendedJSON.value(JSON.parse(value), property: property, schema: schema)) == nil {
                value = Self.value(of: property, &generator)
            }
            members.append("\(space(&generator))\"\(property.name)\"\(space(&generator)):\(space(&generator))\(value)\(space(&generator))")
        }
        if generator.chance(30) { members.shuffle(using: &generator) }
        if odd, generator.chance(4) { members.append(generator.pick(members)) }
        return Array("\(space(&generator)){\(members.joined(separator: ","))}\(space(&generator))".utf8)
    }

    private static func space(_ generator: inout SplitMix64) -> String {
        generator.chance(80) ? "" : generator.pick([" ", "\n", "\t", "\r\n", "  "])
    }

    private static func value(of property: Property, _ generator: inout SplitMix64) -> String {
        if generator.chance(5) { return "null" }
        switch property.collection {
        case .none: return scalar(property.type, &generator)
        case .list, .set: return "[\((0..<generator.below(4)).map { _ in scalar(property.type, &generator) }.joined(separator: ","))]"
        case .dictionary:
            return "{\((0..<generator.below(4)).map { "\"k\($0)\":\(scalar(property.type, &generator))" }.joined(separator: ","))}"
        }
    }

    private static func scalar(_ type: PropertyType, _ generator: inout SplitMix64) -> String {
        switch type {
        case .bool: return generator.pick(["true", "false"])
        case .int: return number(&generator, fraction: 3)
        case .float, .double: return number(&generator, fraction: 70)
        case .decimal: return generator.pick([number(&generator, fraction: 50), "\"-12.50\"", #"{"$numberDecimal":"7E-3"}"#, "\"x\""])
        case .string: return quoted(&generator)
        case .binary: return generator.pick(["\"AQL/\"", #"{"$binary":{"base64":"AQL/","subType":"00"}}"#, "\"*\""])
        case .timestamp:
            let time = Timestamp.random(using: &generator)
            let texts = [
                "\"\(time.iso8601)\"", #"{"$date":"\#(time.iso8601)"}"#, "\(time.milliseconds)", "\"2023-02-28 24:00\"", "\"noon\"",
            ]
            return generator.chance(90) ? generator.pick(texts) : ExtendedJSON.json(.timestamp(time)).text
        case .objectId: return generator.pick(["\"65a1b2c3d4e5f60718293a4b\"", #"{"$oid":"65A1b2c3d4e5f60718293a4b"}"#, "\"65\""])
        case .uuid, .link("Store"):
            let text = UUIDBytes(high: generator.next(), low: generator.next()).description
            return generator.pick(["\"\(text)\"", #"{ "$uuid": "\#(text)" }"#, "\"\(text.prefix(30))\""])
        case .embedded: return generator.pick([#"{"street":"a } b"}"#, #"{"street":1}"#, "{}"])
        case .mixed, .link: return other(&generator)
        }
    }

    private static func number(_ generator: inout SplitMix64, fraction: Int) -> String {
        let bits = generator.below(65)
        let whole = bits == 0 ? 0 : Int64(bitPattern: generator.next()) >> (64 - Int64(bits))
        guard generator.chance(fraction) else {
            return generator.chance(97) ? "\(whole)" : generator.pick(["-0", "1e3", "9223372036854775808"])
        }
        let digits = (0..<1 + generator.below(generator.chance(80) ? 5 : 25)).map { _ in String(generator.below(10)) }.joined()
        let exponent = generator.chance(85) ? "" : generator.pick(["e5", "E-7", "e+300", "e-320"])
        return "\(whole).\(digits)\(exponent)"
    }

    private static func quoted(_ generator: inout SplitMix64) -> String {
        if generator.chance(10) { return generator.pick([#""\u0041\u00e9\ud83d\udeeb\/\b\f""#, #""\ud83d""#, #""\x""#, "\"e\u{301}\""]) }
        return JSON.string(.random(using: &generator)).text
    }

    private static func other(_ generator: inout SplitMix64) -> String { ExtendedJSON.json(.random(using: &generator)).text }

    /// Makes another text of it, often one that is not valid JSON.
    private static func damage(_ text: inout [UInt8], _ generator: inout SplitMix64) {
        let place = generator.below(text.count)
        switch generator.below(4) {
        case 0: text[place] = UInt8(truncatingIfNeeded: generator.next())
        case 1: text.remove(at: place)
        case 2: text.insert(generator.pick(Array("{}[]\",:\\0-. \n".utf8)), at: place)
        default: text.removeSubrange(place...)
        }
    }
}
