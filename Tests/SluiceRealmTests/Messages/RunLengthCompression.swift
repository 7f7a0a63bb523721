import SluiceCore
import SluicePorts

/// A compression for tests: pairs of a count and a byte.
struct RunLengthCompression: BodyCompression {
    func compress(_ bytes: [UInt8]) throws(SluiceError) -> [UInt8] {
        var result: [UInt8] = []
        for byte in bytes {
            if result.count >= 2, result[result.count - 1] == byte, result[result.count - 2] < .max {
                result[result.count - 2] += 1
            } else {
                result += [1, byte]
            }
        }
        return result
    }

    func decompress(_ bytes: [UInt8], count: Int) throws(SluiceError) -> [UInt8] {
        var result: [UInt8] = []
        guard bytes.count.isMultiple(of: 2) else { throw SluiceError(.badCompression, "Half a pair.") }
        for index in stride(from: 0, to: bytes.count, by: 2) {
            guard bytes[index] > 0, result.count + Int(bytes[index]) <= count else {
                throw SluiceError(.badCompression, "More than \(count) bytes.")
            }
            result += [UInt8](repeating: bytes[index + 1], count: Int(bytes[index]))
        }
        guard result.count == count else { throw SluiceError(.badCompression, "Fewer than \(count) bytes.") }
        return result
    }
}
