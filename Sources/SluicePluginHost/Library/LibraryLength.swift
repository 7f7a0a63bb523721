import SluiceCore

/// The file size that a library's headers imply.
/// A truncated file must be detected before it is mapped: an access beyond its end kills the process.
enum LibraryLength {
    /// Returns the implied size.
    /// - Returns: nil if the bytes are no 64-bit little-endian ELF file or lack its first header. The loader reports those.
    static func claimed(by bytes: [UInt8]) -> UInt64? {
        guard bytes.count >= 64, bytes.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]) else { return nil }
        let programs = integer(bytes, 32, 8)
        let programSize = integer(bytes, 54, 2)
        let programCount = integer(bytes, 56, 2)
        let sections = integer(bytes, 40, 8)
        // Sums saturate, because the headers are untrusted.
        var end = sum(programs, programSize * programCount)
        if sections > 0 { end = max(end, sum(sections, integer(bytes, 58, 2) * integer(bytes, 60, 2))) }
        guard programSize >= 56 else { return end }
        for number in 0..<programCount {
            let start = sum(programs, number * programSize)
            guard sum(start, 56) <= UInt64(bytes.count) else { break }
            let header = Int(start)
            end = max(end, sum(integer(bytes, header + 8, 8), integer(bytes, header + 32, 8)))
        }
        return end
    }

    /// Checks the size of a library.
    /// - Throws: `pluginMissing` for a file shorter than its headers imply.
    static func check(_ bytes: [UInt8], path: String) throws(SluiceError) {
        guard let claimed = claimed(by: bytes), claimed > UInt64(bytes.count) else { return }
        throw SluiceError(
            .pluginMissing, "\(path) cannot be loaded: it has \(bytes.count) bytes and its headers state \(claimed)",
            fix: "Copy the file again: it is truncated.")
    }

    private static func integer(_ bytes: [UInt8], _ offset: Int, _ count: Int) -> UInt64 {
        (0..<count).reduce(0) { $0 | UInt64(bytes[offset + $1]) << UInt64(8 * $1) }
    }

    private static func sum(_ one: UInt64, _ other: UInt64) -> UInt64 {
        let (sum, isOver) = one.addingReportingOverflow(other)
        return isOver ? .max : sum
    }
}
