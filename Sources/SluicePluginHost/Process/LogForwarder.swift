import Logging
import SluiceCore

/// Forwards a plugin's output to the gateway's log, bounded in lines per second and bytes per line.
struct LogForwarder {
    private let logger: Logger
    private var partial: [UInt8] = []
    private var isCut = false
    private var second: UInt64 = 0
    private var lines = 0
    private var suppressed = 0

    init(logger: Logger, plugin: String) {
        var logger = logger
        logger[metadataKey: "plugin"] = .string(plugin)
        self.logger = logger
    }

    /// Forwards a line that the plugin logged through its host.
    mutating func logged(level: UInt8, text: String, now: UInt64) {
        let levels: [Logger.Level] = [.debug, .info, .warning, .error]
        write(level < 4 ? levels[Int(level)] : .error, text, now: now)
    }

    /// Forwards bytes of standard output or error, line by line.
    mutating func output(_ bytes: [UInt8], now: UInt64) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                endLine(now: now)
            } else if partial.count < PluginLimits.logLineBytes {
                partial.append(byte)
            } else {
                isCut = true
            }
        }
    }

    /// Ends the output. The last line may lack its newline.
    mutating func finish(now: UInt64) {
        if !partial.isEmpty { endLine(now: now) }
    }

    private mutating func endLine(now: UInt64) {
        write(.notice, String(decoding: partial, as: UTF8.self) + (isCut ? " …" : ""), now: now)
        partial.removeAll(keepingCapacity: true)
        isCut = false
    }

    private mutating func write(_ level: Logger.Level, _ text: String, now: UInt64) {
        if now / 1_000_000_000 != second {
            // Reported with the next line of a later second.
            if suppressed > 0 {
                logger.warning("A plugin exceeds the rate of log lines.", metadata: ["suppressed_lines": "\(suppressed)"])
            }
            (second, lines, suppressed) = (now / 1_000_000_000, 0, 0)
        }
        lines += 1
        guard lines <= PluginLimits.logLinesPerSecond else {
            suppressed += 1
            return
        }
        logger.log(level: level, "plugin log", metadata: ["text": .string(text)])
    }

    func note(_ level: Logger.Level, _ message: Logger.Message, _ metadata: Logger.Metadata = [:]) {
        logger.log(level: level, message, metadata: metadata)
    }
}
