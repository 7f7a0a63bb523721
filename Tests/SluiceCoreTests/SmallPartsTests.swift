import SluiceCore
import SluiceValues
import TestSupport
import Testing

@Suite struct SuggestionTests {
    @Test(
        arguments: [
            ("quantty", "quantity"), ("QUANTITY", "quantity"), ("nmae", "name"), ("stor_id", "store_id"), ("zzz", nil), ("x", nil),
        ] as [(String, String?)])
    func `names what was probably meant`(word: String, meant: String?) {
        #expect(Suggestion.nearest(to: word, in: ["name", "quantity", "store_id", "note"]) == meant)
    }

    @Test(arguments: [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 1), ("same", "same", 0)])
    func `counts edits`(left: String, right: String, count: Int) { #expect(EditDistance.between(left, right) == count) }
}

@Suite struct PositionTests {
    @Test(arguments: [(0, "0/0"), (0x16_B374_D848, "16/B374D848"), (.max, "FFFFFFFF/FFFFFFFF")] as [(UInt64, String)])
    func `an LSN reads and prints as PostgreSQL does`(raw: UInt64, text: String) {
        #expect(LSN(rawValue: raw).description == text)
        #expect(LSN(text) == LSN(rawValue: raw))
    }

    @Test(arguments: ["", "0", "/", "1/", "/1", "1/2/3", "G/0", "100000000/0", "0/100000000", "-1/0"])
    func `refuses what is no LSN`(text: String) { #expect(LSN(text) == nil) }

    @Test func `a snapshot sees what had committed when it was taken`() throws {
        let snapshot = try #require(TransactionSnapshot("100:110:103,105"))
        #expect(snapshot.sees(xid: 99) && snapshot.sees(xid: 100) && snapshot.sees(xid: 104) && snapshot.sees(xid: 109))
        #expect(!snapshot.sees(xid: 103) && !snapshot.sees(xid: 105) && !snapshot.sees(xid: 110) && !snapshot.sees(xid: 4_000))
        #expect(TransactionSnapshot("5:5:")?.running == [])
        #expect(TransactionSnapshot("5:5") == nil && TransactionSnapshot("5:9:x") == nil)
    }

    @Test func `a snapshot sees across the turn of the 32-bit counter`() {
        let snapshot = TransactionSnapshot(xmin: (1 << 32) - 5, xmax: (1 << 32) + 5, running: [(1 << 32) + 1])
        #expect(snapshot.sees(xid: UInt32.max - 10) && snapshot.sees(xid: UInt32.max) && snapshot.sees(xid: 0))
        #expect(!snapshot.sees(xid: 1) && !snapshot.sees(xid: 5))
    }

    @Test func `murmur2 agrees with Kafka's published values`() {
        let vectors: [(String, Int32)] = [
            ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829), ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ]
        for (key, hash) in vectors { #expect(Int32(bitPattern: Partitioner.murmur2(Array(key.utf8))) == hash, "\(key)") }
        #expect((0..<100).allSatisfy { (0..<7).contains(Partitioner.partition(of: Array("key\($0)".utf8), partitions: 7)) })
    }
}

@Suite struct HybridClockTests {
    @Test(arguments: seeds(10)) func `readings only grow, whatever the wall clock does`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var clock = HybridClock()
        for _ in 0..<1_000 {
            let now = Int64.random(in: 0...1_000_000, using: &generator)
            let before = clock.last
            if Bool.random(using: &generator) {
                let reading = clock.tick(now: now)
                #expect(reading > before && reading.milliseconds >= now, "seed \(seed)")
            } else {
                let remote = HybridTime(milliseconds: Int64.random(in: 0...3_000_000, using: &generator), counter: 7)
                let counted = clock.observe(remote, now: now)
                #expect(counted <= remote && counted.milliseconds <= now + Limits.clockSkewMilliseconds, "seed \(seed)")
                #expect(clock.last == max(before, counted), "seed \(seed)")
            }
        }
    }

    @Test func `at the end of time the clock stands`() {
        var clock = HybridClock(last: HybridTime(rawValue: .max))
        #expect(clock.tick(now: 5) == HybridTime(rawValue: .max))
        #expect(HybridTime(milliseconds: .max) == HybridTime(milliseconds: HybridTime.lastMillisecond))
        #expect(HybridTime(milliseconds: .max) > HybridTime(milliseconds: 5))
    }

    @Test func `a reading after a remote one is later than it`() {
        var clock = HybridClock()
        let remote = clock.observe(HybridTime(milliseconds: 5_000, counter: 9), now: 4_000)
        #expect(clock.tick(now: 4_000) > remote)
    }

    @Test func `stamps are ordered by time, then client`() {
        let early = WriteStamp(time: HybridTime(milliseconds: 1), client: ClientID(rawValue: 9))
        let late = WriteStamp(time: HybridTime(milliseconds: 2), client: .server)
        #expect(early < late && WriteStamp(time: early.time, client: .server) < early)
    }
}

@Suite struct ErrorTableTests {
    @Test(arguments: ErrorCode.allCases) func `every code says what it means and what to do`(code: ErrorCode) {
        #expect(code.meaning.hasSuffix(".") && code.meaning.count > 10)
        #expect(code.fix.count > 5)
        #expect(code.name.allSatisfy { $0.isLowercase || $0 == "-" })
    }

    @Test(arguments: ErrorRecovery.allCases) func `every recovery is that of a code`(recovery: ErrorRecovery) {
        #expect(recovery.advice.hasSuffix("."))
        #expect(ErrorCode.allCases.contains { $0.recovery == recovery })
    }

    @Test func `failures of plugins and of PostgreSQL end by themselves`() {
        let plugins = ErrorCode.allCases.filter(\.isPluginFailure)
        #expect(plugins == [.pluginCrashed, .pluginTimeout, .pluginBadAnswer, .pluginUnavailable, .pluginFailed])
        let postgres = ErrorCode.allCases.filter(\.isPostgresFailure)
        #expect(postgres == [.postgresUnreachable, .timeout])
        for code in plugins + postgres { #expect(code.isTemporary && code.isRetriable, "\(code)") }
    }

    @Test func `a retry helps after an outage or a repair, and not after a refusal`() {
        for code: ErrorCode in [.logUnreachable, .slotBusy, .connectionFailed] { #expect(code.isTemporary && code.isRetriable, "\(code)") }
        for code: ErrorCode in [.internalError, .logTopic, .pluginMissing] { #expect(!code.isTemporary && code.isRetriable, "\(code)") }
        for code: ErrorCode in [.pluginRefused, .badChangeset, .tokenExpired, .badClientFile] { #expect(!code.isRetriable, "\(code)") }
    }

    @Test func `names are unique`() {
        #expect(Set(ErrorCode.allCases.map(\.name)).count == ErrorCode.allCases.count)
        #expect(ErrorCode.badJSON.name == "bad-json" && ErrorCode.pluginABIMismatch.name == "plugin-abi-mismatch")
    }

    @Test func `an error prints code, message and fix`() {
        let error = SluiceError(.portInUse, "Port 80 is taken.", fix: "Stop the other program.")
        #expect(error.description == "port-in-use (903): Port 80 is taken. Stop the other program.")
        #expect(SluiceError(.portInUse, "Port 80 is taken.", fix: "").description == "port-in-use (903): Port 80 is taken.")
    }
}
