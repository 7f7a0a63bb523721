import Testing

/// What would a check be worth that cannot fail? Each defect has to be seen, by the check of the promise that it breaks.
@Suite struct SimulationDefectTests {
    /// Far fewer than a run of `SimulationTests` has.
    static let seeds: ClosedRange<UInt64> = 1...60

    @Test(arguments: SimulatedDefect.allCases)
    func `a gateway or file with a defect is found out by the check of what it breaks`(defect: SimulatedDefect) throws {
        let seen = try Self.seeds.first { seed in
            try SimulationTests.run(seed, steps: SimulationTests.steps, defect: defect).contains { $0.promise == defect.promise }
        }
        #expect(seen != nil, "\(defect) passes \(Self.seeds.count) seeds unseen")
    }

    @Test func `every promise has a defect that breaks it`() {
        #expect(Set(SimulatedDefect.allCases.map(\.promise)) == Set(Promise.allCases))
    }

    @Test func `the same seeds find nothing without a defect, and take every way to come back`() throws {
        var (kept, aside, resumed, crashes, restored, full) = (0, 0, 0, 0, 0, 0)
        var (own, others) = (0, 0)
        for seed in Self.seeds {
            let played = try SimulationTests.play(seed, steps: SimulationTests.steps)
            try #require(played.problems.isEmpty, "seed \(seed)")
            kept += played.gateway.keptCount
            aside += played.gateway.asideCount
            resumed += played.gateway.resumedCount
            crashes += played.gateway.crashCount
            restored += played.restoredCount
            full += played.fullCount
            own += played.latestOwn
            others += played.latestOfOthers
        }
        #expect(own > 300 && others > 20, "the latest value of \(own) items was the device's own, of \(others) another's")
        #expect(
            kept > 0 && aside > 0 && resumed > 0 && crashes > 0 && restored > 0 && full > 0,
            "\(kept) rows kept, \(aside) put aside, \(resumed) sessions resumed, \(crashes) crashes, \(restored) restored, \(full) full disks"
        )
    }
}
