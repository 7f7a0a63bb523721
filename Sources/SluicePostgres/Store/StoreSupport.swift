import SluiceCore
import SluiceValues

/// The stores' access to PostgreSQL: a pooled connection for the length of one call, and errors as ports expect them.
extension PostgresPool {
    /// Runs the body on a connection's queue. Its failures are thrown as `SluiceError`.
    func perform<R: Sendable>(_ body: @escaping @Sendable (PostgresSession) throws -> R) async throws -> R {
        do {
            return try await withSession(body)
        } catch {
            throw PostgresError.forPort(error)
        }
    }

    /// Runs the body in one transaction on a connection's queue.
    func transact<R: Sendable>(_ body: @escaping @Sendable (PostgresSession) throws -> R) async throws -> R {
        try await perform { session in try session.inTransaction { try body(session) } }
    }
}

extension PostgresResult {
    /// Returns a bytea column; nil for NULL.
    func bytes(_ row: Int, _ column: Int) -> [UInt8]? { self[row, column].flatMap { Hex.decode($0.dropFirst(2)) } }

    /// Returns a JSON column; `null` for NULL.
    func json(_ row: Int, _ column: Int) throws(SluiceError) -> JSON { try JSON.parse(self[row, column] ?? "null") }
}

/// Texts as the stores exchange them with PostgreSQL.
enum StoreText {
    /// Returns text that PostgreSQL can store: `␀` replaces the NUL character. For records that operators read.
    static func printable(_ text: String) -> String {
        text.utf8.contains(0) ? String(String.UnicodeScalarView(text.unicodeScalars.map { $0 == "\0" ? "␀" : $0 })) : text
    }

    static func printable(_ json: JSON) -> JSON {
        switch json {
        case .string(let text): .string(printable(text))
        case .array(let elements): .array(elements.map { printable($0) })
        case .object(let members): .object(members.map { JSON.Member(printable($0.key), printable($0.value)) })
        default: json
        }
    }

    /// Returns SQL that formats a column of the type `timestamptz`: ISO 8601, UTC, milliseconds.
    static func time(_ column: String) -> String { #"to_char(\#(column) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"# }

    /// Returns an array literal of texts; nil becomes NULL.
    static func array(_ texts: some Sequence<String?>) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for text in texts {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            guard let text else {
                bytes.append(contentsOf: "NULL".utf8)
                continue
            }
            bytes.append(UInt8(ascii: "\""))
            for byte in text.utf8 {
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
                bytes.append(byte)
            }
            bytes.append(UInt8(ascii: "\""))
        }
        bytes.append(UInt8(ascii: "}"))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the text of a primary key as the companion tables hold it: PostgreSQL's own text of the value.
    static func key(_ key: Value) -> String {
        switch key {
        case .int(let value): String(value)
        case .string(let value): value
        case .objectId(let value): value.description
        case .uuid(let value): value.description
        default: ExtendedJSON.json(key).text
        }
    }
}

/// The bound of the tables of rejections, which clients could otherwise grow without limit.
package enum RejectionPruning {
    /// The maximum number of rows that one statement deletes.
    package static let batch = 10_000

    /// Deletes the oldest rows that meet the condition.
    ///
    /// - Parameters:
    ///   - condition: SQL for the rows that may be deleted, such as those that have been delivered.
    ///   - count: The number of newest ids that are kept.
    /// - Returns: The number of deleted rows, at most `batch`.
    static func delete(from table: String, where condition: String, keeping count: Int64, _ pool: PostgresPool) async throws -> Int {
        try await pool.perform { session in
            let deleted = try session.execute(
                """
                DELETE FROM \(table) WHERE id IN (
                    SELECT id FROM \(table) WHERE \(condition) AND id <= (SELECT max(id) FROM \(table)) - $1 ORDER BY id LIMIT \(batch))
                """, [.int(count)], cached: true)
            return Int(deleted)
        }
    }
}
