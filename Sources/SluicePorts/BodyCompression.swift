package import SluiceCore

/// Compression of message bodies, one body at a time.
package protocol BodyCompression: Sendable {
    /// Returns the compressed form of a body.
    /// - Throws: `internalError` if it cannot allocate memory.
    func compress(_ bytes: [UInt8]) throws(SluiceError) -> [UInt8]
    /// Returns the body of a compressed form. It allocates at most `count` bytes for the body, whatever the input is.
    /// - Throws: `badCompression` unless the bytes are one complete stream of exactly `count` bytes.
    func decompress(_ bytes: [UInt8], count: Int) throws(SluiceError) -> [UInt8]
}
