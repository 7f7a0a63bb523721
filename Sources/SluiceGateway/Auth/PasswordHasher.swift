import Crypto
import CryptoExtras
import FoundationEssentials
package import SluiceCore

/// Hashes passwords with scrypt, on threads of its own and few at a time: one takes tens of milliseconds and megabytes.
package final class PasswordHasher: Sendable {
    /// What a hash costs. Memory is 128 · rounds · blockSize bytes.
    package struct Cost: Hashable, Sendable {
        package var rounds: Int
        package var blockSize: Int
        package var parallelism: Int

        /// 16 MB, five passes: one of the settings that OWASP recommends.
        package static let standard = Cost(rounds: 1 << 14, blockSize: 8, parallelism: 5)

        package init(rounds: Int, blockSize: Int, parallelism: Int) {
            self.rounds = rounds
            self.blockSize = blockSize
            self.parallelism = parallelism
        }

        /// Bounds on what a stored hash may ask for, so that a damaged one cannot stop the gateway.
        var isSane: Bool {
            (2...1 << 20).contains(rounds) && rounds.nonzeroBitCount == 1 && (1...32).contains(blockSize) && (1...16).contains(parallelism)
                && rounds * blockSize <= 1 << 21
        }
    }

    /// Characters of a password (AUTH 17.2).
    package static let lengths = 6...128

    private let cost: Cost
    private let queue: WorkQueue
    /// Compared with when there is no user, so that the answer takes as long as a wrong password's.
    private let decoy: String

    /// - Parameters:
    ///   - width: hashes at once.
    ///   - waiting: hashes waiting for a thread. Beyond: `tooManyRequests`.
    package init(cost: Cost = .standard, width: Int = 2, waiting: Int = 64) {
        self.cost = cost
        queue = WorkQueue(label: "passwords", width: width, waiting: waiting)
        decoy = Self.text(cost, salt: [UInt8](repeating: 0, count: 16), key: [UInt8](repeating: 0, count: 32))
    }

    /// `scrypt$rounds$blockSize$parallelism$salt$key`, salt and key in Base64.
    /// - Parameter owner: the line in which the work waits, here and below.
    /// - Throws: `tooManyRequests`.
    package func hash(_ password: String, of owner: String = "") async throws(SluiceError) -> String {
        let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
        let cost = cost
        let text = try await queue.run(of: owner) { Self.derive(password, salt, cost).map { Self.text(cost, salt: salt, key: $0) } }
        guard let text else { throw SluiceError(.internalError, "The password could not be hashed.") }
        return text
    }

    /// Whether the password made the hash; false, after as much time, when there is no hash.
    /// - Throws: `tooManyRequests`.
    package func verify(_ password: String, hash: String?, of owner: String = "") async throws(SluiceError) -> Bool {
        let stored = hash ?? decoy
        let isEqual = try await queue.run(of: owner) { Self.compare(password, stored) }
        return isEqual && hash != nil
    }

    private static func compare(_ password: String, _ stored: String) -> Bool {
        let parts = stored.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0] == "scrypt", let rounds = Int(parts[1]), let blockSize = Int(parts[2]),
            let parallelism = Int(parts[3]), let salt = Base64.decode(parts[4]), let key = Base64.decode(parts[5])
        else { return false }
        let cost = Cost(rounds: rounds, blockSize: blockSize, parallelism: parallelism)
        guard cost.isSane, let derived = derive(password, salt, cost) else { return false }
        // Compares in a time that does not depend on the bytes.
        return SymmetricKey(data: derived) == SymmetricKey(data: key)
    }

    private static func derive(_ password: String, _ salt: [UInt8], _ cost: Cost) -> [UInt8]? {
        let key = try? KDF.Scrypt.deriveKey(
            from: Array(password.utf8), salt: salt, outputByteCount: 32, rounds: cost.rounds, blockSize: cost.blockSize,
            parallelism: cost.parallelism)
        return key?.withUnsafeBytes { Array($0) }
    }

    private static func text(_ cost: Cost, salt: [UInt8], key: [UInt8]) -> String {
        "scrypt$\(cost.rounds)$\(cost.blockSize)$\(cost.parallelism)$\(Base64.encode(salt))$\(Base64.encode(key))"
    }
}
