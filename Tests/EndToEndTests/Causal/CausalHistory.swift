import Foundation

/// A transaction of a device: it read all registers and wrote one value to some. Values name transactions: each has its own, and
/// the registers' first value is 0.
struct RegisterTransaction: Sendable {
    var client: Int
    /// Within its client.
    var number: Int
    var reads: [Int]
    var writes: [Int]
    var value: Int
    /// False: its process was killed and may have committed it before.
    var isCommitted: Bool
}

extension RegisterTransaction {
    /// What a device has written down, in order.
    static func history(of client: Int, _ text: String) -> [RegisterTransaction] {
        var history: [RegisterTransaction] = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("committed "), !history.isEmpty {
                history[history.count - 1].isCommitted = true
            } else if line.hasPrefix("begin ") {
                let parts = line.split(separator: "|")
                // A kill may have cut it off; then it had not written anything yet.
                guard parts.count == 4, let value = Int(parts[3]), value % 16 == client else { continue }
                func numbers(_ part: Substring) -> [Int] { part.split(separator: " ").compactMap { Int($0) } }
                history.append(
                    RegisterTransaction(
                        client: client, number: history.count, reads: numbers(parts[1]), writes: numbers(parts[2]), value: value,
                        isCommitted: false))
            }
        }
        return history
    }
}
