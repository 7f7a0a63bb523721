import Foundation
import SluiceCore
import SluiceGateway
import SluiceTools
import Testing

struct LineReaderTests {
    private static func lines(_ text: String) throws -> [String] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("lines-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(text.utf8).write(to: file)
        let reader = try LineReader(path: file.path)
        var lines: [String] = []
        while let line = try reader.next() { lines.append(String(decoding: line, as: UTF8.self)) }
        #expect(reader.number == lines.count)
        return lines
    }

    @Test(arguments: [("", []), ("\n", [""]), ("a", ["a"]), ("a\n", ["a"]), ("a\n\nb", ["a", "", "b"])] as [(String, [String])])
    func `gives lines without their ends`(text: String, lines: [String]) throws {
        #expect(try Self.lines(text) == lines)
    }

    @Test func `gives lines that lie across pieces, and long ones`() throws {
        let lines = (0..<40_000).map { "line \($0)" } + [String(repeating: "x", count: 1 << 20), "end"]
        #expect(try Self.lines(lines.joined(separator: "\n")) == lines)
    }

    @Test func `refuses a line without end, a folder and a file that is not there`() throws {
        let error = #expect(throws: SluiceError.self) { try Self.lines("a\n" + String(repeating: "x", count: LineReader.lineBytes + 1)) }
        #expect(error?.message.contains(":2: ") == true)
        #expect(throws: SluiceError.self) {
            let reader = try LineReader(path: FileManager.default.temporaryDirectory.path)
            _ = try reader.next()
        }
        #expect(throws: SluiceError.self) { try LineReader(path: "/nowhere/rows") }
    }
}
