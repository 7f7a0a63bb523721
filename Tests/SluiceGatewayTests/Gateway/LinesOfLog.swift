import Logging
import Synchronization

/// Keeps what is logged.
struct LinesOfLog: LogHandler {
    struct Line: Sendable {
        var level: Logger.Level
        var message: String
        var metadata: Logger.Metadata
    }

    private final class Kept: Sendable {
        let lines = Mutex<[Line]>([])
    }

    private let kept = Kept()
    var metadataProvider: Logger.MetadataProvider?
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .info

    var lines: [Line] { kept.lines.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let line = Line(
            level: event.level, message: event.message.description, metadata: metadata.merging(event.metadata ?? [:]) { $1 })
        kept.lines.withLock { $0.append(line) }
    }
}
