#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import SluiceCore
import SluiceValues
import SluiceWire
import SwiftProtobuf
import Testing

private var deterministic: BinaryEncodingOptions {
    var options = BinaryEncodingOptions()
    options.useDeterministicOrdering = true
    return options
}

func generated(_ message: some Message) throws -> [UInt8] { try message.serializedBytes(options: deterministic) }

@Suite struct RowCodecTests {
    static let seeds = (0..<20).map { _ in UInt64.random(in: .min ... .max) }

    @Test(arguments: seeds)
    func `rows are written byte for byte as the generated code writes them, and read back`(seed: UInt64) throws {
        var samples = Samples(seed: seed)
        let codec = RowCodec(Samples.type)
        var rows = RowBuffer()
        var writer = ByteWriter()
        for _ in 0..<30 {
            let row = samples.row()
            let reference = try generated(PBRow(row, type: Samples.type))

            rows.removeAll()
            writer.removeAll()
            let flat = rows.append(row)
            rows.withView(flat) { codec.encode($0, into: &writer) }
            #expect(writer.bytes == reference, "seed \(seed)")
            // What bounds rows for the log (`Limits.rowBytes`) never counts too few, and what tells the small ones never passes a large
            // one.
            let most = (0..<Samples.type.properties.count).reduce(0) { $0 + (row[$1]?.recordBytes ?? 0) }
            let frames = 10 * Samples.type.properties.count
            #expect(reference.count <= most + frames && most <= 8 * rows.arena.count + 24 * rows.cells.count, "seed \(seed)")

            var owned = ByteWriter()
            codec.encode(row, into: &owned)
            #expect(owned.bytes == reference, "seed \(seed)")

            rows.removeAll()
            let read = try reference.withUnsafeBytes { try codec.decode($0, into: &rows) }
            #expect(rows.withView(read) { Row($0) } == row, "seed \(seed)")
            let message: PBRow = try WireProtocol.decode(from: writer.bytes)
            #expect(try Row(message, type: Samples.type) == row, "seed \(seed)")
        }
    }

    @Test(arguments: seeds)
    func `values in owning form agree with the generated code both ways`(seed: UInt64) throws {
        var samples = Samples(seed: seed)
        for _ in 0..<100 {
            let value = samples.any()
            let reference = try generated(PBValue(value))
            #expect(ValueCodec.encode(value) == reference, "seed \(seed)")
            #expect(try ValueCodec.decode(reference) == value, "seed \(seed)")
            #expect(try Value(try WireProtocol.decode(PBValue.self, from: reference)) == value, "seed \(seed)")
        }
    }

    @Test(arguments: seeds)
    func `a mask hides properties, also from rows that are encoded already`(seed: UInt64) throws {
        var samples = Samples(seed: seed)
        let codec = RowCodec(Samples.type)
        let row = samples.row()
        let mask = Samples.type.properties.map { _ in samples.chance(50) }
        var whole = ByteWriter()
        var masked = ByteWriter()
        var copied = ByteWriter()
        codec.encode(row, into: &whole)
        codec.encode(row, mask: mask, into: &masked)
        try whole.withUnsafeBytes { bytes throws(SluiceError) in try codec.copy(bytes, mask: mask, into: &copied) }
        #expect(copied.bytes == masked.bytes, "seed \(seed)")
        let seen = try codec.decode(masked.bytes)
        #expect(seen == Row(zip(row.values, mask).map { $1 ? $0 : nil }), "seed \(seed)")
    }

    @Test func `properties with unknown numbers are skipped`() throws {
        var message = PBRow()
        message.fields = [PBField(property: 9_999, .string("from a newer schema")), PBField(property: 7, .int(5))]
        let row = try RowCodec(Samples.type).decode(try generated(message))
        #expect(row[2] == .int(5))
        #expect(row.values.compactMap(\.self) == [.int(5)])
    }

