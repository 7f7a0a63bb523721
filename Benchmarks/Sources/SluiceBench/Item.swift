import Foundation
import RealmSwift
import SluicePostgres

/// The class of all benchmarks: 7 properties, 200 bytes of values with a note of 128.
final class Item: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var store: Int
    @Persisted var quantity: Int
    @Persisted var price: Double
    @Persisted var name: String
    @Persisted var note: String
    @Persisted var updated: Date
}

extension Item {
    static let noteBytes = 128

    static let table = """
        CREATE TABLE items (
            "_id" bigint PRIMARY KEY, store bigint NOT NULL, quantity bigint NOT NULL, price double precision NOT NULL,
            name text NOT NULL, note text NOT NULL, updated timestamptz NOT NULL)
        """

    /// Returns an INSERT of rows with the keys `first …`, spread over 100 stores.
    static func insert(_ count: Int, from first: Int, into table: String = "items", note: Int = noteBytes) -> String {
        """
        INSERT INTO \(table) ("_id", store, quantity, price, name, note, updated)
        SELECT n, n % 100, n % 1000, n / 100.0, 'item ' || lpad(n::text, 27, '0'),
            left(repeat(md5(n::text), \(note / 32 + 1)), \(note)), to_timestamp(1700000000 + n % 1000000)
        FROM generate_series(\(first), \(first + count - 1)) n
        """
    }

    /// Returns the bytes of one row's values: five of 8 bytes, the name of 32, and the note.
    static func bytes(note: Int = noteBytes) -> Int { 5 * 8 + 32 + note }
}

extension PostgresConnection {
    /// Loads rows in transactions of a given size.
    /// - Returns: An LSN inside the last transaction.
    func load(_ count: Int, from first: Int, perTransaction: Int, note: Int = Item.noteBytes) async throws -> String {
        var done = 0
        var lsn = ""
        while done < count {
            let step = min(perTransaction, count - done)
            try await script("BEGIN")
            try await script(Item.insert(step, from: first + done, note: note), within: .seconds(120))
            lsn = try await query("SELECT pg_current_wal_insert_lsn()")[0, 0] ?? ""
            try await script("COMMIT", within: .seconds(60))
            done += step
        }
        return lsn
    }

    /// Waits until a slot's reader has confirmed everything before an LSN. No event is available, so it polls every 5 ms.
    func confirmed(_ slot: String, _ lsn: String, within limit: Double = 300) async throws {
        let deadline = seconds() + limit
        while seconds() < deadline {
            let answer = try await query(
                "SELECT confirmed_flush_lsn >= '\(lsn)'::pg_lsn FROM pg_replication_slots WHERE slot_name = '\(slot)'")
            if !answer.isEmpty, answer.bool(0, 0) == true { return }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw BenchFailure("The slot \(slot) did not reach \(lsn) in \(limit.text()) s.")
    }
}
