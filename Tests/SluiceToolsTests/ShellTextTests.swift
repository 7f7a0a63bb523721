import Foundation
import SluiceTools
import Testing

/// Words of printed commands.
struct ShellTextTests {
    @Test func `a plain word stays as it is, and any other is quoted`() {
        #expect(ShellText.word("./app/libX-1.so") == "./app/libX-1.so")
        #expect(ShellText.word("my app") == "'my app'")
        #expect(ShellText.word("") == "''")
    }

    @Test(arguments: ["a b", "it's", "$HOME", "`id`", "a\\b", "\"q\"", "a\nb", "größe", "*", "'", "a;b", "-x='1 2'"])
    func `a shell reads a word as the text`(text: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "printf %s \(ShellText.word(text))"]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let read = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(String(decoding: read, as: UTF8.self) == text)
    }
}
