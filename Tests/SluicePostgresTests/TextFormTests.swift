import SluiceCore
import SluicePostgres
import SluiceValues
import Testing

private let schema = Schema([
    ObjectType(name: "Store", properties: [Property(id: 1, name: "_id", type: .objectId)]),
    ObjectType(
        name: "Address", kind: .embedded,
        properties: [
            Property(id: 1, name: "street", type: .string), Property(id: 2, name: "since", type: .timestamp, isOptional: true),
        ], primaryKey: nil),
])

private func form(_ type: PropertyType, _ collection: CollectionKind = .none, optional: Bool = false) -> ColumnForm {
    ColumnForm(Property(id: 1, name: "p", type: type, collection: collection, isOptional: optional), in: schema)
}

extension ColumnForm {
    /// The value of a text; nil when it does not fit.
    func value(_ text: String?) -> Value? {
        var buffer = RowBuffer()
        buffer.beginRow()
        do {
            let cell = try decoded(text, &buffer)
            buffer.append(cell)
            let row = buffer.endRow()
            return buffer.withView(row) { $0.value(0) }
        } catch {
            return nil
        }
    }

    func misfit(_ text: String?) -> String? {
        var buffer = RowBuffer()
        do {
            _ = try decoded(text, &buffer)
            return nil
        } catch {
            return error.reason
        }
    }

    private func decoded(_ text: String?, _ buffer: inout RowBuffer) throws(Misfit) -> Cell {
        guard let text else { return try decode(nil, into: &buffer) }
        return try Array(text.utf8).withUnsafeBufferPointer { (bytes) throws(Misfit) in try decode(bytes, into: &buffer) }
    }
}

@Suite struct `The text form of a column` {
    @Test func `reads scalars`() {
        #expect(form(.int).value("-9223372036854775808") == .int(.min))
        #expect(form(.int).value("9223372036854775807") == .int(.max))
        #expect(form(.bool).value("t") == .bool(true))
        #expect(form(.bool).value("f") == .bool(false))
        #expect(form(.double).value("0.1") == .double(0.1))
        #expect(form(.double).value("-0") == .double(-0.0))
        #expect(form(.double).value("1.7976931348623157e+308") == .double(.greatestFiniteMagnitude))
        #expect(form(.double).value("5e-324") == .double(.leastNonzeroMagnitude))
        #expect(form(.double).value("NaN") == .double(.nan))
        #expect(form(.double).value("-Infinity") == .double(-.infinity))
        #expect(form(.float).value("0.1") == .float(0.1))
        #expect(form(.float).value("3.4028235e+38") == .float(.greatestFiniteMagnitude))
        #expect(form(.string).value("ä\"\\") == .string("ä\"\\"))
        #expect(form(.binary).value("\\x00fF") == .binary([0, 255]))
        #expect(form(.decimal).value("12.50") == .decimal(Decimal128("12.50")!))
        #expect(form(.objectId).value("0123456789abcdef01234567") == .objectId(ObjectIdentifierBytes(hex: "0123456789abcdef01234567")!))
        #expect(form(.link(to: "Store")).value("0123456789abcdef01234567") == form(.objectId).value("0123456789abcdef01234567"))
        let uuid = "01234567-89ab-cdef-0123-456789abcdef"
        #expect(form(.uuid).value(uuid) == .uuid(UUIDBytes(uuid)!))
    }

    @Test(arguments: [
        (PropertyType.int, "9223372036854775808"), (.int, "1.5"), (.int, ""), (.int, "-"), (.int, "--1"), (.bool, "true"),
        (.double, "1.2.3"), (.double, ""), (.double, "."), (.double, " 1"), (.double, "1x"), (.float, "-"), (.binary, "\\x0"),
        (.binary, "\\x0g"), (.binary, "00"), (.decimal, "1_0"), (.objectId, "0123456789abcdef0123456"),
        (.objectId, "0123456789abcdef0123456z"), (.uuid, "01234567-89ab-cdef-0123+456789abcdef"), (.uuid, ""),
        (.timestamp, "infinity"), (.timestamp, "-infinity"), (.timestamp, "2026-03-01"), (.timestamp, "2026-13-01 00:00:00+00"),
        (.timestamp, "2026-03-01 00:00:00"), (.timestamp, "2026-03-01 00:00:00.+00"), (.timestamp, "2026-03-01 00:00:00+00 AD"),
        (.timestamp, "294276-12-31 23:59:59.999999+00"), (.timestamp, "294247-01-10 04:00:54.775808+00"),
        (.timestamp, "999999-01-01 00:00:00+00 BC"),
        (.mixed, "{"), (.embedded("Address"), "{\"street\": 1}"),
    ])
    func `refuses what is no such text and names the property`(_ type: PropertyType, _ text: String) {
        #expect(form(type).value(text) == nil)
        #expect(form(type).misfit(text)?.hasPrefix("p: ") == true)
    }

