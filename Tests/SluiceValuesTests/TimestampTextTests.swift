import SluiceValues
import TestSupport
import Testing

@Suite struct TimestampTextTests {
    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0, 0), ("2000-02-29T23:59:59.5Z", 951_868_799, 500_000_000),
            ("2026-03-01 12:30:00+02", 1_772_361_000, 0), ("2026-03-01T12:30:00.123456789-0130", 1_772_373_600, 123_456_789),
            ("1969-12-31T23:59:59.75Z", 0, -250_000_000), ("2026-03-01", 1_772_323_200, 0), ("2016-12-31T23:59:60Z", 1_483_228_800, 0),
            ("0000-01-01T00:00:00Z", -62_167_219_200, 0), ("2026-01-01T24:00:00Z", 1_767_312_000, 0),
        ] as [(String, Int64, Int32)])
    func `reads ISO 8601`(text: String, seconds: Int64, nanoseconds: Int32) {
        #expect(Timestamp(iso8601: text) == Timestamp(seconds: seconds, nanoseconds: nanoseconds))
    }

    @Test(arguments: [
        "", "2026", "2026-13-01", "2026-02-30", "2026-01-01T", "2026-01-01T25:00:00Z", "2026-01-01T10:00:61Z", "2026-01-01T10:00:00.Z",
        "2026-01-01T10:00:00.1234567890Z", "2026-01-01T10:00:00Zx", "2026-1-1", "yesterday",
    ])
    func `refuses anything else`(text: String) { #expect(Timestamp(iso8601: text) == nil) }

    @Test func `prints as many digits as the value has`() {
        #expect(Timestamp(seconds: 1).iso8601 == "1970-01-01T00:00:01Z")
        #expect(Timestamp(seconds: 1, nanoseconds: 20_000_000).iso8601 == "1970-01-01T00:00:01.020Z")
        #expect(Timestamp(seconds: -1, nanoseconds: -1_000).iso8601 == "1969-12-31T23:59:58.999999Z")
        #expect(Timestamp(seconds: 0, nanoseconds: 1).iso8601 == "1970-01-01T00:00:00.000000001Z")
        #expect(Timestamp(seconds: 253_402_300_800).iso8601 == "+010000-01-01T00:00:00Z")
    }

    @Test(arguments: seeds(10)) func `its text reads back`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let time = Timestamp.random(using: &generator)
            #expect(Timestamp(iso8601: time.iso8601) == time, "seed \(seed): \(time)")
            #expect(Timestamp(milliseconds: time.milliseconds).milliseconds == time.milliseconds, "seed \(seed)")
        }
    }

    @Test func `extremes do not trap`() {
        #expect(Timestamp(seconds: .max).milliseconds == .max)
        #expect(Timestamp(seconds: .min).milliseconds == .min)
        #expect(Timestamp(microseconds: .min).microseconds == .min)
    }

    @Test(arguments: [Int64.min, .min + 1, -1, 0, 1, .max - 1, .max], [Int32(0), 1, 999_999_999])
    func `every time there is has a text and a year`(seconds: Int64, fraction: Int32) {
        let time = Timestamp(seconds: seconds, nanoseconds: seconds < 0 ? -fraction : fraction)
        let isFar = abs(Double(seconds)) > 1
        #expect(isFar == (abs(time.year) == 292_277_026_596 || abs(time.year) == 292_277_022_657), "\(time.year)")
        #expect(
            time.iso8601.hasPrefix(isFar ? (seconds < 0 ? "-292277022657-01-2" : "+292277026596-12-04T15:30:0") : "19"), "\(time.iso8601)")
        #expect(isFar || Timestamp(iso8601: time.iso8601) == time)
    }

    @Test func `the seconds before the least one belong to the day before`() {
        #expect(Timestamp(seconds: .min).iso8601 == "-292277022657-01-27T08:29:52Z")
        #expect(Timestamp(seconds: .min, nanoseconds: -1).iso8601 == "-292277022657-01-27T08:29:51.999999999Z")
        #expect(Timestamp(seconds: -86_400, nanoseconds: -1).iso8601 == "1969-12-30T23:59:59.999999999Z")
    }

    @Test(
        arguments: [
            (5, 7, true), (-5, -7, true), (0, -7, true), (.min, -999_999_999, true), (.max, 999_999_999, true), (5, -7, false),
            (-5, 7, false),
            (0, 1_000_000_000, false), (0, -1_000_000_000, false), (.min, .min, false), (.max, .max, false),
        ] as [(Int64, Int64, Bool)])
    func `parts make a time when they have one sign and less than a second's nanoseconds`(seconds: Int64, nanoseconds: Int64, isTime: Bool)
    {
        #expect((Timestamp(seconds: seconds, checking: nanoseconds) != nil) == isTime)
    }
}
