import SluiceValues

extension Hex {
    /// Returns the hexadecimal digits of random bytes. The system gives eight of them in a call, where a `SymmetricKey` takes a call for
    /// most of its bytes.
    static func random(bytes count: Int) -> String {
        var bytes: [UInt8] = []
        while bytes.count < count { unsafe withUnsafeBytes(of: UInt64.random(in: 0 ... .max)) { unsafe bytes.append(contentsOf: $0) } }
        return encode(bytes.prefix(count))
    }
}
