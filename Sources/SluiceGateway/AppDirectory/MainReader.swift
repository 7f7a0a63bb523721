import SluiceCore
import SluiceValues

/// Reads the file that names the app, and finds the app id.
struct MainReader {
    let trees: [String: ConfigNode]
    let paths: Set<String>
    let list: ProblemList
    /// The app id of the command line.
    let appID: String?

    struct Main {
        /// Empty if the directory has none, which is a problem.
        var id = ""
        var name = ""
        var environment = ""
        var refreshTokenLifetime = MainReader.lifetime
    }

    /// 60 days, in seconds.
    private static let lifetime = 60 * 86_400
    private static let keys = [
        "app_id", "name", "config_version", "location", "provider_region", "deployment_model", "environment", "environments", "security",
        "hosting", "custom_user_data_config", "sync", "allowed_request_origins", "features",
    ]

    func read() -> Main {
        guard let node = AppFiles.anyMain.lazy.compactMap({ trees[$0] }).first else {
            // A file that is not JSON already has its problem.
            if !AppFiles.anyMain.contains(where: paths.contains) {
                list.add(
                    .configMissing, file: AppFiles.main[0], "The file that names the app is missing.",
                    fix: "Add it with at least {\"app_id\": \"…\"}, or name the directory that has it.")
            }
            return Main()
        }
        let members = node.members(allowing: Self.keys)
        let id = id(beside: node) ?? ""
        return Main(
            id: id, name: members["name"]?.string ?? id, environment: members["environment"]?.string ?? "",
            refreshTokenLifetime: members["security"].map(refreshTokenLifetime) ?? Self.lifetime)
    }

    /// Returns the app id: of the command line, of a main file, or of the record of App Services' CLI.
    private func id(beside node: ConfigNode) -> String? {
        if let appID {
            guard !Self.isID(appID) else { return appID }
            list.add(.configInvalid, file: "--app-id", "The app id '\(appID)' is not a name.", fix: Self.fix)
            return nil
        }
        for file in AppFiles.anyMain {
            guard let found = trees[file]?.child("app_id"), found.json != .null else { continue }
            guard let id = found.string else { return nil }
            if Self.isID(id) { return id }
            found.problem("The app id '\(id)' is not a name.", fix: "\(Self.fix) Or pass --app-id.")
            return nil
        }
        if let id = trees[AppFiles.meta]?.json["client_app_id"]?.string, Self.isID(id) { return id }
        node.problem(
            "'app_id' is missing, and \(AppFiles.meta) has no 'client_app_id'.",
            fix: "Pass --app-id, or add \"app_id\": \"the id that the apps are built with\".", code: .configMissing)
        return nil
    }

    private static let fix = "Use letters, digits, '-' and '_' only."

    private static func isID(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 == 45 || $0 == 95 || (48...57).contains($0) || (97...122).contains($0 | 32) }
    }

    /// Returns the lifetime of refresh tokens in seconds: 30 minutes to 5 years, 60 days by default.
    private func refreshTokenLifetime(_ security: ConfigNode) -> Int {
        let members = security.members(allowing: ["refresh_token_expiration", "allowed_request_origins"])
        guard let node = members["refresh_token_expiration"], let seconds = node.int else { return Self.lifetime }
        if !(1_800...157_680_000).contains(seconds) {
            node.problem(
                "\(seconds) seconds is not a valid lifetime of a refresh token.", fix: "Give 1800 (30 minutes) to 157680000 (5 years).")
        }
        return Int(seconds)
    }
}