    @Test(arguments: [
        (UInt32(7), Value.string("five")), (1, .int(1)), (13, .list([.int(1)])), (13, .string("a")), (12, .list([])),
        (2, .double(1)), (10, .bool(true)),
    ])
    func `a value that its property does not take is refused, and names the property`(number: UInt32, value: Value) throws {
        var message = PBRow()
        message.fields = [PBField(property: number, value)]
        let bytes = try generated(message)
        var rows = RowBuffer()
        let error = #expect(throws: SluiceError.self) {
            try bytes.withUnsafeBytes { try RowCodec(Samples.type).decode($0, into: &rows) }
        }
        #expect(error?.code == .wrongValueType)
        #expect(error?.message.hasPrefix("Everything.") == true)
        #expect(rows.cells.isEmpty && rows.arena.isEmpty)
        #expect(throws: SluiceError.self) { try Row(message, type: Samples.type) }
    }

    @Test(
        arguments: [
            (5, -1), (-5, 1), (.min, 1), (.max, -1), (0, 1_000_000_000), (.min, -1_000_000_000), (.min, .min), (0, .max),
        ] as [(Int64, Int32)])
    func `a time whose parts make none is refused by both readers`(seconds: Int64, nanoseconds: Int32) throws {
        let value = Value.timestamp(Timestamp(seconds: seconds, nanoseconds: nanoseconds))
        for value in [value, .list([value])] {
            let message = PBValue(value)
            let bytes = try generated(message)
            #expect(throws: SluiceError.malformed("a time has \(seconds) seconds and \(nanoseconds) nanoseconds, which is none")) {
                try ValueCodec.decode(bytes)
            }
            let error = #expect(throws: SluiceError.self) { try Value(message) }
            #expect(error?.code == .badSyntax)
        }
    }

    @Test func `nesting is allowed to the limit and refused beyond`() throws {
        func nested(_ depth: Int) -> Value { (0..<depth).reduce(.int(1)) { inner, _ in .list([inner]) } }
        let deepest = nested(Limits.nestingDepth)
        let bytes = ValueCodec.encode(deepest)
        #expect(try ValueCodec.decode(bytes) == deepest)
        #expect(try Value(try WireProtocol.decode(PBValue.self, from: bytes)) == deepest)
        let deeper = ValueCodec.encode(nested(Limits.nestingDepth + 1))
        #expect(throws: SluiceError.self) { try ValueCodec.decode(deeper) }
        #expect(throws: SluiceError.self) { try Value(try WireProtocol.decode(PBValue.self, from: deeper)) }
    }

    @Test func `dictionary entries in any order read as the same dictionary, and the last of equal keys counts`() throws {
        var writer = ByteWriter()
        let dictionary = writer.open(ValueKind.dictionary.rawValue)
        for (key, number) in [("b", 1), ("a", 2), ("b", 3)] {
            let entry = writer.open(1)
            writer.field(1, string: key)
            ValueCodec.nested(2, .int(Int64(number)), into: &writer)
            writer.close(entry)
        }
        writer.close(dictionary)
        #expect(try ValueCodec.decode(writer.bytes) == .dictionary(["a": .int(2), "b": .int(3)]))
    }

    @Test(arguments: seeds)
    func `damaged bytes are an error or another value, never a trap`(seed: UInt64) throws {
        var samples = Samples(seed: seed)
        let codec = RowCodec(Samples.type)
        var refused = 0
        for _ in 0..<200 {
            var writer = ByteWriter()
            codec.encode(samples.row(), into: &writer)
            var bytes = writer.bytes
            guard bytes.count > 1 else { continue }
            if samples.chance(50) { bytes.removeLast(1 + samples.below(min(bytes.count - 1, 50))) }
            for _ in 0..<samples.below(4) { bytes[samples.below(bytes.count)] = UInt8(samples.below(256)) }
            var rows = RowBuffer()
            do {
                let row = try bytes.withUnsafeBytes { try codec.decode($0, into: &rows) }
                #expect(row.count == Samples.type.properties.count)
            } catch let error as SluiceError {
                refused += 1
                #expect([.badSyntax, .wrongValueType].contains(error.code), "seed \(seed)")
                #expect(rows.cells.isEmpty && rows.arena.isEmpty, "seed \(seed)")
            }
        }
        #expect(refused > 0, "seed \(seed)")
    }
}
