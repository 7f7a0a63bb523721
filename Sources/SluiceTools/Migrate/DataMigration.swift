import FoundationEssentials
package import SluiceCore
package import SluiceGateway
import SluicePostgres
import SluiceValues

/// Imports documents of MongoDB into the tables of an app: `sluice migrate data`.
package struct DataMigration: Sendable {
    /// The options of the command.
    package struct Options: Sendable {
        /// Files and folders that mongodump and mongoexport wrote.
        package var sources: [String]
        /// Files by the collection of the app that they hold.
        package var named: [(collection: String, path: String)]
        /// The number of collections that are imported at the same time.
        package var jobs: Int
        /// The folder of the documents that do not fit.
        package var quarantine: String
        package var isSilent: Bool

        package init(
            sources: [String], named: [(collection: String, path: String)] = [], jobs: Int = 2, quarantine: String, isSilent: Bool = false
        ) {
            self.sources = sources
            self.named = named
            self.jobs = jobs
            self.quarantine = quarantine
            self.isSilent = isSilent
        }
    }

    /// The most collections that are imported at the same time.
    package static let mostJobs = 32

    private let app: ImportApp
    private let conninfo: String
    private let options: Options
    private let plan: ImportPlan

    /// Looks at the sources. Changes nothing.
    ///
    /// - Throws: `configMissing` for an unreadable source, `configInvalid` if nothing is to import.
    package init(app: AppConfiguration, postgres: String, options: Options) throws(SluiceError) {
        self.app = ImportApp(app)
        conninfo = postgres
        self.options = options
        plan = try ImportPlan(sources: options.sources, named: options.named, app: self.app, jobs: options.jobs)
    }

    /// The collections that are left out, one sentence each.
    package var notes: [String] { plan.notes }

    /// Imports everything, and verifies it.
    ///
    /// - Returns: The outcome of each collection, by table.
    /// - Throws: `tableUnfit` if a table does not fit or its rows differ in the end; `badRequest` for a damaged source. The chunks before
    ///   stay, and the next run continues behind them.
    package func run() async throws -> [ImportOutcome] {
        try makeFolder()
        let pool = PostgresPool(conninfo, name: "import", size: options.jobs)
        do {
            try await PostgresError.translating {
                try await pool.withConnection { connection in
                    try await CompanionSchema.create(connection)
                    try await app.requireFit(plan.types, connection)
                    try await connection.withSession { try ImportProgressStore().create($0) }
                }
            }
            let outcomes = try await importAll(pool)
            await pool.close()
            return outcomes.sorted { ($0.table, $0.path) < ($1.table, $1.path) }
        } catch {
            await pool.close()
            throw PostgresError.forPort(error)
        }
    }

    private func makeFolder() throws(SluiceError) {
        do { try FileManager.default.createDirectory(atPath: options.quarantine, withIntermediateDirectories: true) } catch {
            throw SluiceError(
                .configInvalid, "The folder \(options.quarantine) for documents that do not fit cannot be made.",
                fix: "Name one that can be written with --quarantine.")
        }
    }

    private func importAll(_ pool: PostgresPool) async throws -> [ImportOutcome] {
        let total = plan.stages.joined().joined().reduce(0) { $0 + $1.file.bytes }
        let meter = ImportMeter(totalBytes: total, isSilent: options.isSilent)
        defer { meter.finish() }
        return try await withThrowingTaskGroup(of: [ImportOutcome]?.self) { group in
            group.addTask {
                await meter.run()
                return nil
            }
            defer { group.cancelAll() }
            var outcomes: [ImportOutcome] = []
            for stage in plan.stages { outcomes += try await importStage(stage, pool, meter) }
            return outcomes
        }
    }

    /// Imports the groups of a stage, as many at a time as there are connections.
    private func importStage(_ groups: [[ImportPlan.Pass]], _ pool: PostgresPool, _ meter: ImportMeter) async throws -> [ImportOutcome] {
        try await withThrowingTaskGroup(of: [ImportOutcome].self) { tasks in
            var waiting = groups[...]
            var outcomes: [ImportOutcome] = []
            func begin() {
                guard let group = waiting.popFirst() else { return }
                tasks.addTask { try await importGroup(group, pool, meter) }
            }
            for _ in 0..<options.jobs { begin() }
            while let done = try await tasks.next() {
                outcomes += done
                begin()
            }
            return outcomes
        }
    }

    private func importGroup(_ group: [ImportPlan.Pass], _ pool: PostgresPool, _ meter: ImportMeter) async throws -> [ImportOutcome] {
        var outcomes: [ImportOutcome] = []
        for pass in group {
            let work = ImportPass(pass: pass, app: app, quarantine: options.quarantine, meter: meter)
            // A connection of its own for each pass: its end releases the locks of the classes.
            outcomes += try await pool.withConnection { connection in
                let found = try await connection.withSession { try work.run($0) }
                try await connection.query("SELECT pg_advisory_unlock_all()")
                return found
            }
        }
        return outcomes
    }
}
