package import SluiceCore
import Synchronization

/// What has become of one plugin since its generation began, for operators.
package struct PluginStanding: Hashable, Sendable {
    package enum State: String, Sendable {
        /// It is being loaded for the first time.
        case starting
        case running
        /// Its host has ended, and calls wait for the next one.
        case restarting
        /// Its hosts keep on ending, and calls are refused at once until one works.
        case out
        case stopped
    }

    /// What went wrong last, and how long ago, nanoseconds.
    package struct Trouble: Hashable, Sendable {
        package var error: SluiceError
        package var age: UInt64
    }

    package var path: String
    /// As it introduced itself; nil before it has.
    package var info: PluginInfo?
    package var state = State.starting
    /// Of its host; nil in process and between hosts.
    package var processID: Int32?
    package var isInProcess: Bool
    package var calls = 0
    /// Calls that were answered with a denial. Single writes and objects that an answer denies are not among them.
    package var denied = 0
    /// Calls without an answer that can be used.
    package var failures = 0
    /// Hosts that have ended.
    package var ends = 0
    package var trouble: Trouble?
}

/// Where the thread of a host and those who call it keep `PluginStanding`.
final class PluginLedger: Sendable {
    private struct Entries {
        var state = PluginStanding.State.starting
        var calls = 0
        var denied = 0
        var failures = 0
        var ends = 0
        var trouble: (error: SluiceError, at: UInt64)?
    }

    private let entries = Mutex(Entries())

    func note(_ state: PluginStanding.State) { entries.withLock { $0.state = state } }

    /// A host has ended, for a reason when one is known.
    func noteEnd(_ error: SluiceError?, at now: UInt64) {
        entries.withLock { entries in
            entries.ends += 1
            if let error { entries.trouble = (error, now) }
        }
    }

    func noteCall() { entries.withLock { $0.calls += 1 } }

    func note(_ error: SluiceError, at now: UInt64) {
        entries.withLock { entries in
            guard error.code != .pluginRefused else { return entries.denied += 1 }
            entries.failures += 1
            entries.trouble = (error, now)
        }
    }

    func fill(_ standing: inout PluginStanding, at now: UInt64) {
        let entries = entries.withLock(\.self)
        standing.state = entries.state
        standing.calls = entries.calls
        standing.denied = entries.denied
        standing.failures = entries.failures
        standing.ends = entries.ends
        standing.trouble = entries.trouble.map { .init(error: $0.error, age: now &- $0.at) }
    }
}
