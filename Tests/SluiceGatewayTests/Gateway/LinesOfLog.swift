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
        let waiting = Mutex<[(isMeant: @Sendable (Line) -> Bool, continuation: CheckedContinuation<Void, Never>)]>([])
    }

    private let kept = Kept()
    var metadataProvider: Logger.MetadataProvider?
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .info

    var lines: [Line] { kept.lines.withLock { $0 } }

    /// Waits until a line with the word has been logged.
    /// - Parameter text: what its error or another of its values is to have in it.
    func wait(for word: String, about text: String? = nil) async { await wait(for: word, aboutAny: text.map { [$0] } ?? [""]) }

    /// - Parameter texts: one of which its error or another of its values has in it.
    func wait(for word: String, aboutAny texts: [String]) async {
        let isMeant: @Sendable (Line) -> Bool = { line in
            guard line.message.contains(word) else { return false }
            return texts.contains { text in text.isEmpty || line.metadata.values.contains { $0.description.contains(text) } }
        }
        await withCheckedContinuation { continuation in
            kept.waiting.withLock { $0.append((isMeant, continuation)) }
            wake()
        }
    }

    private func wake() {
        let lines = lines
        let woken = kept.waiting.withLock { waiting in
            let woken = waiting.filter { lines.contains(where: $0.isMeant) }
            waiting.removeAll { lines.contains(where: $0.isMeant) }
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
