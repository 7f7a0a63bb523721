import Foundation
package import Logging
import Synchronization
package import Testing

/// Keeps what is logged.
package struct LinesOfLog: LogHandler {
    package struct Line: Sendable {
        package var level: Logger.Level
        package var message: String
        package var metadata: Logger.Metadata
    }

    private struct Waiter {
        let id: UUID
        let isMeant: @Sendable (Line) -> Bool
        let continuation: CheckedContinuation<Bool, Never>
    }

    private final class Kept: Sendable {
        let lines = Mutex<[Line]>([])
        let waiting = Mutex<[Waiter]>([])

        func giveUp(_ id: UUID) {
            let late = waiting.withLock { waiting in
                let index = waiting.firstIndex { $0.id == id }
                return index.map { waiting.remove(at: $0) }
            }
            late?.continuation.resume(returning: false)
        }
    }

    private let kept = Kept()
    package var metadataProvider: Logger.MetadataProvider?
    package var metadata: Logger.Metadata = [:]
    package var logLevel: Logger.Level = .info

    package init() {}

    package var lines: [Line] { kept.lines.withLock { $0 } }

    /// Waits until a line with the word has been logged. Records an issue if none comes before the deadline.
    /// - Parameter text: what its error or another of its values is to have in it.
    package func wait(for word: String, about text: String? = nil, sourceLocation: SourceLocation = #_sourceLocation) async {
        await wait(for: word, aboutAny: text.map { [$0] } ?? [""], sourceLocation: sourceLocation)
    }

    /// - Parameter texts: one of which its error or another of its values has in it.
    package func wait(for word: String, aboutAny texts: [String], sourceLocation: SourceLocation = #_sourceLocation) async {
        let isMeant: @Sendable (Line) -> Bool = { line in
            guard line.message.contains(word) else { return false }
            return texts.contains { text in text.isEmpty || line.metadata.values.contains { $0.description.contains(text) } }
        }
        let id = UUID()
        // Unstructured because: it only ends the wait below.
        let alarm = _Concurrency.Task { [kept] in
            try await _Concurrency.Task.sleep(for: RunningGateway.patience)
            kept.giveUp(id)
        }
        defer { alarm.cancel() }
        let isLogged = await withCheckedContinuation { continuation in
            kept.waiting.withLock { $0.append(Waiter(id: id, isMeant: isMeant, continuation: continuation)) }
            wake()
        }
        #expect(isLogged, "no line \"\(word)\" about \(texts) in \(lines.map(\.message))", sourceLocation: sourceLocation)
    }

    private func wake() {
        let lines = lines
        let woken = kept.waiting.withLock { waiting in
            let woken = waiting.filter { lines.contains(where: $0.isMeant) }
            waiting.removeAll { lines.contains(where: $0.isMeant) }
            return woken
        }
        for waiter in woken { waiter.continuation.resume(returning: true) }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let line = Line(
            level: event.level, message: event.message.description, metadata: metadata.merging(event.metadata ?? [:]) { $1 })
        kept.lines.withLock { $0.append(line) }
        wake()
    }
}
