import Foundation
import GatewayTestSupport
import NIOCore
import NIOPosix
import NIOSSL
import SluiceGateway
import SluiceSDK
import TestSupport
import Testing

/// A gateway behind a proxy that ends TLS, as docs/operations.md has it, and apps that know the proxy alone.
@Suite(.timeLimit(.minutes(5))) struct `An app over TLS` {
    private static var files: [String: String] {
        var files = NoteApp.files([:])
        files["sync/config.json"] = """
            {
                "type": "flexible", "state": "enabled", "service_name": "postgres", "database_name": "public",
                "queryable_fields_names": ["shard"]
            }
            """
        files[ShopApp.table("registers", "schema")] = """
            {
                "title": "Register", "bsonType": "object", "required": ["_id", "shard", "value"],
                "properties": { "_id": { "bsonType": "long" }, "shard": { "bsonType": "string" }, "value": { "bsonType": "long" } }
            }
            """
        files[ShopApp.table("registers", "rules")] =
            #"{ "database": "public", "collection": "registers", "roles": [\#(NoteApp.role("everybody"))] }"#
        return files
    }

    private static let table = """
        CREATE TABLE registers (_id bigint PRIMARY KEY, shard text NOT NULL, value bigint NOT NULL);
        INSERT INTO registers SELECT i, 'shard ' || i, 0 FROM generate_series(0, 9) i;
        """

    private static func run(_ body: @escaping @Sendable (RunningGateway, TLSProxy) async throws -> Void) async throws {
        try await RunningGateway.deploy(table) { deployment in
            try await deployment.run(files) { gateway in
                try await TLSProxy.with(gateway.port) { try await body(gateway, $0) }
            }
        }
    }

    @Test func `a certificate that is not trusted is an error of the login`() async throws {
        try await Self.run { gateway, proxy in
            let folder = try Phone.Folder()
            let app = App(id: gateway.app, configuration: AppConfiguration(baseURL: proxy.url, storageDirectory: folder.url))
            let error = await #expect(throws: AppError.self) { try await app.login(credentials: .anonymous) }
            #expect(error?.code == .httpRequestFailed && error?.message.contains(proxy.url) == true, "\(String(describing: error))")
            #expect(error?.message.contains("certificate") == true, "\(String(describing: error))")
            #expect(app.currentUser == nil)
        }
    }

    @Test func `a certificate that is not trusted is a failed handshake of sync`() async throws {
        try await Self.run { gateway, proxy in
            let folder = try Phone.Folder()
            let app = { (url: String) in
                App(id: gateway.app, configuration: AppConfiguration(baseURL: url, storageDirectory: folder.url))
            }
            _ = try await app(gateway.url).login(credentials: .anonymous)
            // The device knows the user from an earlier run, when it went to another address.
            let later = app(proxy.url)
            let (errors, heard) = AsyncStream<any Error>.makeStream(bufferingPolicy: .bufferingOldest(8))
            later.syncManager.errorHandler = { error, _ in heard.yield(error) }
            var configuration = try #require(later.currentUser).flexibleSyncConfiguration(cancelAsyncOpenOnNonFatalErrors: true)
            configuration.objectTypes = [Order.self, Tag.self]
            let impatient = configuration
            let failure = await #expect(throws: SyncError.self) {
                _ = try await Realm(configuration: impatient, downloadBeforeOpen: .always)
            }
            #expect(failure?.code == .tlsHandshakeFailed, "\(String(describing: failure))")
            #expect(failure?.message.contains("localhost:\(proxy.port)") == true, "\(String(describing: failure))")
            for await error in errors {
                let bridged = error as NSError
                #expect(bridged.domain == "io.realm.sync" && bridged.code == 13)
                break
            }
        }
    }

    /// The roots that a machine trusts, in the place where Debian has them, are those of the app's process alone.
    private static func trusting(_ file: String, _ command: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        let script = #"mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@""#
        process.arguments = ["--map-root-user", "--mount", "sh", "-c", script, file] + command
        return process
    }

    /// Whether this machine lets a test have roots of its own.
    private static let canTrust: Bool = {
        let roots = "/etc/ssl/certs/ca-certificates.crt"
        guard FileManager.default.fileExists(atPath: roots) else { return false }
        let process = trusting(roots, ["true"])
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    @Test(.enabled(if: canTrust, "needs user namespaces"))
    func `where the machine trusts the certificate, an app logs in by https and syncs by wss`() async throws {
        try await Self.run { gateway, proxy in
            let folder = try Phone.Folder()
            let control = { (text: String) in try folder.put(text, at: "control") }
            try control("run")
            let device = Self.trusting(
                proxy.certificate, [Built.folder + "/register-client", folder.url.path, proxy.url, gateway.app, "1", "20"])
            let output = Pipe()
            device.standardOutput = output
            try device.run()
            defer { device.terminate() }
            // What the device writes comes to the tables.
            #expect(try await gateway.eventually("SELECT count(*) FROM registers WHERE value = 0", is: 0))
            // It writes no more from here on, so that what the table gets stays there.
            try control("upload")
            let reader = output.fileHandleForReading
            var said = try await LocalSocket.onThread {
                var said = ""
                while !said.contains("uploaded"), case let next = reader.availableData, !next.isEmpty {
                    said += String(decoding: next, as: UTF8.self)
                }
                return said
            }
            try await gateway.sql("UPDATE registers SET value = -7 WHERE _id = 3")
            try control("download")
            said += try await LocalSocket.onThread { String(decoding: reader.readDataToEndOfFile(), as: UTF8.self) }
            device.waitUntilExit()
            #expect(device.terminationStatus == 0)
            let state = try #require(said.split(separator: "\n").last { $0.hasPrefix("state ") }, "\(said)")
            #expect(state.split(separator: " ").dropFirst().count == 10 && state.split(separator: " ")[4] == "-7", "\(state)")
        }
    }
}
