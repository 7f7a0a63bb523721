import Crypto
import CryptoExtras
import FoundationEssentials
package import SluiceCore
import SluiceValues

/// Hashes passwords with scrypt on threads of its own. The number of threads is small, as one hash takes tens of milliseconds and
/// megabytes.
package final class PasswordHasher: Sendable {
    /// The cost of a hash. It needs 128 · rounds · blockSize bytes of memory.
    package struct Cost: Hashable, Sendable {
        package var rounds: Int
        package var blockSize: Int
        package var parallelism: Int

        /// 16 MiB and five passes, one of the settings that OWASP recommends.
        package static let standard = Cost(rounds: 1 << 14, blockSize: 8, parallelism: 5)

        /// For a password that is stored beside its hash, as those of `sluice dev` are: a costly hash would protect nothing.
        package static let stored = Cost(rounds: 1 << 4, blockSize: 8, parallelism: 1)

        package init(rounds: Int, blockSize: Int, parallelism: Int) {
            self.rounds = rounds
            self.blockSize = blockSize
            self.parallelism = parallelism
        }

        /// `true` if the cost is within bounds, so that a damaged stored hash cannot block the gateway.
        var isSane: Bool {
            (2...1 << 20).contains(rounds) && rounds.nonzeroBitCount == 1 && (1...32).contains(blockSize) && (1...16).contains(parallelism)
                && rounds * blockSize <= 1 << 21
        }
    }

    /// The range of a password's length, in characters.
    package static let lengths = 6...128

    private let cost: Cost
    private let queue: WorkQueue
    /// The hash to verify against if there is no user, so that both cases take the same time.
    private let decoy: String

    /// - Parameters:
    ///   - width: The maximum number of hashes computed at once.
    ///   - waiting: The maximum number of hashes that wait for a thread. Further ones throw `tooManyRequests`.
    package init(cost: Cost = .standard, width: Int = 2, waiting: Int = 64) {
        self.cost = cost
        queue = WorkQueue(label: "passwords", width: width, waiting: waiting)
        decoy = Self.text(cost, salt: [UInt8](repeating: 0, count: 16), key: [UInt8](repeating: 0, count: 32))
    }

    /// Returns `scrypt$rounds$blockSize$parallelism$salt$key`, with salt and key in Base64.
    ///
    /// - Parameter owner: The queue line of the work. `verify` has the same parameter.
    /// - Throws: `tooManyRequests`.
    package func hash(_ password: String, of owner: String = "") async throws(SluiceError) -> String {
        let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
        let cost = cost
        let text = try await queue.run(of: owner) { Self.derive(password, salt, cost).map { Self.text(cost, salt: salt, key: $0) } }
        guard let text else { throw SluiceError(.internalError, "The password could not be hashed.") }
        return text
    }

    /// Returns `true` if the password matches the hash. Without a hash it returns `false` after the same time.
    ///
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
        // A comparison in constant time.
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
