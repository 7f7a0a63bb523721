package import SluiceCore

/// The compensating writes that were not reported to the app yet.
package struct CompensationReports: Sendable {
    let database: ReplicaDatabase
    private var connection: Connection { database.connection }

    /// The maximum number of unreported reports. The oldest are dropped first.
    private static let kept: UInt64 = 1_000

    /// Stores a report of compensating writes.
    /// - Returns: `nil` if there are none.
    func keep(_ writes: [CompensatingWrite]) throws(SluiceError) -> CompensationReport? {
        if writes.isEmpty { return nil }
        let statement = try connection.statement("INSERT INTO _sluice_error (writes) VALUES (?) RETURNING id")
        statement.bind(0, ChangeCoding.encode(writes))
        guard try statement.step() else { return nil }
        let id = statement.unsigned(0)
        statement.reset()
        let oldest = try connection.statement("DELETE FROM _sluice_error WHERE id <= ?")
        oldest.bind(0, id - min(id, CompensationReports.kept))
        try oldest.run()
        return CompensationReport(id: id, writes: writes)
    }

    /// Returns the reports that the app has not received, oldest first.
    package func all() throws(SluiceError) -> [CompensationReport] {
        let statement = try connection.statement("SELECT id, writes FROM _sluice_error ORDER BY id")
        defer { statement.reset() }
        var reports: [CompensationReport] = []
        while try statement.step() {
            reports.append(CompensationReport(id: statement.unsigned(0), writes: ChangeCoding.decodeRefusals(statement.bytes(1))))
        }
        return reports
    }

    /// Deletes a report after the app has received it.
    package func forget(_ id: UInt64) throws(SluiceError) {
        let statement = try connection.statement("DELETE FROM _sluice_error WHERE id = ?")
        statement.bind(0, id)
        try statement.run()
    }
}
