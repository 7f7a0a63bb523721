package import SluiceCore

/// One plugin of the chain, as the gateway's configuration names it.
package struct PluginSpec: Sendable {
    package enum Mode: Hashable, Sendable {
        /// In a supervised process of its own: a crash or hang costs the call that caused it.
        case process
        /// In the gateway, on a thread of its own: only for trusted plugins, since a crash there ends the gateway.
        case inProcess
    }

    package var path: String
    /// The library as it was checked: what is loaded, whatever becomes of the file. Nil: the file is read when the plugin starts.
    package var image: PluginImage?
    /// The one folder whose files the plugin may read, when it runs in a process of its own; nil: none.
    package var folder: String?
    /// Handed to the plugin's `configure` as `config`.
    package var config: JSON
    /// The file that `config` stands in, as errors name it.
    package var configFile: String
    package var mode: Mode
    /// Whether `configure` gives the plugin the app's secrets, which the values that roles use may stand for.
    package var seesSecrets = false
    /// Nanoseconds of work, and of sleep, for each part of a call (`CallBudget`); nil: those of `Limits`.
    package var deadline: UInt64?
    /// The same for hooks that have another than `deadline`.
    package var deadlines: [Hook: UInt64] = [:]
    /// What a call may take by the clock beyond its processor time, from when its turn comes, and from when it is made, nanoseconds.
    package var stall = Limits.pluginStallNanoseconds
    package var wait = Limits.pluginWaitNanoseconds
    /// Nanoseconds for loading, and for each configuring.
    package var startDeadline: UInt64
    /// Bytes of writable memory of the process; 0 is unbounded. Beyond: allocations in it fail and it is replaced.
    package var memoryBytes: UInt64

    package init(
        path: String, image: PluginImage? = nil, folder: String? = nil, config: JSON = .null, configFile: String = "its configuration",
        mode: Mode = .process, deadline: UInt64? = nil,
        startDeadline: UInt64 = 10_000_000_000, memoryBytes: UInt64 = 1 << 30
    ) {
        self.path = path
        self.image = image
        self.folder = folder
        self.configFile = configFile
        self.config = config
        self.mode = mode
        self.deadline = deadline
        self.startDeadline = startDeadline
        self.memoryBytes = memoryBytes
    }
}

/// What one call may take. Beyond any of it: `pluginTimeout`.
///
/// What counts is what the plugin does itself, working or sleeping, so that a call does not fail because the machine is busy; the
/// clock only ends what does neither.
package struct CallBudget: Hashable, Sendable {
    /// Nanoseconds of processor time of the thread that the hook is called on, and for how long that thread may sleep; `.max` is
    /// unbounded. Beyond: the host is replaced.
    package var processor: UInt64
    /// Nanoseconds by the clock from when the call's turn comes. Beyond: the host is replaced.
    package var work: UInt64
    /// Nanoseconds by the clock from when the call is made, waiting for its turn included.
    package var patience: UInt64

    package init(processor: UInt64, work: UInt64, patience: UInt64) {
        self.processor = processor
        self.work = work
        self.patience = patience
    }
}

extension PluginSpec {
    /// - Parameters:
    ///   - parts: how many writes or objects the call is about. Each has the hook's processor time, up to `PluginLimits.batchNanoseconds` together.
    ///   - bytes: of the call's input. A part that is larger than `PluginLimits.partBytes` counts as several.
    package func budget(_ hook: Hook, parts: Int, bytes: Int) -> CallBudget {
        let usual =
            switch hook {
            case .checkWrite, .checkWriteRows, .ingest, .ingestRows: Limits.pluginWriteNanoseconds
            case .load, .configure, .openSession, .checkSubscription, .userChanged: Limits.pluginSessionNanoseconds
            }
        let parts = UInt64(max(1, parts, bytes / PluginLimits.partBytes))
        let one = deadlines[hook.question] ?? deadline ?? usual
        let processor = min(one * parts, max(one, PluginLimits.batchNanoseconds))
        return CallBudget(processor: processor, work: stall + processor, patience: wait + processor)
    }

    /// For loading and configuring, which happen before anybody waits: the clock alone counts.
    package var startBudget: CallBudget { CallBudget(processor: .max, work: startDeadline, patience: startDeadline) }
}

/// Bounds of the plugin host beside those of `Limits`.
package enum PluginLimits {
    /// A plugin's file, bytes. Beyond: `pluginMissing`.
    package static let imageBytes = 256 << 20
    /// One message to or from the host process, bytes. Beyond: the call fails with `limitsExceeded`, an answer counts as a
    /// failure of the plugin.
    package static let messageBytes = 32 << 20
    /// Writes of one call of check_write, bytes of their images as records of the log have them; JSON may have six times as many.
    /// Beyond: another call.
    package static let writeBytes = 4 << 20
    /// Processor time of one call, nanoseconds, however many parts it has.
    package static let batchNanoseconds: UInt64 = 2_000_000_000
    /// Bytes of a call's input that count as a part of their own.
    package static let partBytes = 64 << 10
    /// Processor time, and sleep, that the first call of each hook in a new host has in addition: its code and its tables are still to
    /// be read.
    package static let firstCallNanoseconds: UInt64 = 500_000_000
    /// Calls, and bytes, sent to a plugin and not yet answered. Beyond: calls wait for their turn.
    package static let callsInFlight = 64
    package static let bytesInFlight = 8 << 20
    /// Calls, and bytes, waiting for their turn. Beyond: refused with `pluginUnavailable`.
    package static let callsWaiting = 1_024
    package static let bytesWaiting = 64 << 20
    /// Longest wait before a crashed host is started again, nanoseconds; it begins at 0 and doubles from 100 ms.
    package static let restartNanoseconds: UInt64 = 10_000_000_000
    /// Hosts that end one after another, without an answer in between, after which calls are refused until one works.
    package static let failuresInRow = 5
    /// How often one and the same call may end the host before it is refused, for how long, and how many such calls are
    /// remembered.
    package static let poisonStrikes = 2
    package static let poisonNanoseconds: UInt64 = 60_000_000_000
    package static let poisonCalls = 256
    /// A text that a plugin hands the gateway in a question, bytes; the name of a counter; and how many counters a plugin has. Beyond:
    /// the question fails, the count is left out.
    package static let questionBytes = 64 << 10
    package static let counterNameBytes = 64
    package static let counters = 32
    /// What a plugin calls itself and its version, bytes each. Beyond: it is not loaded.
    package static let nameBytes = 128
    /// Lines a plugin may log per second, and bytes of each line. Beyond: counted, and cut.
    package static let logLinesPerSecond = 100
    package static let logLineBytes = 4_096
    /// The same as text: bytes that are no UTF-8 have three each.
    package static let logTextBytes = 3 * logLineBytes
}
