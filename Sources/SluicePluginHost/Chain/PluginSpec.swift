import SluiceCore
package import SluiceValues

/// The configuration of one plugin of the chain.
package struct PluginSpec: Sendable {
    package enum Mode: Hashable, Sendable {
        /// In a supervised process of its own. A crash or hang costs only the call that caused it.
        case process
        /// In the gateway, on a thread of its own. For trusted plugins only, because a crash ends the gateway.
        case inProcess
    }

    package var path: String
    /// The checked library, which is loaded even if the file changes. Nil reads the file when the plugin starts.
    package var image: PluginImage?
    /// The only folder whose files the plugin may read in a process of its own; nil for none.
    package var folder: String?
    /// The value of `config` in the plugin's `configure`.
    package var config: JSON
    /// The file that contains `config`, for errors.
    package var configFile: String
    package var mode: Mode
    /// `true` if `configure` includes the app's secrets, which values used in roles may refer to.
    package var seesSecrets = false
    /// The limit of work and of sleep for each part of a call (`CallBudget`), in nanoseconds; nil uses that of `Limits`.
    package var deadline: UInt64?
    /// The limits of hooks that deviate from `deadline`, in nanoseconds.
    package var deadlines: [Hook: UInt64] = [:]
    /// The wall-clock allowance beyond the processor time, from the call's turn, in nanoseconds.
    package var stall = Limits.pluginStallNanoseconds
    /// The wall-clock allowance beyond the processor time, from the call's submission, in nanoseconds.
    package var wait = Limits.pluginWaitNanoseconds
    /// The deadline for loading and for each configuration, in nanoseconds.
    package var startDeadline: UInt64 = 10_000_000_000
    /// The limit of the process's writable memory, in bytes; 0 is unbounded. Beyond it allocations fail, and the host is replaced.
    package var memoryBytes: UInt64 = 1 << 30

    package init(
        path: String, image: PluginImage? = nil, folder: String? = nil, config: JSON = .null, configFile: String = "its configuration",
        mode: Mode = .process, deadline: UInt64? = nil
    ) {
        self.path = path
        self.image = image
        self.folder = folder
        self.configFile = configFile
        self.config = config
        self.mode = mode
        self.deadline = deadline
    }
}

/// The time limits of one call. Exceeding any of them is a `pluginTimeout`.
///
/// The limits count the plugin's own work and sleep, so that a call does not fail on a busy machine. The clock ends only a call that does
/// neither.
package struct CallBudget: Hashable, Sendable {
    /// The processor time of the hook's thread, and the limit of its sleep, in nanoseconds; `.max` is unbounded. Beyond it the host is
    /// replaced.
    package var processor: UInt64
    /// The time since the call's turn began, in nanoseconds. Beyond it the host is replaced.
    package var work: UInt64
    /// The time since the call was submitted, including the wait for its turn, in nanoseconds.
    package var patience: UInt64

    package init(processor: UInt64, work: UInt64, patience: UInt64) {
        self.processor = processor
        self.work = work
        self.patience = patience
    }
}

extension PluginSpec {
    /// Returns the budget of one call.
    /// - Parameters:
    ///   - parts: The number of writes or objects. Each adds the hook's processor time, up to `PluginLimits.batchNanoseconds` in all.
    ///   - bytes: The size of the input. Every `PluginLimits.partBytes` of it count as a part.
    package func budget(_ hook: Hook, parts: Int, bytes: Int) -> CallBudget {
        let usual =
            switch hook {
            case .checkWrite, .ingest: Limits.pluginWriteNanoseconds
            case .load, .configure, .openSession, .checkSubscription, .userChanged: Limits.pluginSessionNanoseconds
            case .callFunction, .authenticate: PluginLimits.functionNanoseconds
            }
        let parts = UInt64(max(1, parts, bytes / PluginLimits.partBytes))
        let one = hook.isForFunctions ? usual : deadlines[hook] ?? deadline ?? usual
        let processor = min(one * parts, max(one, PluginLimits.batchNanoseconds))
        return CallBudget(processor: processor, work: stall + processor, patience: wait + processor)
    }

    /// Returns the budget of a call of a function.
    /// - Parameter nanoseconds: The time for the call, with the wait for its turn.
    func functionBudget(_ nanoseconds: UInt64) -> CallBudget {
        CallBudget(processor: nanoseconds, work: stall + nanoseconds, patience: nanoseconds)
    }

    /// The budget for loading and configuring. No caller waits then, so only the clock counts.
    package var startBudget: CallBudget { CallBudget(processor: .max, work: startDeadline, patience: startDeadline) }
}

/// The limits of the plugin host beside those of `Limits`.
package enum PluginLimits {
    /// The maximum size of a plugin's file, in bytes. A larger one is `pluginMissing`.
    package static let imageBytes = 256 << 20
    /// The maximum number of threads of a host process. Beyond it, a plugin cannot start another. Threads that start at the same time may
    /// exceed it by their number.
    package static let threads = 256
    /// The maximum size of one message to or from the host process, in bytes.
    /// A larger call fails with `limitsExceeded`; a larger answer is a failure of the plugin.
    package static let messageBytes = 32 << 20
    /// The size of the images of one check_write call, in bytes of log records. More writes need another call.
    package static let writeBytes = 4 << 20
    /// The maximum processor time of one call with several parts, in nanoseconds.
    package static let batchNanoseconds: UInt64 = 2_000_000_000
    /// The processor time of a function's call in a check of the plugin, in nanoseconds. Other calls bring their own.
    package static let functionNanoseconds: UInt64 = 10_000_000_000
    /// The size of a call's input that counts as a part of its own, in bytes.
    package static let partBytes = 64 << 10
    /// The extra processor time, and sleep, of the first call of each hook in a new host, in nanoseconds. Its code and tables are not in
    /// memory yet.
    package static let firstCallNanoseconds: UInt64 = 500_000_000
    /// The maximum number of calls, and bytes, sent to a plugin and not yet answered. Further calls wait for their turn.
    package static let callsInFlight = 64
    package static let bytesInFlight = 8 << 20
    /// The maximum number of calls, and bytes, waiting for their turn. Further calls fail with `pluginUnavailable`.
    package static let callsWaiting = 1_024
    package static let bytesWaiting = 64 << 20
    /// The longest pause before a crashed host is restarted, in nanoseconds. The first restart is immediate; later pauses double from 100
    /// ms.
    package static let restartNanoseconds: UInt64 = 10_000_000_000
    /// The number of hosts ending in a row, without an answer in between, that opens the circuit breaker.
    package static let failuresInRow = 5
    /// The number of hosts that one call may end before it is quarantined, the duration in nanoseconds, and the number of remembered
    /// calls.
    package static let poisonStrikes = 2
    package static let poisonNanoseconds: UInt64 = 60_000_000_000
    package static let poisonCalls = 256
    /// The maximum size of a text in a question, in bytes. A longer one fails.
    package static let questionBytes = 64 << 10
    /// The maximum length of a counter's name, in bytes, and the number of counters of a plugin. Others are not counted.
    package static let counterNameBytes = 64
    package static let counters = 32
    /// The maximum length of a plugin's name and of its version, in bytes. A plugin beyond it is not loaded.
    package static let nameBytes = 128
    /// The maximum number of log lines per second, and bytes per line. Further lines are counted and dropped; longer ones are cut.
    package static let logLinesPerSecond = 100
    package static let logLineBytes = 4_096
    /// The maximum size of a log line after decoding, in bytes. Each invalid UTF-8 byte becomes three.
    package static let logTextBytes = 3 * logLineBytes
}
