import SluiceCore

/// The amount of data that waits for upload.
extension Writer {
    func unsentBytes(upTo limit: UploadCursor?) throws(SluiceError) -> UInt64 {
        let changesets = try number(
            "SELECT coalesce(sum(bytes), 0) FROM _sluice_pending WHERE acknowledged IS NULL AND number <= ?", limit?.changeset)
        let objects = try number("SELECT coalesce(sum(length(change)), 0) FROM _sluice_ingest WHERE id <= ?", limit?.object)
        return changesets + objects
    }

    func uploadMark() throws(SluiceError) -> UploadCursor {
        UploadCursor(
            changeset: meta.changeset, object: try number("SELECT coalesce(max(id), 0) FROM _sluice_ingest WHERE id <= ?", nil))
    }

    private func number(_ sql: String, _ limit: UInt64?) throws(SluiceError) -> UInt64 {
        let statement = try connection.statement(sql)
        statement.bind(0, limit ?? UInt64(Int64.max))
        defer { statement.reset() }
        return try statement.step() ? statement.unsigned(0) : 0
    }
}
