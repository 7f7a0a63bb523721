/// A transaction by which a position is known again: its number and the time of its commit, which together are in one history of a
/// database only. After a restored backup the number is nobody's yet, or somebody else's, who committed at another time.
package struct Witness: Hashable, Sendable {
    package var transaction: UInt32
    /// Microseconds since 1970, UTC, as PostgreSQL keeps it.
    package var commitTime: Int64
    /// Where it stands in the commit order; zero when that is not known.
    package var lsn: LSN

    package init(transaction: UInt32, commitTime: Int64, lsn: LSN = .zero) {
        self.transaction = transaction
        self.commitTime = commitTime
        self.lsn = lsn
    }

    /// Lower numbers are PostgreSQL's own.
    private static let firstTransaction: UInt32 = 3

    /// Nil for anything else than what `bytes` gives.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 20 else { return nil }
        func number(_ bytes: some Collection<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        transaction = UInt32(number(bytes.prefix(4)))
        commitTime = Int64(bitPattern: number(bytes.dropFirst(4).prefix(8)))
        lsn = LSN(rawValue: number(bytes.suffix(8)))
        guard transaction >= Self.firstTransaction else { return nil }
    }

    /// 20 bytes, which clients keep and give back as they are.
    package var bytes: [UInt8] {
        func big(_ number: some FixedWidthInteger) -> [UInt8] {
            stride(from: number.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
        }
        return big(transaction) + big(commitTime) + big(lsn.rawValue)
    }
}
