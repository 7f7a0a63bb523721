import CLibPQ

/// The rows of a finished statement, in text form. libpq holds them; a value is copied when it is read.
@safe
package final class PostgresResult: @unchecked Sendable {  // Sendable because: a result never changes, and libpq's accessors only read it.
    private let handle: OpaquePointer?

    /// Takes ownership of the handle.
    init(_ handle: OpaquePointer?) { unsafe self.handle = handle }

    deinit { unsafe PQclear(handle) }

    package var count: Int { unsafe Int(PQntuples(handle)) }
    package var columnCount: Int { unsafe Int(PQnfields(handle)) }
    package var isEmpty: Bool { count == 0 }

    package func columnName(_ column: Int) -> String { unsafe PQfname(handle, Int32(column)).map { unsafe String(cString: $0) } ?? "" }

    /// The number of rows that INSERT, UPDATE, DELETE, COPY or SELECT affected; 0 for other statements.
    package var affected: Int { unsafe Int(String(cString: PQcmdTuples(handle))) ?? 0 }

    /// The command tag, such as `INSERT 0 1`.
    package var tag: String { unsafe String(cString: PQcmdStatus(handle)) }

    /// Returns a value's text; nil for NULL and outside the result.
    package subscript(row: Int, column: Int) -> String? {
        guard row < count, column < columnCount else { return nil }
        return unsafe PostgresRow(handle: handle, row: Int32(row)).string(column)
    }

    package func int(_ row: Int, _ column: Int) -> Int64? { self[row, column].flatMap { Int64($0) } }
    package func bool(_ row: Int, _ column: Int) -> Bool? { self[row, column].map { $0 == "t" } }

    /// Passes each row to the body, in order.
    package func forEach(_ body: (PostgresRow) throws -> Void) rethrows {
        for row in 0..<Int32(count) { try unsafe body(PostgresRow(handle: handle, row: row)) }
    }

    /// Returns all values of a column, without NULLs.
    package func column(_ column: Int) -> [String] { (0..<count).compactMap { self[$0, column] } }
}

/// One row of a result, valid only inside the closure that receives it.
@safe
package struct PostgresRow {
    private let handle: OpaquePointer?
    private let row: Int32

    init(handle: OpaquePointer?, row: Int32) {
        unsafe self.handle = handle
        self.row = row
    }

    package var columnCount: Int { unsafe Int(PQnfields(handle)) }

    /// Returns a value's bytes in text form; nil for NULL and for a missing column.
    @unsafe package func bytes(_ column: Int) -> UnsafeBufferPointer<UInt8>? {
        guard unsafe PQgetisnull(handle, row, Int32(column)) == 0, let start = unsafe PQgetvalue(handle, row, Int32(column)) else {
            return nil
        }
        let count = unsafe Int(PQgetlength(handle, row, Int32(column)))
        return unsafe UnsafeBufferPointer(
            start: UnsafeRawPointer(start).assumingMemoryBound(to: UInt8.self), count: count)
    }

    package func string(_ column: Int) -> String? { unsafe bytes(column).map { unsafe String(decoding: $0, as: UTF8.self) } }
    package func int(_ column: Int) -> Int64? { string(column).flatMap { Int64($0) } }
    package func bool(_ column: Int) -> Bool? { string(column).map { $0 == "t" } }
}
