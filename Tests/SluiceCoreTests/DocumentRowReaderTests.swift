import SluiceCore
import SluiceValues
import TestSupport
import Testing

/// Documents of MongoDB as rows.
struct DocumentRowReaderTests {
    private static func read(_ bytes: [UInt8], _ reader: inout DocumentRowReader) throws(DocumentMisfit) -> Row {
        var buffer = RowBuffer()
        let row = bytes.withUnsafeBytes { bytes in
            Result { () throws(DocumentMisfit) in try reader.read(bson: bytes, into: &buffer) }
        }
        let place = try row.get()
        return buffer.withView(place) { Row($0) }
    }

    private static func read(_ json: JSON, _ reader: inout DocumentRowReader) throws(DocumentMisfit) -> Row {
        var buffer = RowBuffer()
        let place = try reader.read(json, into: &buffer)
        return buffer.withView(place) { Row($0) }
    }

    private static func random(_ random: inout SplitMix64) -> [String: Value] {
        var members: [String: Value] = [:]
        for property in Samples.type.properties where property.isRequired || random.chance(70) {
            let value =
                switch property.collection {
                case .none: random.chance(10) && !property.isRequired ? .null : Samples.value(property.type, &random)
                case .list: Value.list((0..<random.below(4)).map { _ in Samples.value(property.type, &random) })
                case .set: Value.set((0..<random.below(4)).map { _ in Samples.value(property.type, &random) })
                case .dictionary:
                    Value.dictionary(
                        Dictionary(
                            (0..<random.below(4)).map { ("k\($0)", Samples.value(property.type, &random)) }, uniquingKeysWith: { $1 }))
                }
            members[property.name] = value
        }
        return members
    }

    /// The value as it is in MongoDB: times in milliseconds.
    private static func sent(_ value: Value) -> Value {
        switch value {
        case .timestamp(let value): .timestamp(Timestamp(milliseconds: value.milliseconds))
        case .list(let elements): .list(elements.map(sent))
        case .dictionary(let members): .dictionary(members.mapValues(sent))
        case .link(let type, let key): .link(type: type, key: sent(key))
        default: value
        }
    }

    private static func hasNUL(_ value: Value) -> Bool {
        switch value {
        case .string(let text): text.utf8.contains(0)
        case .list(let elements): elements.contains(where: hasNUL)
        case .dictionary(let members): members.contains { $0.key.utf8.contains(0) || hasNUL($0.value) }
        case .link(let type, let key): type.utf8.contains(0) || hasNUL(key)
        default: false
        }
    }

