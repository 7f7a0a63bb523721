import Foundation

/// A small generator whose whole run follows from its seed (Steele, Lea and Flood, OOPSLA 2014), so that a failing property
/// test can be run again from the number it printed.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    package let seed: UInt64
    private var state: UInt64

    package init(seed: UInt64 = .random(in: .min ... .max)) {
        self.seed = seed
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    package mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
    package mutating func pick<T>(_ values: [T]) -> T { values[below(values.count)] }
}

/// Returns the number of runs of a long play: `SLUICE_<name>_RUNS` if it is set, `soak` with `SLUICE_SOAK`, and `usually` otherwise.
package func runs(_ name: String, usually: Int, soak: Int) -> Int {
    let environment = ProcessInfo.processInfo.environment
    if let given = environment["SLUICE_\(name)_RUNS"].flatMap({ Int($0) }) { return given }
    return isSoak ? soak : usually
}

/// `true` if `SLUICE_SOAK` asks for the long plays in full, as `make soak` does.
package var isSoak: Bool { ProcessInfo.processInfo.environment["SLUICE_SOAK"].map { !["", "0"].contains($0) } ?? false }

/// The number of rounds in which a test draws inputs of its own: `usually`, or `soak` with `SLUICE_SOAK`.
package func rounds(_ usually: Int, soak: Int) -> Int { isSoak ? soak : usually }

/// The seeds of a property test: 1 and half of `count` new ones; with `SLUICE_SOAK` 1, 2, 3 and `count` new ones; with `SLUICE_SEED` that
/// one alone.
///
/// - Parameter soak: The number of new ones with `SLUICE_SOAK`, if it is another.
package func seeds(_ count: Int, soak: Int? = nil) -> [UInt64] {
    if let replayedSeed { return [replayedSeed] }
    return isSoak ? [1, 2, 3] + newSeeds(soak ?? count) : [1] + newSeeds((count + 1) / 2)
}

/// As many seeds: 1 and new ones; with `SLUICE_SEED` that one alone.
package func seeds(exactly count: Int) -> [UInt64] {
    if let replayedSeed { return [replayedSeed] }
    return count < 1 ? [] : [1] + newSeeds(count - 1)
}

private var replayedSeed: UInt64? { ProcessInfo.processInfo.environment["SLUICE_SEED"].flatMap { UInt64($0) } }
private func newSeeds(_ count: Int) -> [UInt64] { (0..<count).map { _ in UInt64.random(in: .min ... .max) } }
