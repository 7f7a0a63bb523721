package import SluiceCore
package import SluiceGateway
import SluicePorts
import SluicePostgres
import SluiceValues

/// Makes accounts of the users that the Admin API of App Services lists: `sluice migrate users`.
package struct UserMigration: Sendable {
    /// The options of the command.
    package struct Options: Sendable {
        /// Files with answers of the Admin API.
        package var sources: [String]
        /// The file for new credentials.
        package var credentials: String
        /// The days for which a reset token is valid.
        package var validDays: Int
        /// `true` to replace the valid reset tokens of earlier runs.
        package var renews: Bool

        package init(sources: [String], credentials: String, validDays: Int = 30, renews: Bool = false) {
            self.sources = sources
            self.credentials = credentials
            self.validDays = validDays
            self.renews = renews
        }
    }

    private let app: AppConfiguration
    private let conninfo: String
    private let options: Options
    private let files: [ImportFile]

    /// Looks at the sources. Changes nothing.
    ///
    /// - Throws: `configMissing` for an unreadable source, `badRequest` for one that is not JSON.
    package init(app: AppConfiguration, postgres: String, options: Options) throws(SluiceError) {
        self.app = app
        conninfo = postgres
        self.options = options
        files = try options.sources.map { source throws(SluiceError) in
            let file = try ImportFile(source)
            guard file.kind == .json else {
                throw SluiceError(
                    .badRequest, "\(source) is no JSON of the Admin API.",
                    fix: "Save the answers of GET /groups/{groupId}/apps/{appId}/users and …/user_registrations/pending_users to files.")
            }
            return file
        }
    }

    /// Makes the accounts, chunk by chunk. A chunk is one transaction.
    ///
    /// - Throws: `tableUnfit` if the table of custom user data is missing; `badRequest` for a damaged source. The chunks before stay.
    package func run(now: Int64) async throws -> UserMigrationReport {
        let pool = PostgresPool(conninfo, name: "users", size: 1)
        do {
            let report = try await PostgresError.translating {
                try await pool.withConnection { connection in
                    try await CompanionSchema.create(connection)
                    return try await connection.withSession { session in
                        let work = try UserChunks(app, options, now: now, session)
                        for file in files { try work.read(file) }
                        return work.report
                    }
                }
            }
            await pool.close()
            return report
        } catch {
            await pool.close()
            throw PostgresError.forPort(error)
        }
    }
}

/// Reads users and writes them chunk by chunk, on a connection's queue.
private final class UserChunks {
    /// The number of users of a transaction.
    private static let chunkUsers = 500

    private let app: AppConfiguration
    private let options: UserMigration.Options
    private let now: Int64
    private let session: PostgresSession
    private let rows: CustomDataRows?
    private let file: CredentialFile
    private let credentials: UserCredentials
    private(set) var report = UserMigrationReport()

    init(_ app: AppConfiguration, _ options: UserMigration.Options, now: Int64, _ session: PostgresSession) throws {
        self.app = app
        self.options = options
        self.now = now
        self.session = session
        let place = app.customDataPlace
        rows = try place.map { try CustomDataRows($0, ImportApp(app), session) }
        file = try CredentialFile(path: options.credentials)
        credentials = UserCredentials(file, app: app, options, now: now, session)
        report.credentials = options.credentials
        report.customTable = place.map { "\($0.schema).\($0.table)" }
    }

    func read(_ source: ImportFile) throws {
        let documents = try source.documents(from: 0)
        var batches = [DocumentBatch()]
        while true {
            let event = try documents.next(into: &batches)
            if event != .documents(0) || batches[0].count >= Self.chunkUsers {
                for start in stride(from: 0, to: batches[0].count, by: Self.chunkUsers) {
                    try write(batches[0], start..<min(start + Self.chunkUsers, batches[0].count))
                }
                batches[0].removeAll()
            }
            if event != .documents(0) { return }
        }
    }

    private func write(_ batch: DocumentBatch, _ range: Range<Int>) throws {
        // The counts of a chunk that is rolled back are dropped.
        var report = report
        var (users, pending): ([ExportedUser], [PendingUser]) = ([], [])
        for index in range {
            guard let json = try? JSON.located(Array(batch[index])) else {
                report.read += 1
                report.leaveOut("", "an element is no valid JSON")
                continue
            }
            switch ExportedUser.read(json) {
            case .user(let user): users.append(user)
            case .pending(let id, let email): pending.append(PendingUser(id: id, email: email, passwordHash: nil, expires: pendingExpiry))
            case .unfit(let id, let reason): report.leaveOut(id, reason)
            }
            report.read += 1
        }
        try session.inTransaction {
            var accepted: [ExportedUser] = []
            for user in users where try write(user, &report) { accepted.append(user) }
            for user in pending { try write(user, &report) }
            try rows?.write(accepted, &report, session)
            // Before the commit: a hash without its secret would be of no use.
            try file.flush()
        }
        self.report = report
    }

    /// The time at which a pending user is deleted, as after a registration.
    private var pendingExpiry: Int64 { now + Limits.pendingUserSeconds * 1_000 }

    private func write(_ user: PendingUser, _ report: inout UserMigrationReport) throws {
        switch try UserImport(session).insert(user) {
        case .created: report.pending += 1
        case .existing, .emailTaken: report.pendingExisting += 1
        case .refused(let reason): report.leaveOut(user.id, "PostgreSQL does not take a value: \(reason)")
        }
    }

    /// Makes the account and the credentials of a user.
    ///
    /// - Returns: `false` if the user has no account.
    private func write(_ user: ExportedUser, _ report: inout UserMigrationReport) throws -> Bool {
        var account = user.account
        // The table decides, and its triggers copy the row.
        if rows == nil || account.provider == "api-key", let data = user.customData {
            if data.utf8.count <= UserService.customDataBytes {
                account.customData = data
            } else {
                report.miss(account.id, "the custom data have more than \(UserService.customDataBytes) bytes")
            }
        }
        switch try UserImport(session).insert(account, created: user.created) {
        case .emailTaken:
            report.leaveOut(account.id, "another account has the e-mail address")
            return false
        case .refused(let reason):
            report.leaveOut(account.id, "PostgreSQL does not take a value: \(reason)")
            return false
        case .existing: report.existing += 1
        case .created:
            report.created += 1
            report.disabled += account.isDisabled ? 1 : 0
        }
        for provider in Set(user.providers) { report.providers[provider, default: 0] += 1 }
        if !user.providers.contains(where: { app.isEnabled(provider: $0) && $0 != "anon-user" }) {
            report.stranded[user.providers[0], default: 0] += 1
        }
        try credentials.make(for: user, &report)
        return true
    }
}
