extension String {
    /// `true` if both texts have the same bytes. `==` is also `true` for an "é" of one code point and one of two.
    package func hasSameBytes(as other: String) -> Bool { utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8) }

    /// Hashes the bytes, consistent with `hasSameBytes`.
    package func hashBytes(into hasher: inout Hasher) {
        var text = self
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(UInt8(0xFF))
    }
}

extension StringProtocol {
    /// Calls `body` with the UTF-8 of the text, in place if it is contiguous.
    @inlinable
    package func withBytes<R>(_ body: (UnsafeBufferPointer<UInt8>) -> R) -> R {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        return Array(utf8).withUnsafeBufferPointer(body)
    }
}

extension Set<String> {
    /// `true` if the set has a member of the same bytes.
    package func contains(bytesOf name: String) -> Bool { firstIndex(of: name).map { self[$0].hasSameBytes(as: name) } ?? false }
}
