#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Android)
    import Android
#else
    import Darwin
#endif

/// The mark by which a file of RealmSwift is known: the letters `T-DB` behind the two positions of its header. An encrypted file has none.
enum RealmFileMark {
    private static let mark: [UInt8] = [0x54, 0x2D, 0x44, 0x42]
    private static let place = 16

    /// Returns `true` if a file has the mark. `false` if it cannot be read.
    static func isThere(in path: String) -> Bool {
        guard let file = fopen(path, "rb") else { return false }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: place + mark.count)
        return fread(&bytes, 1, bytes.count, file) == bytes.count && bytes.dropFirst(place).elementsEqual(mark)
    }
}
