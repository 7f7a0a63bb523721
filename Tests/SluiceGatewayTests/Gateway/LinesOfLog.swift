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
        let waiting = Mutex<[(word: String, continuation: CheckedContinuation<Void, Never>)]>([])
    }

    private let kept = Kept()
    var metadataProvider: Logger.MetadataProvider?
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .info

    var lines: [Line] { kept.lines.withLock { $0 } }

    /// Waits until a line with the word has been logged.
    func wait(for word: String) async {
        await withCheckedContinuation { continuation in
            kept.waiting.withLock { $0.append((word, continuation)) }
            wake()
        }
    }

    private func wake() {
        let lines = lines
        let woken = kept.waiting.withLock { waiting in
            let woken = waiting.filter { waiter in lines.contains { $0.message.contains(waiter.word) } }
            waiting.removeAll { waiter in lines.contains { $0.message.contains(waiter.word) } }
            return woken
        }
        for waiter in woken { waiter.continuation.resume() }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let line = Line(
            level: event.level, message: event.message.description, metadata: metadata.merging(event.metadata ?? [:]) { $1 })
        kept.lines.withLock { $0.append(line) }
        wake()
    }
}
