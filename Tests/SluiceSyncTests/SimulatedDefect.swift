/// A promise that the simulation checks.
enum Promise: String, CaseIterable {
    case convergence, exactlyOnce, atomicVisibility, readYourWrites, monotonicReads, latestShown, noStall
}

/// A promise that was broken, and how it showed.
struct Problem: CustomStringConvertible {
    var promise: Promise
    var what: String

    var description: String { "\(promise): \(what)" }
}

/// A mistake built into the simulated gateway or file, to prove that the checks see it.
enum SimulatedDefect: String, CaseIterable {
    /// The file shows one half of a transaction before the other.
    case torn
    /// The file goes on counting changesets from where it was when it was backed up.
    case restored
    /// The gateway takes a changeset that it has for a new one.
    case twice
    /// The gateway now and then acknowledges a changeset that it has thrown away.
    case lost
    /// The file drops a write when it is acknowledged, before the write has come back.
    case reread
    /// The gateway reads bootstraps from a copy of the database that lags behind.
    case stale
    /// The gateway takes rows that were written since a bootstrap was interrupted for those that the file has put aside.
    case hasty
    /// The file shows what it has yet to upload over everything, whenever others have written.
    case deaf
    /// The gateway now and then overlooks a commit that concerns a session.
    case eyes
    /// The gateway now and then forgets to answer a mark, and says nothing.
    case stall

    /// What it breaks.
    var promise: Promise {
        switch self {
        case .torn: .atomicVisibility
        case .twice, .lost, .restored: .exactlyOnce
        case .reread: .readYourWrites
        case .stale: .monotonicReads
        case .deaf: .latestShown
        case .eyes, .hasty: .convergence
        case .stall: .noStall
        }
    }
}
