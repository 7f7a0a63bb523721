import SluiceCore
import TestSupport
import Testing

@testable import SluicePipeline

@Suite struct `The pace of subscription changes` {
    private static let second: UInt64 = 1_000_000_000

    @Test func `lets the changes of a minute come at once, and delays further ones evenly`() {
        var pace = SubscriptionPace()
        let start = 1_000 * Self.second
        let first = (0..<Limits.subscriptionChanges).map { _ in pace.take(at: start) }
        #expect(first.allSatisfy { $0 == 0 })
        let step = 60 * Self.second / UInt64(Limits.subscriptionChanges)
        let next = (0..<2).map { _ in pace.take(at: start) }
        #expect(next == [step, 2 * step])
        let later = [60, 3_600].map { pace.take(at: start + $0 * Self.second) }
        #expect(later == [0, 0])
    }

    @Test(arguments: seeds(50)) func `admits no more in any time than at once and per minute together`(seed: UInt64) {
        var (random, pace) = (SplitMix64(seed: seed), SubscriptionPace())
        var now: UInt64 = 0
        var admitted: [UInt64] = []
        for _ in 0..<2_000 {
            now += UInt64(random.below(random.chance(5) ? 20_000 : 100)) * 1_000_000
            // A session handles one change after another.
            now += pace.take(at: now)
            admitted.append(now)
        }
        for first in stride(from: 0, to: admitted.count, by: 97) {
            let last = admitted.count - 1
            let minutes = Double(admitted[last] - admitted[first]) / 60e9
            #expect(Double(last - first + 1) <= Double(Limits.subscriptionChanges) * (1 + minutes) + 1, "seed \(seed)")
        }
    }
}
