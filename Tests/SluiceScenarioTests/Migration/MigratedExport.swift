import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// An export of App Services with its dump and its users, and its way to a gateway.
struct MigratedExport: Sendable {
    /// The files of the app directory.
    var files: [String: String]
    /// The documents by collection, `db.coll`.
    var documents: [String: [[String: Value]]]
    /// The users as the Admin API lists them.
    var users: [JSON]
    /// `true` if the export has partition-based sync.
    var isPartitioned = false
    /// `true` if the export has no class.
    var isWithoutClasses = false

    /// The app at its gateway.
    struct Moved: Sendable {
        let gateway: RunningGateway
        let schema: Schema
        let report: UserMigrationReport
        /// The lines of the credential file.
        let credentials: [JSON]
    }

    /// Takes all steps of the migration, and runs a gateway.
    func move(_ body: @escaping @Sendable (Moved) async throws -> Void) async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("moved-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: root) }
        try write(to: root)
        try await prepare(root)
        let app = try await ExportCheck.configuration(at: "\(root)/app", appID: nil)
        try await RunningGateway.deploy("SELECT") { deployment in
            _ = try await SchemaMigration(app: app, postgres: deployment.conninfo).apply()
            let data = try DataMigration(
                app: app, postgres: deployment.conninfo,
                options: .init(sources: ["\(root)/dump"], quarantine: "\(root)/quarantine", isSilent: true))
            let outcomes = try await data.run()
            #expect(outcomes.count == documents.count && outcomes.allSatisfy(\.isWhole), "\(outcomes.map(\.text))")
            let credentials = "\(root)/credentials.ndjson"
            let users = try UserMigration(
                app: app, postgres: deployment.conninfo,
                options: .init(sources: ["\(root)/users-1.json", "\(root)/users-2.json"], credentials: credentials))
            let report = try await users.run(now: SystemEnvironment().wallMilliseconds())
            #expect(report.isWhole && report.created == self.users.count, "\(report.text)")
            let lines = (try? String(contentsOfFile: credentials, encoding: .utf8))?.split(separator: "\n") ?? []
            let secrets = try lines.map { try JSON.parse(String($0)) }
            try await deployment.run(try AppDirectory.files(at: "\(root)/app")) { gateway in
                try await body(Moved(gateway: gateway, schema: app.schema, report: report, credentials: secrets))
            }
        }
    }

    private func write(to root: String) throws {
        for (path, text) in files { try Self.put(Array(text.utf8), "\(root)/app/\(path)") }
        for (name, all) in documents {
            let bytes = all.map { BSONWriter.document($0) }.joined()
            try Self.put(Array(bytes), "\(root)/dump/\(name.replacingOccurrences(of: ".", with: "/")).bson")
        }
        // Two pages, as the Admin API gives them.
        for (number, page) in [users.prefix(users.count / 2), users.suffix(users.count - users.count / 2)].enumerated() {
            try Self.put(Array(JSON.array(Array(page)).text.utf8), "\(root)/users-\(number + 1).json")
        }
    }

    static func put(_ bytes: [UInt8], _ path: String) throws {
        let url = URL(fileURLWithPath: path)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: url)
    }

    /// Corrects the export as `sluice migrate check` says.
    private func prepare(_ root: String) async throws {
        let app = "\(root)/app"
        if isPartitioned {
            let before = try await ExportCheck.report(at: app, appID: nil)
            #expect(!before.runs && before.text.contains("sluice migrate partitions"), "\(before.text)")
            let partitions = try PartitionMigration(at: app)
            #expect(partitions.denied.isEmpty, "\(partitions.denied)")
            try partitions.write(to: nil)
        }
        if isWithoutClasses {
            let before = try await ExportCheck.report(at: app, appID: nil)
            #expect(!before.runs && before.text.contains("The export has no class"), "\(before.text)")
            try SchemaProposal(at: app, options: .init(sources: ["\(root)/dump"])).write()
        }
        let report = try await ExportCheck.report(at: app, appID: nil)
        // The class of custom user data has no partition key, so that nobody has had its objects.
        #expect(report.runs && report.additions.allSatisfy { isPartitioned && $0.text.contains("Person") }, "\(report.text)")
    }

    // MARK: Parts of exports

    /// The settings of an app that every style has.
    static func files(_ name: String, sync: String, providers: [String] = ["local-userpass"]) -> [String: String] {
        let entries = providers.map { #""\#($0)": { "name": "\#($0)", "type": "\#($0)", "disabled": false }"# }
        return [
            "realm_config.json": #"{ "app_id": "\#(name)", "name": "\#(name)", "config_version": 20210101 }"#,
            "auth/providers.json": "{ \(entries.joined(separator: ", ")) }", "sync/config.json": sync,
            "data_sources/m/config.json": #"{ "name": "m", "type": "mongodb-atlas", "config": { "clusterName": "c" }, "version": 1 }"#,
        ]
    }

    static func rules(_ roles: String) -> String { #"{ "roles": [\#(roles)] }"# }

    static func role(_ name: String, when: String = "{}", read: String, write: String) -> String {
        """
        { "name": "\(name)", "apply_when": \(when), "document_filters": { "read": \(read), "write": \(write) },
          "read": true, "write": true, "insert": true, "delete": true, "search": true }
        """
    }

    /// A user of the e-mail provider.
    static func user(_ id: String, _ email: String, customData: JSON? = nil, isDisabled: Bool = false) -> JSON {
        let identity: JSON = [
            "id": .string(String(id.reversed())), "provider_type": "local-userpass", "provider_id": "64aa00000000000000000001",
            "provider_data": ["email": .string(email)],
        ]
        var members: [JSON.Member] = [
            .init("_id", .string(id)), .init("identities", [identity]), .init("type", "normal"), .init("creation_date", 1_650_000_000),
            .init("last_authentication_date", 1_660_000_000), .init("disabled", .bool(isDisabled)),
            .init("data", ["email": .string(email)]),
        ]
        if let customData { members.append(.init("custom_data", customData)) }
        return .object(members)
    }
}

extension MigratedExport.Moved {
    /// Sets the password of a migrated user by the link in the credential file, and logs in.
    ///
    /// - Returns: The access token.
    func logIn(_ id: String, _ email: String) async throws -> String {
        let line = try #require(credentials.first { $0["kind"] == "password" && $0["subject"]?.string == id })
        #expect(try await gateway.login(email).status == 401, "a user without a password logged in")
        let body: JSON = ["tokenId": line["tokenId"] ?? .null, "token": line["token"] ?? .null, "password": "password"]
        let reset = try await gateway.request(
            "POST", "/api/client/v2.0/app/\(gateway.app)/auth/providers/local-userpass/reset", body.text)
        #expect(reset.status == 200, "\(reset)")
        let login = try await gateway.login(email)
        #expect(login.json["user_id"]?.string == id, "\(login)")
        return try #require(login.json["access_token"]?.string)
    }

    /// A session of a migrated user that shows all that they may see of some classes.
    ///
    /// - Parameter query: The subscription of each class.
    func session(_ token: String, _ types: [String], _ query: String = "TRUEPREDICATE") async throws -> TestSession {
        let session = try await gateway.session(token: token)
        try await session.hello(schema)
        try await session.subscribe(1, types.map { ($0, query) })
        return session
    }
}
