package import SluiceCore
import Synchronization

/// The status of one plugin since its generation began, for operators.
package struct PluginHealth: Hashable, Sendable {
    package enum State: String, Sendable {
        /// The plugin is being loaded for the first time.
        case starting
        case running
        /// The host has ended, and calls wait for the next one.
        case restarting
        /// Hosts have ended repeatedly, and calls fail at once until one works.
        case out
        case stopped
    }

    /// The last error and its age, in nanoseconds.
    package struct Trouble: Hashable, Sendable {
        package var error: SluiceError
        package var age: UInt64
    }

    package var path: String
    /// The identity of the plugin; nil before it is loaded.
    package var info: PluginInfo?
    package var state = State.starting
    /// The process of its host; nil in process and between hosts.
    package var processID: Int32?
    package var isInProcess: Bool
    /// `true` for the host of its functions.
    package var isForFunctions = false
    package var calls = 0
    /// The number of denied calls. Denials of single writes and objects in an answer do not count.
    package var denied = 0
    /// The number of calls without a usable answer.
    package var failures = 0
    /// The number of ended hosts.
    package var ends = 0
    package var trouble: Trouble?
}

/// The counters behind `PluginHealth`, written by a host's thread and its callers.
final class PluginLedger: Sendable {
    private struct Entries {
        var state = PluginHealth.State.starting
        var calls = 0
        var denied = 0
        var failures = 0
        var ends = 0
        var trouble: (error: SluiceError, at: UInt64)?
    }

    private let entries = Mutex(Entries())

    func note(_ state: PluginHealth.State) { entries.withLock { $0.state = state } }

    /// Records the end of a host, with its reason if known.
    func noteEnd(_ error: SluiceError?, at now: UInt64) {
        entries.withLock { entries in
            entries.ends += 1
            if let error { entries.trouble = (error, now) }
        }
    }

    func noteCall() { entries.withLock { $0.calls += 1 } }

    /// Records a failed or denied call.
    func note(_ error: SluiceError, at now: UInt64) {
        entries.withLock { entries in
            guard error.code != .pluginRefused else { return entries.denied += 1 }
            entries.failures += 1
            entries.trouble = (error, now)
        }
    }

    /// Copies the counters into a status.
    func fill(_ standing: inout PluginHealth, at now: UInt64) {
        let entries = entries.withLock(\.self)
        standing.state = entries.state
        standing.calls = entries.calls
        standing.denied = entries.denied
        standing.failures = entries.failures
        standing.ends = entries.ends
        standing.trouble = entries.trouble.map { .init(error: $0.error, age: now &- $0.at) }
    }
}
