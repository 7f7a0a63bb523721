import SluiceCore
import SluicePorts
import Synchronization
import TestSupport
import Testing

@testable import SluicePipeline

@Suite struct `The kept values of rejected writes` {
    /// A clock that the test moves.
    private final class Clock: SluiceCore.Environment {
        let seconds = Mutex<UInt64>(0)
        func wallMilliseconds() -> Int64 { Int64(seconds.withLock(\.self)) * 1_000 }
        func monotonicNanoseconds() -> UInt64 { seconds.withLock(\.self) * 1_000_000_000 }
        func random() -> UInt64 { 4 }
        func sleep(nanoseconds: UInt64) async throws {}
    }

    private static func rejection(_ values: [String: Value]) -> WriteRejection {
        WriteRejection(
            changeset: 1, object: ObjectKey(type: "Order", key: .string("k")), code: .compensatingWrite, reason: "no", rule: "role reader",
            values: values)
    }

    private static func text(_ kibibytes: Int) -> Value { .string(String(repeating: "x", count: kibibytes << 10)) }

    private static func names(_ values: RefusedValues, _ wanted: [String: Value], of user: String = "ann") throws -> [String] {
        try values.bounded([rejection(wanted)], of: user)[0].values.keys.sorted()
    }

    @Test func `are the smallest of an object, up to its bound`() throws {
        let left = Mutex(0)
        let values = RefusedValues(environment: Clock(), leftOut: { bytes in left.withLock { $0 += bytes } })
        let usual: [String: Value] = ["a": .int(1), "b": Self.text(20), "c": Self.text(30), "d": .null]
        #expect(try values.bounded([Self.rejection(usual)], of: "ann") == [Self.rejection(usual)])
        #expect(left.withLock(\.self) == 0)
        let large = usual.merging(["e": Self.text(8_000), "f": Self.text(40)]) { $1 }
        let bounded = try values.bounded([Self.rejection(large)], of: "ann")[0]
        #expect(bounded.values == usual && bounded.reason == "no")
        #expect(bounded.rule?.hasPrefix("role reader; 2 values of ") == true, "\(bounded.rule ?? "")")
        #expect(left.withLock(\.self) >= 8_040 << 10)
    }

    @Test func `are bounded for each user, and more is kept later`() throws {
        let clock = Clock()
        let values = RefusedValues(environment: clock)
        let object: [String: Value] = ["a": Self.text(50)]
        var kept = 0
        while kept < 100, try Self.names(values, object) == ["a"] { kept += 1 }
        #expect(kept == 20)
        #expect(try Self.names(values, object) == [])
        #expect(try Self.names(values, object, of: "bob") == ["a"])
        #expect(try Self.names(values, [:]) == [])
        clock.seconds.withLock { $0 += 30 }
        #expect(try Self.names(values, object) == ["a"])
        clock.seconds.withLock { $0 += 3_600 }
        kept = 0
        while kept < 100, try Self.names(values, object) == ["a"] { kept += 1 }
        #expect(kept == 20, "after an hour")
    }

    @Test func `do not make room for long keys without end, which cannot be left out`() throws {
        let clock = Clock()
        let values = RefusedValues(environment: clock)
        func reject(_ bytes: Int, of user: String = "ann") throws {
            var rejection = Self.rejection([:])
            rejection.object.key = .string(String(repeating: "k", count: bytes))
            #expect(try values.bounded([rejection], of: user).map(\.object) == [rejection.object])
        }
        for _ in 0..<5_000 { try reject(900) }
        for _ in 0..<20 { try reject(50_000) }
        let error = #expect(throws: SluiceError.self) { try reject(50_000) }
        #expect(error?.code == .limitsExceeded)
        try reject(900)
        try reject(50_000, of: "bob")
        clock.seconds.withLock { $0 += 60 }
        try reject(50_000)
    }

    @Test(arguments: seeds(50)) func `never exceed both bounds`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let clock = Clock()
        let values = RefusedValues(environment: clock)
        var (bytes, seconds) = (0, UInt64(0))
        for _ in 0..<200 {
            let pause = UInt64(random.pick([0, 0, 0, 1, 10]))
            seconds += pause
            clock.seconds.withLock { $0 = seconds }
            let wanted = Dictionary(uniqueKeysWithValues: (0..<random.below(5)).map { ("p\($0)", Self.text(random.below(80))) })
            let size = try values.bounded([Self.rejection(wanted)], of: "ann")[0].values.values.reduce(0) { $0 + $1.recordBytes }
            #expect(size <= Limits.refusedValueBytes, "seed \(seed)")
            bytes += size
        }
        let most = Double(Limits.refusedUserBytes) * (1 + Double(seconds) / 60)
        #expect(Double(bytes) <= most, "seed \(seed): \(bytes) bytes in \(seconds) s")
    }
}
