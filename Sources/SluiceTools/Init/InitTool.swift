import FoundationEssentials
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
    /// - Throws: `configInvalid` for unknown schemas and tables, for an invalid app id, and for files that do not fit the existing ones.
    package func report(for directory: String, appID: String?) async throws -> InitReport {
        let id = appID ?? Self.appID(of: directory)
        let kept = try Self.files(of: directory)
        let draft = AppDraft(try await survey(), known: KnownClasses(kept))
        let plan = try DirectoryPlan(InitFiles(draft, appID: id).texts, in: directory)
        try Self.check(plan, beside: kept)
        return InitReport(draft: draft, plan: plan)
    }

    /// Returns the files that a gateway would read; none if the directory does not exist.
    private static func files(of directory: String) throws(SluiceError) -> [String: String] {
        guard FileManager.default.fileExists(atPath: directory) else { return [:] }
        do throws(AppDirectoryError) { return try AppDirectory.files(at: directory) } catch { throw error.asSluiceError }
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

    /// Requires that the new files cause no problem beside the existing ones. Problems that those have by themselves are the author's.
    private static func check(_ plan: DirectoryPlan, beside kept: [String: String]) throws(SluiceError) {
        let known = Set(AppDirectory.examine(files: kept).problems)
        let all = AppDirectory.examine(files: kept.merging(plan.new) { kept, _ in kept }).problems
        guard let problem = all.first(where: { !known.contains($0) }) else { return }
        throw SluiceError(
            problem.code, "\(problem.place): \(problem.message)",
            fix: problem.file == "realm_config.json" ? "Pass --app-id with letters, digits, '-' and '_'." : problem.fix)
    }

    /// Returns the last folder of the path, with `-` in place of characters that no app id has.
    static func appID(of directory: String) -> String {
        let last = directory.split(separator: "/").last.map(String.init) ?? ""
        let id = last.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-") ? $0 : "-" }
        return id.contains { $0 != "-" } ? String(id) : "app"
    }
}
