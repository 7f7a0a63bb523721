import SluiceValues
import TestSupport
import Testing

/// Documents by their bytes, as the specification of BSON 1.1 defines them.
struct BSONTests {
    private static func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex.filter { $0 != " " })) }

    /// A document of one element `a`: type, name, value.
    private static func document(_ type: UInt8, _ value: String) throws -> [UInt8] {
        let content = [type, 0x61, 0] + (try bytes(value))
        return BSONWriter.integer(Int32(content.count + 5)) + content + [0]
    }

    @Test(
        arguments: [
            (0x01, "000000000000F83F", #"{"a":1.5}"#),
            (0x02, "03000000 C3A9 00", #"{"a":"é"}"#),
            (0x02, "01000000 00", #"{"a":""}"#),
            (0x03, "0C000000 10 6200 07000000 00", #"{"a":{"b":7}}"#),
            (0x04, "13000000 10 3000 01000000 08 3100 01 0A 3200 00", #"{"a":[1,true,null]}"#),
            (0x05, "02000000 00 FF01", #"{"a":{"$binary":{"base64":"/wE=","subType":"00"}}}"#),
            (0x05, "06000000 02 02000000 FF01", #"{"a":{"$binary":{"base64":"/wE=","subType":"02"}}}"#),
            (0x05, "10000000 04 000102030405060708090a0b0c0d0e0f", #"{"a":{"$uuid":"00010203-0405-0607-0809-0a0b0c0d0e0f"}}"#),
            (0x05, "00000000 80", #"{"a":{"$binary":{"base64":"","subType":"80"}}}"#),
            (0x06, "", #"{"a":{"$undefined":true}}"#),
            (0x07, "0102030405060708090a0b0c", #"{"a":{"$oid":"0102030405060708090a0b0c"}}"#),
            (0x08, "00", #"{"a":false}"#),
            (0x09, "FFFFFFFFFFFFFFFF", #"{"a":{"$date":"1969-12-31T23:59:59.999Z"}}"#),
            (0x0A, "", #"{"a":null}"#),
            (0x0B, "61623F00 696D00", #"{"a":{"$regularExpression":{"pattern":"ab?","options":"im"}}}"#),
            (
                0x0C, "02000000 6200 0102030405060708090a0b0c",
                #"{"a":{"$dbPointer":{"$ref":"b","$id":{"$oid":"0102030405060708090a0b0c"}}}}"#
            ),
            (0x0D, "03000000 783B00", #"{"a":{"$code":"x;"}}"#),
            (0x0E, "02000000 7300", #"{"a":{"$symbol":"s"}}"#),
            (0x0F, "16000000 02000000 7800 0C000000 10 6200 01000000 00", #"{"a":{"$code":"x","$scope":{"b":1}}}"#),
            (0x10, "FEFFFFFF", #"{"a":-2}"#),
            (0x11, "02000000 01000000", #"{"a":{"$timestamp":{"t":1,"i":2}}}"#),
            (0x12, "FFFFFFFFFFFFFF7F", #"{"a":9223372036854775807}"#),
            (0x13, "0100000000000000 0000000000003E30", #"{"a":{"$numberDecimal":"0.1"}}"#),
            (0xFF, "", #"{"a":{"$minKey":1}}"#),
            (0x7F, "", #"{"a":{"$maxKey":1}}"#),
        ] as [(UInt8, String, String)])
    func `each type reads as its extended JSON`(type: UInt8, value: String, json: String) throws {
        #expect(try BSON.json(try Self.document(type, value)).text == json)
    }

    @Test(
        arguments: [
            ("", "has 0 bytes"),
            ("04000000", "has 4 bytes"),
            ("06000000 00", "length is 6"),
            ("05000000 01", "no terminator"),
            ("09000000 99 6100 00 00", "0x99 is not a type"),
            ("08000000 10 6100", "has 7 bytes"),
            ("0B000000 10 6100 010000", "has 10 bytes"),
            ("0B000000 10 6100 0100 00 00", "reaches beyond"),
            ("07000000 10 6100", "no end"),
            ("09000000 08 6100 02 00", "2 is not a bool"),
            ("0E000000 02 6100 02000000 7878 00", "has no terminator"),
            ("0D000000 02 6100 FF000000 00 00", "length is 255"),
            ("0D000000 02 6100 00000000 00 00", "length is 0"),
            ("0E000000 02 6100 02000000 FF00 00", "UTF-8"),
            ("0E000000 02 FF00 02000000 6100 00", "UTF-8"),
            ("0C000000 03 6100 04000000 00", "length is 4"),
            ("13000000 05 6100 06000000 02 03000000 0101 00", "length of its own"),
            ("17000000 0F 6100 0F000000 03000000 7800 05000000 00 00", "malformed"),
        ])
    func `a defect is an error with its place`(hex: String, problem: String) throws {
        let bytes = try Self.bytes(hex)
        let error = #expect(throws: BSONError.self) { try BSON.json(bytes) }
        let found = try #require(error)
        #expect(found.description.contains(problem), "\(found)")
        #expect((0...bytes.count).contains(found.offset))
    }

    @Test func `nesting is bounded`() throws {
        func nested(_ depth: Int) -> [UInt8] {
            (1..<depth).reduce(BSONWriter.document { _ in }) { inner, _ in BSONWriter.document { $0.element(.document, "a", inner) } }
        }
        _ = try BSON.json(nested(BSONLimits.depth))
        let error = #expect(throws: BSONError.self) { try BSON.json(nested(BSONLimits.depth + 1)) }
        #expect(error?.problem.contains("nested deeper") == true)
    }

    @Test func `the checksum of archives is CRC-64 of XZ`() {
        // The check value of the catalogue of CRCs, and a length that is no multiple of eight bytes.
        var checksum = CRC64()
        Array("123456789".utf8).withUnsafeBytes { checksum.update($0) }
        #expect(checksum.value == 0x995D_C9BB_DF19_39FA)
        var pieces = CRC64()
        for piece in ["1", "2345678", "9"] { Array(piece.utf8).withUnsafeBytes { pieces.update($0) } }
        #expect(pieces.value == checksum.value && CRC64().value == 0)
    }
}