    @Test func `BSON, and extended JSON of both versions, give the row of the values`() throws {
        var random = SplitMix64()
        var reader = DocumentRowReader(Samples.type, in: Samples.schema)
        var (rows, refused) = (0, 0)
        for _ in 0..<400 {
            let members = Self.random(&random)
            let bytes = BSONWriter.document(members)
            guard !members.values.contains(where: Self.hasNUL) else {
                let error = #expect(throws: DocumentMisfit.self) { try Self.read(bytes, &reader) }
                // A time beyond PostgreSQL's may be found first.
                #expect(error.map { $0.reason.contains("NUL") || $0.reason.contains("the date") } == true, "seed \(random.seed)")
                refused += 1
                continue
            }
            // Beyond the years of PostgreSQL a time is no value.
            guard let row = try? Self.read(bytes, &reader) else {
                #expect(
                    "\(members)".contains("seconds: 9007199254740992") || "\(members)".contains("seconds: -9007199254740992"),
                    "seed \(random.seed)")
                refused += 1
                continue
            }
            rows += 1
            for (index, property) in Samples.type.properties.enumerated() {
                // A double of a mixed value that is a whole float stays a double.
                if property.type == .mixed { continue }
                #expect(row[index] == members[property.name].map(Self.sent), "seed \(random.seed): \(property.name)")
            }
            let relaxed = try BSON.json(bytes)
            #expect(try Self.read(relaxed, &reader) == row, "seed \(random.seed)")
            #expect(try Self.read(Self.canonical(relaxed), &reader) == row, "seed \(random.seed)")
            #expect(try Self.read(Self.first(relaxed), &reader) == row, "seed \(random.seed)")
        }
        #expect(rows > 50 && refused > 10 && reader.dropped.isEmpty)
    }

    /// The canonical form of v2: all numbers are texts.
    private static func canonical(_ json: JSON) -> JSON {
        switch json {
        case .int(let value): ["$numberLong": .string(String(value))]
        case .double(let value):
            ["$numberDouble": .string(value.isFinite ? "\(value)" : value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity")]
        case .array(let elements): .array(elements.map(canonical))
        case .object(let members):
            if members.first?.key.hasPrefix("$") == true, members.first?.key != "$ref" {
                json
            } else {
                .object(members.map { JSON.Member($0.key, canonical($0.value)) })
            }
        default: json
        }
    }

    /// The forms of v1: binary data in two members, times as milliseconds.
    private static func first(_ json: JSON) -> JSON {
        if let binary = json["$binary"], let text = binary["base64"], let subtype = binary["subType"] {
            return ["$binary": text, "$type": subtype]
        }
        if let uuid = json["$uuid"]?.string.flatMap({ UUIDBytes($0) }) {
            return ["$binary": .string(Base64.encode(uuid.bytes)), "$type": "04"]
        }
        if let date = json["$date"].flatMap(ExtendedForm.date) { return ["$date": ["$numberLong": .string(String(date.milliseconds))]] }
        switch json {
        case .array(let elements): return .array(elements.map(first))
        case .object(let members): return .object(members.map { JSON.Member($0.key, first($0.value)) })
        default: return json
        }
    }

    @Test func `numbers of other types fit where no digit is lost`() throws {
        var reader = DocumentRowReader(Samples.type, in: Samples.schema)
        let base: [String: Value] = ["_id": .objectId(Samples.ids[0]), "store": .string("s")]
        func read(_ name: String, _ value: Value) throws -> Value? {
            try Self.read(BSONWriter.document(base.merging([name: value]) { $1 }), &reader)[try #require(Samples.type.index(of: name))]
        }
        #expect(try read("number", .double(3)) == .int(3))
        #expect(try read("ratio", .int(3)) == .double(3))
        #expect(try read("ratio", .int(1 << 40)) == .double(Double(1 << 40)))
        #expect(try read("small", .int(3)) == .float(3))
        #expect(try read("price", .int(3)) == .decimal(Decimal128(3)))
        #expect(try read("data", .uuid(Samples.uuids[1])) == .binary(Samples.uuids[1].bytes))
        #expect(try read("tags", .null) == .list([]) && read("extra", .null) == .dictionary([:]))
        #expect(throws: DocumentMisfit.self) { try read("number", .double(3.5)) }
        #expect(throws: DocumentMisfit.self) { try read("small", .double(1e300)) }
        #expect(throws: DocumentMisfit.self) { try read("name", .int(1)) }
    }

    @Test func `undefined is null, a symbol is text, and other types without a counterpart are named`() throws {
        var reader = DocumentRowReader(Samples.type, in: Samples.schema)
        func read(_ name: String, _ body: (inout BSONWriter) -> Void) throws -> Value? {
            let bytes = BSONWriter.document {
                $0.value("_id", .objectId(Samples.ids[0]))
                $0.value("store", .string("s"))
                body(&$0)
            }
            return try Self.read(bytes, &reader)[try #require(Samples.type.index(of: name))]
        }
        #expect(try read("number") { $0.element(.undefined, "number", []) } == .null)
        #expect(try read("blend") { $0.element(.undefined, "blend", []) } == .null)
        #expect(try read("name") { $0.element(.symbol, "name", BSONWriter.text("s")) } == .string("s"))
        for (type, content, word) in [
            (BSONType.regularExpression, Array("a\0i\0".utf8), "regular expression"), (.timestamp, [1, 0, 0, 0, 2, 0, 0, 0], "timestamp"),
            (.code, BSONWriter.text("x"), "code"), (.minKey, [], "MinKey"), (.maxKey, [], "MaxKey"),
        ] {
            let error = #expect(throws: DocumentMisfit.self) { try read("blend") { $0.element(type, "blend", content) } }
            #expect(error?.reason.contains(word) == true && error?.reason.contains("blend") == true, "\(String(describing: error))")
            #expect(throws: DocumentMisfit.self) { try read("name") { $0.element(type, "name", content) } }
        }
    }

    @Test func `fields of no property are counted, also inside of nothing`() throws {
        var reader = DocumentRowReader(Samples.type, in: Samples.schema)
        let document: [String: Value] = [
            "_id": .objectId(Samples.ids[0]), "store": .string("s"), "__v": .int(0),
            "place": .dictionary(["type": .string("Point"), "extra": .int(1)]),
        ]
        for _ in 0..<3 { _ = try Self.read(BSONWriter.document(document), &reader) }
        let row = try Self.read(BSONWriter.document(document.merging(["other2": .null]) { $1 }), &reader)
        #expect(reader.dropped.map { String(decoding: $0.name, as: UTF8.self) } == ["__v", "other2"])
        #expect(reader.dropped.map(\.count) == [4, 1])
        #expect(row[18] == .dictionary(["type": .string("Point")]))
    }

    @Test func `a DBRef's collection is the class, and what is missing, given twice or too large is refused`() throws {
        var reader = DocumentRowReader(Samples.type, in: Samples.schema, classes: ["samples": "Sample"])
        let base: [String: Value] = ["_id": .objectId(Samples.ids[0]), "store": .string("s")]
        let link = try Self.read(
            BSONWriter.document(base.merging(["blend": .link(type: "samples", key: .objectId(Samples.ids[1]))]) { $1 }), &reader)
        #expect(link[14] == .link(type: "Sample", key: .objectId(Samples.ids[1])))
        let missing = #expect(throws: DocumentMisfit.self) {
            try Self.read(BSONWriter.document(["_id": .objectId(Samples.ids[0])]), &reader)
        }
        #expect(missing?.reason.contains("Sample.store is required and missing") == true)
        let null = #expect(throws: DocumentMisfit.self) {
            try Self.read(BSONWriter.document(base.merging(["store": .null]) { $1 }), &reader)
        }
        #expect(null?.reason.contains("expected string, found null") == true, "\(String(describing: null))")
        let twice = BSONWriter.document {
            for _ in 0..<2 { $0.value("store", .string("s")) }
        }
        #expect(throws: DocumentMisfit("the field 'store' is given twice")) { try Self.read(twice, &reader) }
        let large = base.merging(["data": .binary([UInt8](repeating: 1, count: Limits.rowBytes + 1))]) { $1 }
        let size = #expect(throws: DocumentMisfit.self) { try Self.read(BSONWriter.document(large), &reader) }
        #expect(size?.reason.contains("9 MiB") == true, "\(String(describing: size))")
        #expect(throws: DocumentMisfit.self) { try Self.read("text", &reader) }
        // A refused document leaves nothing behind.
        #expect(try Self.read(BSONWriter.document(base), &reader)[0] == base["_id"])
    }

    @Test(
        arguments: [
            ("number", #"{"$numberLong": 5}"#, .int(5)), ("number", #"{"$numberLong": "-5"}"#, .int(-5)),
            ("number", #"{"$numberInt": "7"}"#, .int(7)), ("ratio", #"{"$numberDouble": "NaN"}"#, .double(.nan)),
            ("at", #"{"$date": 1}"#, .timestamp(Timestamp(milliseconds: 1))),
            ("at", #"{"$date": "1970-01-01T01:00:00.001+0100"}"#, .timestamp(Timestamp(milliseconds: 1))),
            ("data", #"{"$binary": "AQI=", "$type": 0}"#, .binary([1, 2])),
            ("data", #"{"$binary": "AQI=", "$type": "05"}"#, .binary([1, 2])),
            ("number", #"{"$undefined": true}"#, .null), ("name", #"{"$symbol": "s"}"#, .string("s")),
            ("blend", #"{"$ref": "samples", "$id": "k", "$db": "shop"}"#, .link(type: "Sample", key: .string("k"))),
            ("blend", #"[{"$numberLong": 5}, {"$undefined": true}]"#, .list([.int(5), .null])),
        ] as [(String, String, Value)])
    func `forms of old tools are read`(name: String, text: String, value: Value) throws {
        var reader = DocumentRowReader(Samples.type, in: Samples.schema, classes: ["samples": "Sample"])
        let json = try JSON.parse(#"{"_id": {"$oid": "0102030405060708090a0b0c"}, "store": "s", "\#(name)": \#(text)}"#)
        #expect(try Self.read(json, &reader)[try #require(Samples.type.index(of: name))] == value)
    }

    @Test(arguments: [
        #"{"$regex": "a", "$options": "i"}"#, #"{"$timestamp": {"t": 1, "i": 2}}"#, #"{"$code": "x", "$scope": {}}"#, #"{"$minKey": 1}"#,
        #"[{"a": {"$maxKey": 1}}]"#,
    ])
    func `forms of no value of an object are refused in mixed values`(text: String) throws {
        var reader = DocumentRowReader(Samples.type, in: Samples.schema)
        let json = try JSON.parse(#"{"_id": {"$oid": "0102030405060708090a0b0c"}, "store": "s", "blend": \#(text)}"#)
        let error = #expect(throws: DocumentMisfit.self) { try Self.read(json, &reader) }
        #expect(error?.reason.contains("is no value of a Realm object") == true, "\(String(describing: error))")
    }

    @Test func `a mixed value may have as many levels as the gateway reads back`() throws {
        var reader = DocumentRowReader(Samples.type, in: Samples.schema)
        func read(_ depth: Int) throws {
            let value = (0..<depth).reduce(Value.timestamp(Timestamp(seconds: 0))) { inner, _ in .list([inner]) }
            let row = try Self.read(
                BSONWriter.document(["_id": .objectId(Samples.ids[0]), "store": .string("s"), "blend": value]), &reader)
            // The text of the value is what a column returns.
            #expect(try ExtendedJSON.value(JSON.parse(ExtendedJSON.json(value).text)) == value && row[14] == value)
        }
        try read(96)
        let error = #expect(throws: DocumentMisfit.self) { try read(97) }
        #expect(error?.reason.contains("nested deeper than 96 levels") == true, "\(String(describing: error))")
    }
}
