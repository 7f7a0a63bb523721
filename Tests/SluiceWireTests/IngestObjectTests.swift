import SluiceCore
import SluiceValues
import SluiceWire
import TestSupport
import Testing

@Suite struct `An IngestObject` {
    @Test func `is read as the JSON of the same values`() throws {
        let values: [String: Value] = [
            "_id": .int(7), "name": .string("é"), "on": .bool(true), "none": .null, "ratio": .double(0.5), "list": .list([.int(1), .null]),
            "inner": .dictionary(["a": .string("b")]), "bytes": .binary([1, 2]), "at": .timestamp(Timestamp(seconds: 5, nanoseconds: 0)),
        ]
        #expect(try IngestObjectCodec.json(try IngestObjectCodec.bytes(values)) == ExtendedJSON.json(values))
        #expect(try IngestObjectCodec.json([]) == .object([]))
    }

    @Test(arguments: [Int64.min, .min + 1, -1, 0, 1, .max], [Int32(-999_999_999), -1, 0, 1, 999_999_999])
    func `with any time is read, or refused`(seconds: Int64, nanoseconds: Int32) throws {
        let bytes = try IngestObjectCodec.bytes(["at": .timestamp(Timestamp(seconds: seconds, nanoseconds: nanoseconds))])
        let json = try? IngestObjectCodec.json(bytes)
        #expect((json != nil) == (seconds == 0 || nanoseconds == 0 || (seconds < 0) == (nanoseconds < 0)))
    }

    @Test func `that is none is an error by name, and no random bytes trap`() throws {
        var random = SplitMix64()
        print("seed \(random.seed)")
        let good = try IngestObjectCodec.bytes(["_id": .string("key"), "list": .list([.dictionary(["a": .int(1)])])])
        for _ in 0..<2_000 {
            var bytes = good
            for _ in 0..<(1 + random.next() % 3) {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            do throws(SluiceError) { _ = try IngestObjectCodec.json(bytes) } catch {
                #expect(error.code == .ingestMalformed, "seed \(random.seed)")
            }
        }
        let error = #expect(throws: SluiceError.self) { try IngestObjectCodec.json([0xFF, 0xFF]) }
        #expect(error?.code == .ingestMalformed)
    }
}
