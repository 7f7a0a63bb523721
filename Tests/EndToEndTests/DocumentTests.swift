import Foundation
import Testing

@Suite struct `The documents` {
    private static var root: URL { URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized }

    @Test func `name only files of the data's way that are there`() throws {
        let text = try String(contentsOf: Self.root.appendingPathComponent("docs/data-path.md"), encoding: .utf8)
        let paths = text.split(separator: "`").map(String.init).filter { $0.hasPrefix("Sources/") }
        #expect(paths.count >= 15)
        for path in paths {
            #expect(FileManager.default.fileExists(atPath: Self.root.appendingPathComponent(path).path), "\(path) is not there")
        }
    }
}
