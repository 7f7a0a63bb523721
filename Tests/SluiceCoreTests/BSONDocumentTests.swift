import SluiceCore
import SluiceValues
import TestSupport
import Testing

/// Random documents of the tests' encoder.
struct BSONDocumentTests {
    @Test func `random documents read back`() throws {
        var random = SplitMix64()
        for _ in 0..<500 {
            let members = Dictionary(
                (0..<random.below(6)).map { ("k\($0)", Value.random(using: &random)) }, uniquingKeysWith: { first, _ in first })
            // The JSON of the values as a driver would send them: times in milliseconds, floats as doubles.
            let expected = ExtendedJSON.json(members.mapValues(Self.sent))
            let found = try BSON.json(BSONWriter.document(members))
            #expect(Self.text(found) == Self.text(expected), "seed \(random.seed)")
        }
    }

    private static func text(_ json: JSON) -> String {
        var bytes: [UInt8] = []
        json.write(into: &bytes, extended: true)
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func sent(_ value: Value) -> Value {
        switch value {
        case .float(let value): .double(Double(value))
        case .timestamp(let value): .timestamp(Timestamp(milliseconds: value.milliseconds))
        case .list(let elements): .list(elements.map(sent))
        case .dictionary(let members): .dictionary(members.mapValues(sent))
        case .link(let type, let key): .link(type: type, key: sent(key))
        default: value
        }
    }

    @Test func `truncated and flipped bytes are errors or other documents, and never a crash`() throws {
        var random = SplitMix64()
        var errors = 0
        for _ in 0..<300 {
            let members = Dictionary((0..<5).map { ("k\($0)", Value.random(using: &random)) }, uniquingKeysWith: { first, _ in first })
            let bytes = BSONWriter.document(members)
            for count in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 20)) {
                #expect(throws: BSONError.self, "seed \(random.seed)") { try BSON.json(Array(bytes[..<count])) }
            }
            for _ in 0..<20 {
                var flipped = bytes
                flipped[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
                do throws(BSONError) { _ = try BSON.json(flipped) } catch {
                    #expect((0...bytes.count).contains(error.offset), "seed \(random.seed): \(error)")
                    errors += 1
                }
            }
        }
        #expect(errors > 0)
    }
}
