import Logging
import SluiceTools
import Synchronization
import Testing

@Suite struct `A line of the log` {
    /// Keeps the lines that a handler writes.
    private final class Lines: TextOutputStream, Sendable {
        private let all = Mutex("")
        var text: String { all.withLock { $0 } }
        func write(_ string: String) { all.withLock { $0 += string } }
    }

    private static func written(_ body: (Logger) -> Void) -> String {
        let lines = Lines()
        body(Logger(label: "sluice") { LineLogHandler(label: $0, stream: lines) })
        return lines.text
    }

    /// A client could write lines of its own into the log.
    @Test(arguments: ["\n", "\r", "\r\n", "\u{B}", "\u{C}", "\u{85}", "\u{2028}", "\u{2029}"])
    func `cannot be forged by a text of a client`(lineBreak: String) {
        let forged = "x\(lineBreak)2026-11-29T00:00:00+0000 info sluice: actor=admin An operator requested a change."
        let text = Self.written { logger in
            var logger = logger
            logger[metadataKey: "client"] = "\(forged)"
            logger.info("A session ends. \(forged)", metadata: ["reason": "\(forged)", "all": [["\(forged)": "\(forged)"], "\(forged)"]])
        }
        #expect(
            text.hasSuffix("\n")
                && text.dropLast().unicodeScalars.allSatisfy { !"\n\r\u{B}\u{C}\u{85}\u{2028}\u{2029}".unicodeScalars.contains($0) })
        #expect(text.contains("A session ends. x\\"), "\(text)")
    }

    @Test func `keeps plain text and shows the rest as escapes`() {
        let text = Self.written { $0.warning("Zoë's key 'a b' ✓", metadata: ["key": "\u{1B}[31mred\u{202E}\ttab", "count": "\(7)"]) }
        #expect(text.contains("warning sluice: count=7 key=\\u{1b}[31mred\\u{202e}\\ttab ["), "\(text)")
        #expect(text.hasSuffix("] Zoë's key 'a b' ✓\n"), "\(text)")
    }

    @Test func `has a bound for each value, which is never cut inside of a character`() {
        let long = String(repeating: "é", count: 100_000)
        let text = Self.written { $0.info("\(long)", metadata: ["reason": "\(long)", "code": "226"]) }
        #expect(text.utf8.count < 2 * LineLogHandler.valueBytes + 300)
        #expect(text.contains("code=226 reason=éé") && text.contains("é… (200000 bytes) ["), "\(text.prefix(200))")
        #expect(text.hasSuffix("é… (200000 bytes)\n"))
        let escapes = Self.written { $0.info("short", metadata: ["reason": "\(String(repeating: "\0", count: 100_000))"]) }
        #expect(escapes.utf8.count < LineLogHandler.valueBytes + 300 && escapes.contains("(100000 bytes)"))
    }
}
