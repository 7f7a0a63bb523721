import SluiceCore
import SluiceGateway
import SluicePostgres

/// Makes an app directory from the tables of a database: `sluice init`.
package struct InitTool: Sendable {
    private let reader: SurveyReader
    private let conninfo: String

    /// - Parameters:
    ///   - schemas: The schemas to read; empty for all.
    ///   - tables: The tables to read, as `table` or `schema.table`; empty for all.
    package init(postgres: String, schemas: [String], tables: [String]) {
        reader = SurveyReader(schemas: schemas, tables: tables)
        conninfo = postgres
    }

    /// Returns the directory that the tables ask for. Changes nothing.
    ///
    /// - Parameter appID: The app id; nil for one from the directory's name.
    /// - Throws: `configInvalid` for unknown schemas and tables, and for an invalid app id.
    package func report(for directory: String, appID: String?) async throws -> InitReport {
        let id = appID ?? Self.appID(of: directory)
        let survey = try await survey()
        let draft = AppDraft(survey)
        let files = InitFiles(draft, appID: id)
        try Self.check(files, appID: id, draft)
        return InitReport(draft: draft, plan: try DirectoryPlan(files.texts, in: directory))
    }

    private func survey() async throws -> DatabaseSurvey {
        let pool = PostgresPool(conninfo, name: "init", size: 1)
        do {
            let result = try await PostgresError.translating { try await pool.withConnection { try await reader.read($0) } }
            await pool.close()
            return result
        } catch {
            await pool.close()
            throw PostgresError.forPort(error)
        }
    }

    /// Requires that a gateway reads the files as they are meant.
    private static func check(_ files: InitFiles, appID: String, _ draft: AppDraft) throws(SluiceError) {
        let found = AppDirectory.examine(files: files.texts.filter { $0.key.hasSuffix(".json") })
        // An app without a class has its own message.
        if let problem = found.problems.first {
            throw SluiceError(
                problem.code, problem.message,
                fix: problem.file == "realm_config.json" ? "Pass --app-id with letters, digits, '-' and '_'." : problem.fix)
        }
    }

    /// Returns the last folder of the path, with `-` in place of characters that no app id has.
    static func appID(of directory: String) -> String {
        let last = directory.split(separator: "/").last.map(String.init) ?? ""
        let id = last.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-") ? $0 : "-" }
        return id.contains { $0 != "-" } ? String(id) : "app"
    }
}
