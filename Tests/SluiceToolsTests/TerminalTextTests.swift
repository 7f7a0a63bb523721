import SluiceTools
import Testing

@Suite struct `Foreign text on a terminal` {
    @Test func `moves no cursor and reverses no direction`() {
        #expect(TerminalText.shown("café\t\"x\" 🛫") == "café\t\"x\" 🛫")
        #expect(TerminalText.shown("a\u{1b}[2Jb\r\nc") == "a\u{FFFD}[2Jb\u{FFFD}\u{FFFD}c")
        #expect(TerminalText.shown("\u{9b}1m\u{202E}x\u{2066}\u{7f}") == "\u{FFFD}1m\u{FFFD}x\u{FFFD}\u{FFFD}")
    }
}
