/// Words of commands that people copy into a shell.
package enum ShellText {
    /// Returns the text as one word of a POSIX shell. It is quoted only if it needs to be. O(length).
    package static func word(_ text: String) -> String {
        if !text.isEmpty, text.utf8.allSatisfy(isPlain) { return text }
        let quote = UInt8(ascii: "'")
        // Inside of the quotes every byte stands for itself, so a quote needs one outside.
        let quoted = text.utf8.flatMap { $0 == quote ? Array("'\\''".utf8) : [$0] }
        return String(decoding: [quote] + quoted + [quote], as: UTF8.self)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "-_./:@%+=,".utf8.contains(byte)
        }
    }
}
