/// A transaction that identifies a history of the database by its number and commit time. After a backup is restored, the number is unused,
/// or belongs to a transaction with another commit time.
package struct HistoryAnchor: Hashable, Sendable {
    package var transaction: UInt32
    /// Microseconds since 1970, UTC, as PostgreSQL stores it.
    package var commitTime: Int64
    /// The commit's place in the order, or zero if unknown.
    package var lsn: LSN

    package init(transaction: UInt32, commitTime: Int64, lsn: LSN = .zero) {
        self.transaction = transaction
        self.commitTime = commitTime
        self.lsn = lsn
    }

    /// PostgreSQL reserves the numbers below.
    private static let firstTransaction: UInt32 = 3

    /// Reads the form of `bytes`, or returns nil.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 20 else { return nil }
        func number(_ bytes: some Collection<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        transaction = UInt32(number(bytes.prefix(4)))
        commitTime = Int64(bitPattern: number(bytes.dropFirst(4).prefix(8)))
        lsn = LSN(rawValue: number(bytes.suffix(8)))
        guard transaction >= Self.firstTransaction else { return nil }
    }

    /// 20 big-endian bytes, which clients store and return unchanged.
    package var bytes: [UInt8] {
        func big(_ number: some FixedWidthInteger) -> [UInt8] {
            stride(from: number.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
        }
        return big(transaction) + big(commitTime) + big(lsn.rawValue)
    }
}
