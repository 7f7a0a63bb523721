import FoundationEssentials
package import SluiceCore
package import SluiceGateway
import SluiceValues

/// Checks an app directory of any age without a database: `sluice migrate check`.
///
/// `sluice serve` and `sluice schema` find the same mistakes.
package enum ExportCheck {
    /// - Throws: `configMissing` or `configInvalid` if the directory cannot be read at all.
    package static func report(at path: String, appID: String?) async throws(SluiceError) -> ExportReport {
        let found: AppDirectory.Examination
        do { found = try AppDirectory.examine(at: path, appID: appID) } catch {
            throw joined(error.problems.map(\.description), error.asSluiceError.code)
        }
        let other = AppDirectory.unservedFiles(at: path)
        var report = ExportReport(found, features: ExportInventory.features(in: other, notes: found.notes))
        if let app = found.configuration { report.roles = await RuleCheck(app: app, customDataFields: nil).result() }
        return report
    }

    /// Returns the app for a gateway.
    ///
    /// - Throws: All problems of the directory, also those of its roles; `configMissing` if it has no class.
    package static func configuration(at path: String, appID: String?) async throws(SluiceError) -> AppConfiguration {
        let found: AppDirectory.Examination
        do { found = try AppDirectory.examine(at: path, appID: appID) } catch {
            throw joined(error.problems.map(\.description), error.asSluiceError.code)
        }
        if found.problems.isEmpty, let app = found.configuration, app.hasClasses { return app }
        var report = ExportReport(found, features: [])
        if let app = found.configuration { report.roles = await RuleCheck(app: app, customDataFields: nil).result() }
        throw joined(report.refusals.map(\.text), found.problems.first?.code ?? .configMissing)
    }

    private static func joined(_ lines: [String], _ code: ErrorCode) -> SluiceError {
        SluiceError(code, lines.joined(separator: "\n"), fix: "")
    }
}
