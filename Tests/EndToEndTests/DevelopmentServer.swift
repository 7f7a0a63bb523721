import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif
#if canImport(Glibc)
    import Glibc
#endif

/// `sluice dev --json` as a process, with a data folder of its own.
struct DevelopmentServer {
    let program: Program
    /// Kept as long as the server.
    let folder: DataFolder
    let url: String
    let adminURL: String
    let appID: String
    let postgres: String
    let users: [(email: String, password: String)]
    let ready: JSON

    /// Waits until it is ready.
    static func start(_ folder: DataFolder, _ arguments: [String] = []) async throws -> DevelopmentServer {
        let program = try launch(folder, arguments)
        let line = try #require(await program.line(), "sluice dev did not get ready: \(program.said)")
        let ready = try JSON.parse(line)
        return DevelopmentServer(
            program: program, folder: folder, url: try #require(ready["url"]?.string), adminURL: try #require(ready["admin_url"]?.string),
            appID: try #require(ready["app_id"]?.string), postgres: try #require(ready["postgres"]?.string),
            users: (ready["users"]?.array ?? []).compactMap { user in
                user["email"]?.string.flatMap { email in user["password"]?.string.map { (email, $0) } }
            }, ready: ready)
    }

    static func launch(_ folder: DataFolder, _ arguments: [String] = []) throws -> Program {
        try Program("sluice", ["dev", "--json", "--port", "0", "--admin-port", "0", "--data-dir", folder.path] + arguments)
    }

    /// Asks it to end, and waits.
    func stop() async -> Program.Ending {
        program.signal(SIGTERM)
        return await program.end()
    }

    func sql(_ text: String) async throws -> PostgresResult {
        let connection = try await PostgresConnection.connect(postgres)
        let result = try await connection.query(text)
        await connection.close()
        return result
    }

    /// An access token of one of the users.
    func token(_ user: Int = 0) async throws -> String {
        let account = users[user]
        var request = URLRequest(
            url: try #require(URL(string: "\(url)/api/client/v2.0/app/\(appID)/auth/providers/local-userpass/login")))
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = Data(#"{"username":"\#(account.email)","password":"\#(account.password)"}"#.utf8)
        let (data, _) = try await URLSession.shared.data(for: request)
        return try #require(try JSON.parse(Array(data))["access_token"]?.string)
    }
}

/// A folder that an unprivileged server may use, removed with its owner.
final class DataFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-e2e-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// A copy of the airport's app directory, so that it may be changed. A broker that others use too wants a name of its own.
    func app(named name: String = "airport-ops") throws -> (path: String, name: String) {
        let original = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Examples/AirportOps/app")
        let copy = path + "/app"
        try FileManager.default.copyItem(atPath: original.standardized.path, toPath: copy)
        let main = copy + "/realm_config.json"
        try String(contentsOfFile: main, encoding: .utf8).replacingOccurrences(of: #""airport-ops""#, with: "\"\(name)\"")
            .write(toFile: main, atomically: true, encoding: .utf8)
        return (copy, name)
    }

    /// The private server's process; nil while there is none.
    var serverIdentifier: Int32? {
        (try? String(contentsOfFile: "\(path)/postgres/data/postmaster.pid", encoding: .utf8))?
            .split(separator: "\n").first.flatMap { Int32($0.trimmingCharacters(in: .whitespaces)) }
    }

    /// Every process that has this folder in its command line: the server, initdb, and what they start.
    var processes: [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.compactMap { name in
            guard Int32(name) != nil, let data = FileManager.default.contents(atPath: "/proc/\(name)/cmdline") else { return nil }
            let text = String(decoding: data, as: UTF8.self).replacingOccurrences(of: "\0", with: " ")
            return text.contains(path) ? "\(name): \(text)" : nil
        }
    }
}

/// Whether nobody listens on the port.
func isFree(port: Int) -> Bool { (try? LocalSocket(port: port)) == nil }
