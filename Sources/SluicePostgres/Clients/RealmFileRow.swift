import SluiceCore
import SluicePorts
import SluiceValues

/// The state of a client file as its rows hold it.
enum RealmFileRow {
    /// The columns of `sluice.realm_file` that `client` reads.
    static let columns = "session, upload_client, upload_server, acknowledged, view_query, view_server, building, is_lost, replica"

    /// The query for the entries of a file that `client` reads.
    static let entries = """
        SELECT server_version, client_version, origin, stamp, created, changeset, compensation, is_covered
        FROM sluice.realm_entry WHERE file = $1 ORDER BY server_version
        """

    /// Returns the state of a file from its row and its entries.
    static func client(_ file: RealmFileIdent, _ row: PostgresResult, _ entries: PostgresResult) throws(SluiceError) -> StoredRealmClient {
        func version(_ column: Int) -> UInt64? { row.int(0, column).map { UInt64(clamping: $0) } }
        var record = RealmClientRecord(file: file)
        record.upload = RealmUploadProgress(clientVersion: version(1) ?? 0, serverVersion: version(2) ?? 0)
        record.acknowledged = version(3) ?? 0
        if let query = version(4), let server = version(5) {
            record.view = RealmClientRecord.View(queryVersion: query, serverVersion: server)
        }
        record.building = version(6)
        record.isLost = row.bool(0, 7) ?? true
        record.replica = row.bytes(0, 8) ?? []
        var client = StoredRealmClient(record: record, sessionNumber: version(0) ?? 0)
        for index in 0..<entries.count {
            let compensation = try entries.bytes(index, 6).map { bytes throws(SluiceError) in try decode(bytes) }
            if entries.bool(index, 7) == true {
                if let compensation { client.record.compensations.append(compensation) }
            } else {
                client.entries.append(entry(entries, index, compensation))
            }
        }
        return client
    }

    private static func entry(_ entries: PostgresResult, _ index: Int, _ compensation: RealmCompensation?) -> RealmStreamEntry {
        func version(_ column: Int) -> UInt64 { UInt64(clamping: entries.int(index, column) ?? 0) }
        func bits(_ column: Int) -> UInt64 { UInt64(bitPattern: entries.int(index, column) ?? 0) }
        return RealmStreamEntry(
            serverVersion: version(0), clientVersion: version(1), timestamp: bits(3), origin: bits(2),
            changeset: entries.bytes(index, 5) ?? [], created: entries.int(index, 4) ?? 0, compensation: compensation)
    }

    // MARK: Compensating writes

    /// Returns a compensating write as JSON in bytes: a text with NUL characters fits neither `text` nor `jsonb`.
    static func encode(_ compensation: RealmCompensation) -> [UInt8] {
        let rejected = compensation.rejected.map { JSON.array([.string($0.reason), .string($0.table), .string(Hex.encode($0.key))]) }
        return JSON.object([
            JSON.Member("server", .int(Int64(bitPattern: compensation.serverVersion))),
            JSON.Member("client", .int(Int64(bitPattern: compensation.clientVersion))), JSON.Member("rejected", .array(rejected)),
        ]).utf8
    }

    /// - Throws: `internalError` if the bytes are not those of `encode`.
    static func decode(_ bytes: [UInt8]) throws(SluiceError) -> RealmCompensation {
        guard let json = try? JSON.parse(bytes), let server = json["server"]?.int, let client = json["client"]?.int,
            let rejected = json["rejected"]?.array
        else { throw damaged(bytes) }
        var updates: [RealmRejectedUpdate] = []
        for fields in rejected.map({ $0.array ?? [] }) {
            guard fields.count == 3, let reason = fields[0].string, let table = fields[1].string,
                let key = fields[2].string.flatMap({ Hex.decode($0) })
            else { throw damaged(bytes) }
            updates.append(RealmRejectedUpdate(reason: reason, table: table, key: key))
        }
        return RealmCompensation(
            serverVersion: UInt64(bitPattern: server), clientVersion: UInt64(bitPattern: client), rejected: updates)
    }

    private static func damaged(_ bytes: [UInt8]) -> SluiceError {
        SluiceError(
            .internalError, "A row of sluice.realm_entry has an unreadable compensating write.",
            value: String(decoding: bytes.prefix(200), as: UTF8.self))
    }
}
