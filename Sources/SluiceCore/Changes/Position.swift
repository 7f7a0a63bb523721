import SluiceValues

/// A log sequence number of PostgreSQL: a byte position in the WAL, printed as `16/B374D848`.
package struct LSN: RawRepresentable, Hashable, Sendable, Comparable, CustomStringConvertible {
    package var rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package static let zero = LSN(rawValue: 0)
    package static let max = LSN(rawValue: .max)

    /// Reads PostgreSQL's text form, or returns nil.
    package init?(_ text: some StringProtocol) {
        var (high, low, digits): (UInt64?, UInt64, Int) = (nil, 0, 0)
        for byte in text.utf8 {
            if let digit = Hex.nibble(byte), digits < 8 {
                (low, digits) = (low << 4 | UInt64(digit), digits + 1)
            } else if byte == UInt8(ascii: "/"), high == nil, digits > 0 {
                (high, low, digits) = (low, 0, 0)
            } else {
                return nil
            }
        }
        guard let high, digits > 0 else { return nil }
        rawValue = high << 32 | low
    }

    package static func < (lhs: LSN, rhs: LSN) -> Bool { lhs.rawValue < rhs.rawValue }

    package var description: String {
        let high = String(rawValue >> 32, radix: 16, uppercase: true)
        return "\(high)/\(String(rawValue & 0xFFFF_FFFF, radix: 16, uppercase: true))"
    }
}

/// The place of a change in PostgreSQL's commit order, the only order of the system.
package struct Position: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The byte after the start of the commit record. It is after the end of every earlier commit record, and not after the end of its own.
    package var lsn: LSN
    /// The ordinal of the change in its transaction, from 0.
    package var ordinal: UInt32

    package init(lsn: LSN, ordinal: UInt32) {
        self.lsn = lsn
        self.ordinal = ordinal
    }

    package static let zero = Position(lsn: .zero, ordinal: 0)

    package static func < (lhs: Position, rhs: Position) -> Bool { (lhs.lsn, lhs.ordinal) < (rhs.lsn, rhs.ordinal) }
    package var description: String { "\(lsn)+\(ordinal)" }
}

/// The client changeset of a transaction. SQL writes have none.
package struct Origin: Hashable, Sendable {
    package var client: ClientID
    package var changeset: UInt64
    /// The time with which the changeset's writes merge, or zero if unknown.
    package var time: HybridTime

    package init(client: ClientID, changeset: UInt64, time: HybridTime = .zero) {
        self.client = client
        self.changeset = changeset
        self.time = time
    }
}

/// The identity of one client replica. The gateway assigns it in the replica's first session. 0 is no client.
package struct ClientID: RawRepresentable, Hashable, Sendable, Comparable, CustomStringConvertible {
    package var rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    /// The origin of SQL writes. It sorts before every client, so it loses ties.
    package static let server = ClientID(rawValue: 0)
    package static func < (lhs: ClientID, rhs: ClientID) -> Bool { lhs.rawValue < rhs.rawValue }
    package var description: String { String(rawValue) }
}

package enum Operation: UInt8, Sendable { case insert = 1, update = 2, delete = 3 }

/// The value of `pg_current_snapshot()`: the set of transactions that a snapshot sees.
package struct TransactionSnapshot: Hashable, Sendable {
    /// The lowest transaction that was still running.
    package var xmin: UInt64
    /// One past the highest finished transaction.
    package var xmax: UInt64
    /// The transactions in between that were still running, ascending.
    package var running: [UInt64]

    package init(xmin: UInt64, xmax: UInt64, running: [UInt64]) {
        self.xmin = xmin
        self.xmax = xmax
        self.running = running
    }

    /// Reads PostgreSQL's form `xmin:xmax:a,b`, or returns nil.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let xmin = UInt64(parts[0]), let xmax = UInt64(parts[1]) else { return nil }
        let running = parts[2].split(separator: ",").map { UInt64($0) }
        guard !running.contains(nil) else { return nil }
        self.init(xmin: xmin, xmax: xmax, running: running.compactMap(\.self))
    }

    /// `true` if the snapshot sees a committed transaction. `xid` is the 32-bit number from the WAL. It is extended to the 64-bit number
    /// nearest to `xmax`.
    package func sees(xid: UInt32) -> Bool {
        let distance = Int64(Int32(bitPattern: xid &- UInt32(truncatingIfNeeded: xmax)))
        let full = UInt64(bitPattern: Int64(bitPattern: xmax) + distance)
        if full < xmin { return true }
        if full >= xmax { return false }
        return !running.contains(full)
    }
}
