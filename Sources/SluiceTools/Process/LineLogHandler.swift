package import Logging
import SluiceCore

/// A log handler that writes each event as one line in the format of `StreamLogHandler`.
///
/// Texts of clients are part of many events. A line break or a control character in them is written as an escape, so that no text can
/// forge a line or change the terminal. A value has at most `valueBytes`.
package struct LineLogHandler: LogHandler {
    /// The maximum size of the message and of each value, in bytes of UTF-8.
    package static let valueBytes = 4_096

    private var base: StreamLogHandler

    /// - Parameter stream: Receives each line with its line break, in one call.
    package init(label: String, stream: any TextOutputStream & Sendable) { base = StreamLogHandler(label: label, stream: stream) }

    private init(_ base: StreamLogHandler) { self.base = base }

    package static func standardError(label: String) -> LineLogHandler { LineLogHandler(StreamLogHandler.standardError(label: label)) }

    package var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    package var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue.mapValues(Self.shown) }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue.map(Self.shown) }
    }

    package func log(event: LogEvent) {
        var event = event
        event.message = "\(Self.shown(event.message.description))"
        event.metadata = event.metadata?.mapValues(Self.shown)
        base.log(event: event)
    }

    private static func shown(_ value: Logger.Metadata.Value) -> Logger.Metadata.Value {
        switch value {
        case .string(let text): .string(shown(text))
        case .stringConvertible(let value): .string(shown(value.description))
        case .array(let values): .array(values.map(shown))
        case .dictionary(let values):
            .dictionary(Dictionary(values.map { (shown($0.key), shown($0.value)) }, uniquingKeysWith: { first, _ in first }))
        }
    }

    private static func shown(_ text: String) -> String {
        let bytes = text.utf8.count
        if bytes <= valueBytes, !text.unicodeScalars.contains(where: isEscaped) { return text }
        var shown = ""
        for scalar in text.unicodeScalars {
            let piece = isEscaped(scalar) ? escape(scalar) : String(scalar)
            guard shown.utf8.count + piece.utf8.count <= valueBytes else { return "\(shown)… (\(bytes) bytes)" }
            shown += piece
        }
        return shown
    }

    /// `true` for control characters, for those that reverse the direction, and for the two line breaks of Unicode.
    private static func isEscaped(_ scalar: Unicode.Scalar) -> Bool {
        scalar.changesOtherText || scalar == "\u{2028}" || scalar == "\u{2029}"
    }

    private static func escape(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": #"\n"#
        case "\r": #"\r"#
        case "\t": #"\t"#
        default: #"\u{\#(String(scalar.value, radix: 16))}"#
        }
    }
}
