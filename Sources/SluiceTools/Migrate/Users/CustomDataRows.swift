import SluiceCore
import SluicePorts
import SluicePostgres
import SluiceValues

/// Writes exported custom data into the app's table of custom user data, for users without a row there.
struct CustomDataRows {
    private let rows: CustomDataImport
    /// The import into the table of a class; nil if the collection has no class.
    private let typed: (reader: DocumentRowReader, rows: RowImport)?
    private let app: ImportApp

    /// - Throws: `tableUnfit` if the table or its column does not exist.
    init(_ place: CustomDataTable.Place, _ app: ImportApp, _ session: PostgresSession) throws {
        self.app = app
        rows = CustomDataImport(place, session)
        guard try rows.exists() else {
            throw SluiceError(
                .tableUnfit,
                "The table \(place.schema).\(place.table) of custom user data has no column \(place.userID), or is missing.",
                fix: "Run `sluice migrate schema`, which creates both, and `sluice migrate data`.")
        }
        if let type = app.type(database: place.schema, collection: place.table) {
            let shape = try app.shape(of: type)
            typed = (DocumentRowReader(shape.type, in: app.schema, classes: app.classesByCollection), RowImport(shape))
        } else {
            typed = nil
        }
    }

    /// Writes the rows of a chunk, within the session's transaction.
    func write(_ users: [ExportedUser], _ report: inout UserMigrationReport, _ session: PostgresSession) throws {
        let candidates = users.filter { $0.customData != nil && $0.account.provider != "api-key" }
        guard !candidates.isEmpty else { return }
        let known = try rows.users(among: candidates.map(\.account.id))
        for user in candidates where !known.contains(user.account.id) {
            guard let data = user.customData else { continue }
            if let reason = try write(data, of: user.account.id, session) {
                report.miss(user.account.id, "the custom data do not fit: \(reason)")
            } else {
                report.customRows += 1
            }
        }
    }

    /// - Returns: The reason why the row was not written.
    private func write(_ data: JSON, of user: String, _ session: PostgresSession) throws -> String? {
        guard let typed else { return try rows.insert(data.text, of: user) }
        var (reader, buffer) = (typed.reader, RowBuffer())
        let row: RowRef
        do throws(DocumentMisfit) { row = try reader.read(data, into: &buffer) } catch { return error.reason }
        return try typed.rows.insert([row], of: buffer, session).refused.first?.reason
    }
}
