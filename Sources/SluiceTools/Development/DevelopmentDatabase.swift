import SluiceCore
import SluiceDevServer
import SluiceGateway
import SluicePostgres

/// The database of `sluice dev`: a private server that ends with the command, or a database that exists.
enum DevelopmentDatabase: Sendable {
    case own(PrivatePostgres)
    case borrowed(BorrowedDatabase)

    var conninfo: String {
        switch self {
        case .own(let server): server.conninfo
        case .borrowed(let database): database.conninfo
        }
    }

    /// The database for people: a connection string of the private server, and the place of an existing database without its password.
    var shown: String {
        switch self {
        case .own(let server): server.conninfo
        case .borrowed(let database): database.place
        }
    }

    /// Ends the private server, or removes the slot and the publication that this run has made.
    func close() async {
        switch self {
        case .own(let server): await server.stop(within: .seconds(3))
        case .borrowed(let database): await database.close()
        }
    }
}

/// An existing database that `sluice dev` uses. At the end it drops the slot and the publication that this run has made, and nothing else.
struct BorrowedDatabase: Sendable {
    let conninfo: String
    /// `host:port/database`.
    let place: String
    let names: ReplicationNames
    /// A connection string without a password, for a command to type.
    let withoutPassword: String
    private let hadSlot: Bool
    private let hadPublication: Bool

    private static let patience = Duration.seconds(10)

    /// Connects and checks the server as `sluice check` does. Changes nothing.
    ///
    /// - Throws: `postgresSetting` with every setting for which a gateway does not start; `slotBusy` if a gateway reads the app's slot;
    ///   `configInvalid` for a role, a password or a database that PostgreSQL refuses; `postgresUnreachable`.
    static func open(_ conninfo: String, app: String) async throws -> BorrowedDatabase {
        do {
            let connection = try await PostgresConnection.connect(conninfo, within: patience)
            let found: Result<BorrowedDatabase, any Error>
            do { found = .success(try await look(connection, conninfo, app)) } catch { found = .failure(error) }
            await connection.close()
            return try found.get()
        } catch {
            guard let known = SluiceError(of: error) else { throw error }
            throw PostgresRefusal.error(known) ?? known
        }
    }

    private static func look(_ connection: PostgresConnection, _ conninfo: String, _ app: String) async throws -> BorrowedDatabase {
        let (place, withoutPassword) = try await connection.withSession { ($0.name, Self.text($0.address)) }
        let names = ReplicationNames(app: app, database: try await connection.query("SELECT current_database()")[0, 0] ?? "")
        let facts = try await ServerFacts.load(connection, slot: names.slot)
        let findings = PostgresFindings(facts, clockSkew: 0, clockError: 0, slot: names.slot).findings
        // A development database may lose data in a crash of the machine.
        let errors = findings.filter { $0.severity == .error && $0.subject != "fsync" }
        guard errors.isEmpty else {
            throw SluiceError(
                .postgresSetting, errors.map { ([$0.message] + $0.commands).joined(separator: " ") }.joined(separator: " "),
                fix: errors.first?.fix)
        }
        // With the embedded log, a second gateway would receive no changes.
        if facts.slot?.isActive == true {
            throw SluiceError(
                .slotBusy, "Another gateway reads the replication slot \(names.slot) of \(place).",
                fix: "Stop it, or choose another app id with --app-id.")
        }
        for finding in findings where finding.severity == .warning { StandardError.write("sluice: \(finding.message) \(finding.fix)\n") }
        let publication = try await Publication.state(connection, name: names.publication, tables: [])
        return BorrowedDatabase(
            conninfo: conninfo, place: place, names: names, withoutPassword: withoutPassword, hadSlot: facts.slot != nil,
            hadPublication: publication.exists)
    }

    /// The objects that this run makes and removes, for people; nil if both exist already.
    private var made: String? {
        switch (hadSlot, hadPublication) {
        case (false, false): "the replication slot and the publication \(names.slot)"
        case (false, true): "the replication slot \(names.slot)"
        case (true, false): "the publication \(names.publication)"
        case (true, true): nil
        }
    }

    private static func text(_ address: [(keyword: String, value: String)]) -> String {
        address.map { keyword, value in
            // A word of the shell needs no quotes of libpq either.
            "\(keyword)=\(ShellText.word(value) == value ? value : SQLQuote.connectionValue(value))"
        }.joined(separator: " ")
    }

    /// The use of the database, in two lines.
    var notice: String {
        let part = made.map { "It makes \($0), and removes them at the end." } ?? "Its slot and publication \(names.slot) exist and stay."
        return """
            sluice: using the database \(place). \(part)
            sluice: it adds tables, columns, two users and the schema sluice, and drops none of your tables, columns or rows.

            """
    }

    /// The statements that remove what this run has made.
    private var removal: String {
        [
            hadSlot ? nil : "SELECT pg_drop_replication_slot(\(SQLQuote.postgresLiteral(names.slot)));",
            hadPublication ? nil : "DROP PUBLICATION IF EXISTS \(SQLQuote.identifier(names.publication));",
        ].compactMap(\.self).joined(separator: " ")
    }

    /// The limit of the removal. A signal ends the process after 4.5 s, of which the gateway may need 3 s.
    private static let removalLimit = Duration.seconds(1)

    /// Drops the slot and the publication within 1 s, if this run has made them.
    ///
    /// The statements are printed before, because the process may be killed meanwhile, and a forgotten slot fills the disk.
    func close() async {
        guard let made else { return }
        StandardError.write(
            """
            sluice: removing \(made) from \(place)
            sluice: only if no line says that it is removed, run: \(removal)

            """)
        let deadline = ContinuousClock.now + Self.removalLimit
        let task = Task { await remove(made, until: deadline) }  // Unstructured because: the command's own task is cancelled by now.
        await task.value
    }

    private func remove(_ made: String, until deadline: ContinuousClock.Instant) async {
        do {
            let connection = try await PostgresConnection.connect(conninfo, within: deadline - .now)
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await drop(connection, until: deadline)) } catch { outcome = .failure(error) }
            await connection.close()
            try outcome.get()
            StandardError.write("sluice: removed \(made) from \(place); tables, users and the schema sluice stay\n")
        } catch {
            StandardError.write("sluice: \(made) is not removed: \(SluiceError(of: error)?.operatorText ?? "\(error)")\n")
        }
    }

    private func drop(_ connection: PostgresConnection, until deadline: ContinuousClock.Instant) async throws {
        func limit() async throws { try await connection.withSession { $0.limit = max(.milliseconds(50), deadline - .now) } }
        while !hadSlot {
            do {
                try await limit()
                try await ReplicationSlot.drop(connection, name: names.slot)
                break
            } catch let error as PostgresError where error.code == .slotBusy && ContinuousClock.now < deadline {
                // PostgreSQL ends the gateway's connection a moment after the gateway, and reports no event for it.
                try await Task.sleep(for: .milliseconds(50))
            }
        }
        if !hadPublication {
            try await limit()
            try await Publication.drop(connection, name: names.publication)
        }
    }
}
