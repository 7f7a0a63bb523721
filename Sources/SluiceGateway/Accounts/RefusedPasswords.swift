import Crypto
import Foundation
package import SluiceCore
import SluiceValues

/// A list of passwords that are refused, such as those of known breaches.
///
/// It keeps eight bytes of each SHA-1, sorted. A password is refused by mistake with a probability of one in 10^12 for ten million entries.
package struct RefusedPasswords: Sendable {
    private let digests: [UInt64]

    /// Reads a file: on each line a password, or a SHA-1 in hexadecimal digits with an optional colon and count, as Have I Been Pwned
    /// publishes them. Blocks, so it is for a thread of its own.
    ///
    /// - Throws: `configInvalid` if the file cannot be read, or is larger than `Limits.refusedPasswordBytes`.
    package static func load(_ path: String) throws(SluiceError) -> RefusedPasswords {
        let fix = "Correct refused_passwords_file in sluice.json, or let this user read the file."
        guard let size = (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int else {
            throw SluiceError(.configInvalid, "The file of refused passwords \(path) cannot be read.", fix: fix)
        }
        guard size <= Limits.refusedPasswordBytes else {
            throw SluiceError(
                .configInvalid,
                "The file of refused passwords \(path) has \(size) bytes, over the limit of \(Limits.refusedPasswordBytes).",
                fix: "Keep the passwords that occur most often.")
        }
        guard let data = FileManager.default.contents(atPath: path) else {
            throw SluiceError(.configInvalid, "The file of refused passwords \(path) cannot be read.", fix: fix)
        }
        return RefusedPasswords(lines: data)
    }

    init(lines: some Collection<UInt8>) {
        digests = lines.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            return text.isEmpty ? nil : Self.digest(ofLine: text)
        }
        .sorted()
    }

    func contains(_ password: String) -> Bool {
        let digest = Self.digest(of: Array(password.utf8))
        var range = 0..<digests.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if digests[middle] == digest { return true }
            range = digests[middle] < digest ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return false
    }

    private static func digest(ofLine line: some Collection<UInt8>) -> UInt64 {
        let digits = line.prefix(sha1Digits)
        let rest = line.dropFirst(sha1Digits)
        let isHash = rest.isEmpty || rest.first == UInt8(ascii: ":") && rest.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
        if digits.count == sha1Digits, isHash, let number = number(digits) { return number }
        return digest(of: Array(line))
    }

    private static let sha1Digits = 40

    /// Returns the first eight bytes of hexadecimal digits; nil if one is none.
    private static func number(_ digits: some Collection<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for (index, byte) in digits.enumerated() {
            guard let digit = Hex.nibble(byte) else { return nil }
            if index < 16 { number = number << 4 | UInt64(digit) }
        }
        return number
    }

    private static func digest(of password: [UInt8]) -> UInt64 {
        Insecure.SHA1.hash(data: password).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
