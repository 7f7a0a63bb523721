import Foundation
import SluiceCore
import SluiceValues
import Testing

@testable import SluiceTools

/// The file of documents that do not fit, beside the progress in the database.
struct QuarantineFileTests {
    private static func lines(_ path: String) throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    @Test func `lines that the database does not know are cut off, and a lost file is noticed`() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("quarantine-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let first = QuarantineFile(path: path, length: 0)
        #expect(try first.cut() && !FileManager.default.fileExists(atPath: path))
        // Without a line there is no file.
        try first.flush()
        #expect(!FileManager.default.fileExists(atPath: path))
        first.add(["a": 1, "b": .double(.nan)])
        try first.flush()
        let committed = first.length
        first.add(["a": 2])
        try first.flush()
        #expect(try Self.lines(path) == [#"{"a":1,"b":{"$numberDouble":"NaN"}}"#, #"{"a":2}"#])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        // The transaction of the second line was rolled back by a crash.
        let second = QuarantineFile(path: path, length: committed)
        #expect(try second.cut() && Self.lines(path).count == 1)
        second.add(["a": 3])
        try second.flush()
        #expect(try Self.lines(path).last == #"{"a":3}"# && second.length > committed)
        // A shorter file is continued, and said to be short.
        try Data().write(to: URL(fileURLWithPath: path))
        let third = QuarantineFile(path: path, length: second.length)
        #expect(try !third.cut())
        third.add(["a": 4])
        try third.flush()
        #expect(try Self.lines(path) == [#"{"a":4}"#])
        try FileManager.default.removeItem(atPath: path)
        #expect(try !QuarantineFile(path: path, length: committed).cut())
    }

    @Test func `a folder that cannot be written is an error with the option`() {
        let file = QuarantineFile(path: "/nowhere/x.ndjson", length: 0)
        file.add(["a": 1])
        let error = #expect(throws: SluiceError.self) { try file.flush() }
        #expect(error?.code == .configInvalid && error?.fix?.contains("--quarantine") == true)
    }
}
