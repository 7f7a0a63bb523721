import SluiceCore
import SluiceWire
import Testing

@Suite struct ByteWriterTests {
    @Test(arguments: [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
    func `nested content of any length gets the shortest length prefix`(length: Int) throws {
        var writer = ByteWriter()
        let start = writer.open(1)
        writer.raw([UInt8](repeating: 7, count: length))
        writer.close(start)
        #expect(writer.count == 1 + ByteWriter.size(ofVarint: UInt64(length)) + length)
        let range = try writer.withUnsafeBytes { bytes throws(SluiceError) in
            var reader = WireReader(bytes)
            #expect(try reader.tag() == WireReader.Tag(field: 1, type: .lengthDelimited))
            return try reader.content()
        }
        #expect(range.count == length)
        #expect(writer.bytes[range].allSatisfy { $0 == 7 })
    }

    @Test func `varints of every length come back`() throws {
        let values = (0...64).map { $0 == 64 ? UInt64.max : UInt64(1) << $0 } + [0]
        for value in values {
            var writer = ByteWriter()
            writer.varint(value)
            #expect(writer.count == ByteWriter.size(ofVarint: value))
            let read = try writer.withUnsafeBytes { bytes throws(SluiceError) in
                var reader = WireReader(bytes)
                return try reader.varint()
            }
            #expect(read == value)
        }
    }

    @Test(
        arguments: [
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], [0x80], [0x00], [0x0b], [0x0a, 0x05, 0x01], [0x0d, 0x01],
            [0x09, 0x01], [],
        ] as [[UInt8]])
    func `cut off or impossible fields are errors`(bytes: [UInt8]) {
        let error = #expect(throws: SluiceError.self) {
            try bytes.withUnsafeBytes { buffer in
                var reader = WireReader(buffer)
                let tag = try reader.tag()
                try reader.skip(tag.type)
            }
        }
        #expect(error?.code == .badSyntax)
    }

    @Test func `text that is not UTF-8 is refused`() {
        let bytes: [UInt8] = [0x02, 0xc3, 0x28]
        #expect(throws: SluiceError.self) {
            try bytes.withUnsafeBytes { buffer in
                var reader = WireReader(buffer)
                return try reader.string()
            }
        }
    }
}
