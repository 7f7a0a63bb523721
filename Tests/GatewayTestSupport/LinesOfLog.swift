package import Logging
import TestSupport
package import Testing

/// Keeps what is logged.
package struct LinesOfLog: LogHandler {
    package struct Line: Sendable {
        package var level: Logger.Level
        package var message: String
        package var metadata: Logger.Metadata
    }

    private let kept = Watched<[Line]>([])
    package var metadataProvider: Logger.MetadataProvider?
    package var metadata: Logger.Metadata = [:]
    package var logLevel: Logger.Level = .info

    package init() {}

    package var lines: [Line] { kept.value }

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
        let isLogged = await kept.until { $0.contains(where: isMeant) }
        #expect(isLogged, "no line \"\(word)\" about \(texts) in \(lines.map(\.message))", sourceLocation: sourceLocation)
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let line = Line(
            level: event.level, message: event.message.description, metadata: metadata.merging(event.metadata ?? [:]) { $1 })
        kept.change { $0.append(line) }
    }
}

extension Logger {
    /// A logger whose lines nobody reads.
    package static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
