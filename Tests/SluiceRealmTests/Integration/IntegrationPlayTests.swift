import SluiceRealm
import TestSupport
import Testing

@Suite struct `Random plays of three clients` {
    private static func run(_ seed: UInt64, skew: Int) throws {
        var random = try RandomPlay(seed: seed, skew: skew)
        do {
            try random.run(steps: 200)
        } catch {
            Issue.record("seed \(seed): \(error)")
            return
        }
        let difference = try random.play.difference()
        #expect(difference == nil, "seed \(seed)")
    }

    @Test(arguments: seeds(60, soak: 2_000)) func `end with equal replicas`(seed: UInt64) throws { try Self.run(seed, skew: 0) }

    @Test(arguments: seeds(60, soak: 2_000)) func `end with equal replicas although clocks go back`(seed: UInt64) throws {
        try Self.run(seed, skew: 40)
    }

    @Test func `contain rejected writes`() throws {
        var random = try RandomPlay(seed: 1, skew: 0)
        try random.run(steps: 2_000)
        #expect(!random.play.rejections.isEmpty)
    }
}