    @Test func `has NULL only where the property has`() {
        #expect(form(.int, optional: true).value(nil) == .null)
        #expect(form(.int).misfit(nil)?.contains("required") == true)
        #expect(form(.link(to: "Store")).value(nil) == .null)
        #expect(form(.int, .list).value(nil) == .list([]))
        #expect(form(.int, .dictionary).value(nil) == .dictionary([:]))
        #expect(form(.int, .list).value("{1,NULL}") == nil)
        #expect(form(.int, .list, optional: true).value("{1,NULL}") == .list([.int(1), .null]))
    }

    @Test func `reads arrays, and sets in order`() {
        #expect(form(.string, .list).value("{}") == .list([]))
        #expect(
            form(.string, .list).value(#"{a,"b c","d\"e\\","NULL",""}"#)
                == .list([.string("a"), .string("b c"), .string("d\"e\\"), .string("NULL"), .string("")]))
        #expect(form(.int, .set).value("{3,1,2,1}") == .list([.int(1), .int(2), .int(3)]))
        #expect(form(.int, .list).value("[0:1]={1,2}") == .list([.int(1), .int(2)]))
        for text in ["", "{", "{1", "{1,", "{{1},{2}}", "{1}x", "{\"1", "1", "[0:1]", "{x}"] {
            #expect(form(.int, .list).value(text) == nil, "\(text)")
        }
    }

    @Test func `reads times to the microsecond, before Christ and beyond the year 9999`() {
        let expected: [(String, Int64)] = [
            ("1970-01-01 00:00:00+00", 0), ("2026-03-01 12:30:00.25+00", 1_772_368_200_250_000),
            ("1969-12-31 23:59:59.999999+00", -1), ("1970-01-01 02:00:00+02", 0), ("1969-12-31 20:30:00-03:30", 0),
            ("0001-01-01 00:00:00+00", -62_135_596_800_000_000), ("0001-12-31 00:00:00+00 BC", -62_135_683_200_000_000),
        ]
        for (text, microseconds) in expected {
            #expect(form(.timestamp).value(text) == .timestamp(Timestamp(microseconds: microseconds)), "\(text)")
        }
        #expect(form(.timestamp).value("12345-01-01 00:00:00+00") == .timestamp(Timestamp(seconds: 327_403_382_400)))
        // The last one that 64 bits hold, which is what later ones are stored as.
        #expect(form(.timestamp).value("294247-01-10 04:00:54.775807+00") == .timestamp(Timestamp(microseconds: .max)))
        let far = Value.timestamp(Timestamp(seconds: 1 << 53))
        #expect(form(.timestamp).text(far).map { form(.timestamp).value($0) } == form(.timestamp).stored(far))
    }

    @Test func `cuts a value to what PostgreSQL keeps`() {
        #expect(
            form(.timestamp).stored(.timestamp(Timestamp(seconds: 1, nanoseconds: 1_999)))
                == .timestamp(Timestamp(seconds: 1, nanoseconds: 1_000)))
        #expect(form(.decimal).stored(.decimal(Decimal128("1E+3")!)) == .decimal(Decimal128("1000")!))
        #expect(form(.decimal).stored(.decimal(Decimal128("-0.0")!)) == .decimal(Decimal128("0.0")!))
        #expect(form(.int, .set).stored(.list([.int(2), .int(1)])) == .list([.int(1), .int(2)]))
        #expect(form(.string).stored(.string("x")) == .string("x"))
    }
}
