import SluiceCore

/// Inserts rows of custom user data for users who have none.
package struct CustomDataImport {
    private let place: CustomDataTable.Place
    private let session: PostgresSession

    package init(_ place: CustomDataTable.Place, _ session: PostgresSession) {
        self.place = place
        self.session = session
    }

    private var table: String { place.sqlName }
    /// The column with the user's id.
    private var field: String { SQLQuote.identifier(place.userID) }

    /// Returns `true` if table and column exist.
    package func exists() throws -> Bool {
        try !session.query(
            "SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2 AND NOT attisdropped",
            [.text(table), .text(place.userID)]
        ).isEmpty
    }

    /// Returns those of the users who have a row.
    package func users(among ids: [String]) throws -> Set<String> {
        let list = "{\(ids.joined(separator: ","))}"
        return Set(try session.query("SELECT \(field)::text FROM \(table) WHERE \(field)::text = ANY($1::text[])", [.text(list)]).column(0))
    }

    /// Inserts custom data as a document, into a table whose collection has no class.
    ///
    /// - Returns: PostgreSQL's reason, if it refuses the row.
    package func insert(_ document: String, of user: String) throws -> String? {
        try session.script("SAVEPOINT custom_data")
        do {
            try session.execute(
                "INSERT INTO \(table) (\(field), \(SQLQuote.identifier(CustomDataTable.documentColumn))) VALUES ($1, $2)",
                [.text(user), .text(document)])
            try session.script("RELEASE SAVEPOINT custom_data")
            return nil
        } catch let failure as PostgresError where failure.isLasting {
            try session.script("ROLLBACK TO SAVEPOINT custom_data; RELEASE SAVEPOINT custom_data")
            return failure.message
        }
    }
}
