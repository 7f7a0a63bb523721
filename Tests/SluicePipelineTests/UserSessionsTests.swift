import SluiceCore
import TestSupport
import Testing

@testable import SluicePipeline

@Suite struct `The sessions of a user` {
    @Test(arguments: seeds(20)) func `are as many as have begun and not ended, up to the bound`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let sessions = UserSessions(most: 3)
        var open: [String: Int] = [:]
        for _ in 0..<500 {
            let user = random.pick(["ann", "bob"])
            if random.chance(50), open[user, default: 0] > 0 {
                sessions.end(user)
                open[user, default: 0] -= 1
            } else {
                let isFull = open[user, default: 0] == 3
                do throws(SluiceError) {
                    try sessions.begin(user)
                    open[user, default: 0] += 1
                    #expect(!isFull, "seed \(seed)")
                } catch {
                    #expect(isFull && error.code == .tooManyRequests, "seed \(seed)")
                }
            }
        }
    }
}
