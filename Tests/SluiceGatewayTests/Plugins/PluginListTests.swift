import Crypto
import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluicePluginHost
import SluiceTools
import SluiceValues
import Testing

@testable import SluiceGateway

/// `plugins.json`: which plugins an app has, and that nothing else is loaded.
@Suite struct `The list of plugins` {
    private static func problems(_ list: String) -> [ConfigProblem] {
        AppFixture.problems(of: ShopApp.files.merging(["plugins.json": list]) { $1 })
    }

    private static let digest = String(repeating: "a", count: 64)

    // MARK: Reading

    @Test func `says with file, line and a suggestion what it does not know`() {
        let found = Self.problems(
            """
            {
                "plugins": [{ "file": "plugins/x.so", "sha256": "\(Self.digest)",
                    "confg": {} }]
            }
            """)
        #expect(found.map(\.code) == [.configUnknownKey])
        #expect(found.first?.place == "plugins.json:3:9" && found.first?.fix == "Did you mean 'config'?")
    }

    @Test(arguments: [
        (#"{ "file": "plugins/x.so" }"#, ErrorCode.configMissing), (#"{ "file": "a/../x.so", "sha256": "DIGEST" }"#, .configInvalid),
        (#"{ "file": "plugins/x.so", "sha256": "ab" }"#, .configInvalid),
        (#"{ "file": "plugins/x.so", "sha256": "DIGEST", "signature": "ab" }"#, .configInvalid),
        (#"{ "file": "plugins/x.so", "sha256": "DIGEST", "deadline_ms": 0 }"#, .configInvalid),
        (#"{ "file": "plugins/x.so", "sha256": "DIGEST", "deadline_ms": { "check_write": 60001 } }"#, .configInvalid),
        (#"{ "file": "plugins/x.so", "sha256": "DIGEST", "deadline_ms": { "configure": 5 } }"#, .configUnknownKey),
        (#"{ "sha256": "DIGEST" }"#, .configMissing),
    ])
    func `refuses an entry that cannot be meant`(entry: String, code: ErrorCode) {
        let found = Self.problems(#"{ "plugins": [\#(entry.replacingOccurrences(of: "DIGEST", with: Self.digest))] }"#)
        #expect(found.map(\.code) == [code])
    }

    @Test func `has settings for each plugin, in the order of the chain`() throws {
        let list = """
            { "plugins": [
                { "file": "libWeatherIngest.so", "config": { "a": 1 }, "in_process": true, "deadline_ms": 50, "memory_mb": 64 },
                { "file": "plugins/x.so", "sha256": "\(Self.digest.uppercased())", "deadline_ms": { "open_session": 50, "check_write": 5 } }
            ] }
            """
        let plugins = try ShopApp.configuration(files: ["plugins.json": list]).plugins
        #expect(plugins.map(\.file) == ["libWeatherIngest.so", "plugins/x.so"])
        #expect(plugins[0].isShipped && plugins[0].isInProcess && plugins[0].deadline == 50_000_000 && plugins[0].memoryBytes == 64 << 20)
        #expect(plugins[1].sha256 == Self.digest && plugins[1].config == .null && !plugins[1].isInProcess)
        #expect(plugins[1].deadline == nil && plugins[1].deadlines == [.openSession: 50_000_000, .checkWrite: 5_000_000])
    }

    // MARK: Loading

    private static func start(
        _ folder: Phone.Folder, keys: [PluginKey] = [], files: [String] = [], isDevelopment: Bool = false, logger: Logger? = nil
    ) async throws {
        for (path, text) in ShopApp.files {
            let file = folder.url.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        try await RunningGateway.deploy { deployment in
            let configuration = GatewayConfiguration(
                app: try AppConfiguration.load(folder.url.path), directory: folder.url.path, postgres: deployment.conninfo, kafka: nil,
                network: .init(port: 0, adminPort: 0), plugins: .init(files: files, keys: keys), isDevelopment: isDevelopment)
            try await RunningGateway.run(configuration, logger: logger) { _ in }
        }
    }

    private static func failure(_ body: () async throws -> Void) async -> SluiceError? {
        do { try await body() } catch { return error as? SluiceError }
        return nil
    }

    @Test func `has what 'sluice plugin add' wrote loaded, until a byte of the file is another`() async throws {
        let folder = try Phone.Folder()
        var list = try PluginList(of: folder.url.path)
        let entry = try list.add(Built.plugin("DenyAllC"), config: ["allow": ["Order"]])
        #expect(entry["file"] == "plugins/DenyAllC/libDenyAllC.so")
        try await Self.start(folder)
        let file = folder.url.appendingPathComponent("plugins/DenyAllC/libDenyAllC.so")
        try (try Data(contentsOf: file) + [0]).write(to: file)
        let error = await Self.failure { try await Self.start(folder) }
        #expect(
            error?.code == .pluginAltered && error?.message.contains("libDenyAllC.so has the SHA-256") == true,
            "\(String(describing: error))")
        // Whoever develops plugins builds them every minute.
        let log = LinesOfLog()
        try await Self.start(folder, isDevelopment: true, logger: Logger(label: "test") { _ in log })
        #expect(log.lines.contains { $0.level == .warning && $0.message.hasPrefix("A plugin differs from its list entry") })
    }

    @Test func `keeps a plugin out that is only named beside it, save in development`() async throws {
        let folder = try Phone.Folder()
        let error = await Self.failure { try await Self.start(folder, files: [Built.plugin("DenyAllC")]) }
        #expect(error?.code == .pluginUnlisted && error?.fix?.contains("sluice plugin add") == true)
        let log = LinesOfLog()
        try await Self.start(folder, files: [Built.plugin("DenyAllC")], isDevelopment: true, logger: Logger(label: "test") { _ in log })
        #expect(log.lines.contains { $0.level == .warning && $0.message.hasPrefix("A plugin is not listed") })
    }

    @Test(arguments: ["AppServicesRules-demo/libAuditTrail.so", "plugins/libAuditTrail.so"])
    func `takes none but the plugin for roles for it, whatever the folder is called`(place: String) async throws {
        let folder = try Phone.Folder()
        let file = folder.url.appendingPathComponent(place)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: Built.plugin("AuditTrail"), toPath: file.path)
        try await RunningGateway.with(plugins: [file.path]) { gateway in
            let answer = try await gateway.request("GET", "/admin/v1/plugins", admin: true)
            let names = answer.json["generations"]?.array?.first?["plugins"]?.array?.compactMap { $0["name"]?.string }
            #expect(names == ["AppServicesRules", "AuditTrail"], "\(answer)")
        }
    }

    @Test func `opens nothing to anybody by a plugin that only takes away`() async throws {
        let plugins = [
            "AuditTrail": "{}", "RateLimits": #"{ "types": { "Order": { "writes_per_minute": 5 } } }"#,
            "FieldRedaction": #"{ "hide": {} }"#,
            "FreezeC": "{}",
        ]
        for (plugin, config) in plugins {
            let list = #"{ "plugins": [{ "file": "lib\#(plugin).so", "config": \#(config) }] }"#
            try await RunningGateway.with(files: FaultyApp.files.merging(["plugins.json": list]) { $1 }) { gateway in
                try await gateway.sql("INSERT INTO orders (_id, store, title, size) VALUES ('a', 'north', 'x', 1)")
                let session = try await gateway.openSession(["Order"])
                try await session.subscribe(1, [("Order", "store == 'north'")])
                #expect(session.keys("Order").isEmpty, "\(plugin)")
                session.close()
            }
        }
    }

    @Test func `needs the signature of a key when the gateway has keys`() async throws {
        let folder = try Phone.Folder()
        let (ours, theirs) = (Curve25519.Signing.PrivateKey(), Curve25519.Signing.PrivateKey())
        let key = try PluginKey(ours.publicKey.rawRepresentation.base64EncodedString())
        var list = try PluginList(of: folder.url.path)
        _ = try list.add(Built.plugin("DenyAllC"))
        var error = await Self.failure { try await Self.start(folder, keys: [key]) }
        #expect(error?.code == .pluginAltered && error?.message.contains("without a signature") == true)
        _ = try list.add(Built.plugin("DenyAllC"), signedWith: theirs.rawRepresentation.base64EncodedString())
        error = await Self.failure { try await Self.start(folder, keys: [key]) }
        #expect(error?.code == .pluginAltered && error?.message.contains("none of the keys") == true)
        _ = try list.add(Built.plugin("DenyAllC"), signedWith: ours.rawRepresentation.base64EncodedString())
        try await Self.start(folder, keys: [key])
    }

    @Test(arguments: [
        #""in_process": true"#, #""config": { "allow": ["Order", "Tag"] }"#, #""config": { "allow": [] }"#, #""memory_mb": 2048"#,
        #""deadline_ms": 60000"#, #""deadline_ms": { "check_write": 60000 }"#, #""file": "plugins/DenyAllC/../DenyAllC/libDenyAllC.so""#,
        #""file": "plugins/Other/libDenyAllC.so""#,
    ])
    func `a signature does not hold for other settings than those that were signed`(setting: String) throws {
        let folder = try Phone.Folder()
        let ours = Curve25519.Signing.PrivateKey()
        let keys = [try PluginKey(ours.publicKey.rawRepresentation.base64EncodedString())]
        var list = try PluginList(of: folder.url.path)
        let entry = try list.add(
            Built.plugin("DenyAllC"), signedWith: ours.rawRepresentation.base64EncodedString(), config: ["allow": ["Order"], "b": 1])
        let file = try PluginFile(Built.plugin("DenyAllC"))
        func check(_ entry: JSON) throws { try file.check(try #require(Self.listed(entry)), keys: keys) }
        try check(entry)
        let changed = try #require(try JSON.parse(Array("{\(setting)}".utf8)).members?.first)
        var members = try #require(entry.members).filter { $0.key != changed.key }
        members.append(changed)
        // The reader rejects a path that leads upwards by itself.
        if Self.listed(.object(members)) == nil { return }
        let error = #expect(throws: SluiceError.self) { try check(.object(members)) }
        #expect(error?.code == .pluginAltered && error?.message.contains("other settings") == true, "\(String(describing: error))")
    }

    @Test func `a signature holds whatever the order of the settings`() throws {
        let folder = try Phone.Folder()
        let ours = Curve25519.Signing.PrivateKey()
        var list = try PluginList(of: folder.url.path)
        let entry = try list.add(
            Built.plugin("DenyAllC"), signedWith: ours.rawRepresentation.base64EncodedString(), config: ["a": 1, "b": ["c": 2, "d": 3]])
        var members = try #require(entry.members).filter { $0.key != "config" }
        members.insert(JSON.Member("config", ["b": ["d": 3, "c": 2], "a": 1]), at: 0)
        let keys = [try PluginKey(ours.publicKey.rawRepresentation.base64EncodedString())]
        try PluginFile(Built.plugin("DenyAllC")).check(try #require(Self.listed(.object(members))), keys: keys)
    }

    /// Reads an entry; nil for one with problems.
    private static func listed(_ entry: JSON) -> AppConfiguration.ListedPlugin? {
        let problems = ProblemList()
        let plugins = PluginListReader(list: problems).read(ConfigNode(file: "plugins.json", json: ["plugins": [entry]], list: problems))
        return problems.problems.isEmpty ? plugins.first : nil
    }

    @Test func `takes keys and signatures as OpenSSL writes them`() throws {
        let folder = try Phone.Folder()
        let openssl = Process()
        openssl.executableURL = URL(fileURLWithPath: "/bin/sh")
        openssl.arguments = ["-ec", "openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out public.pem"]
        openssl.currentDirectoryURL = folder.url
        try openssl.run()
        openssl.waitUntilExit()
        let text = { try String(contentsOf: folder.url.appendingPathComponent($0), encoding: .utf8) }
        _ = try PluginKey(try text("public.pem"))
        var list = try PluginList(of: folder.url.path)
        let entry = try list.add(Built.plugin("DenyAllC"), signedWith: try text("key.pem"))
        #expect(entry["signature"]?.string.flatMap { Data(base64Encoded: $0) }?.count == 64)
        #expect(throws: SluiceError.self) { try PluginKey("no key") }
        #expect(throws: SluiceError.self) { try list.add(Built.plugin("DenyAllC"), signedWith: try text("public.pem")) }
    }

    // MARK: Configuration

    @Test(arguments: [
        (#"{ "alow": ["Order"] }"#, ErrorCode.configUnknownKey, "'alow' is not a known key of 'config'"),
        (#"{ "allow": "Order" }"#, .configInvalid, "'config.allow' must be a list"),
    ])
    func `has a mistake in a plugin's configuration named with its line`(config: String, code: ErrorCode, words: String) async throws {
        let folder = try Phone.Folder()
        var list = try PluginList(of: folder.url.path)
        _ = try list.add(Built.plugin("DenyAllC"), config: try JSON.parse(Array(config.utf8)))
        let error = await Self.failure { try await Self.start(folder) }
        #expect(error?.code == code && error?.message.contains(words) == true, "\(String(describing: error))")
        #expect(error?.message.hasPrefix("plugins.json:7:") == true, "\(String(describing: error))")
        if code == .configUnknownKey { #expect(error?.fix == "Did you mean 'allow'?") }
    }

    @Test func `has a plugin that does not keep to the interface refused at the start`() async throws {
        let folder = try Phone.Folder()
        var list = try PluginList(of: folder.url.path)
        _ = try list.add(Built.plugin("FaultyC"), config: ["word": "configured-to-misspell"])
        let error = await Self.failure { try await Self.start(folder) }
        #expect(error?.code == .pluginUnfit && error?.message.contains("open_session") == true, "\(String(describing: error))")
    }

    @Test func `has a plugin that ends over its configuration refused at the start`() async throws {
        let folder = try Phone.Folder()
        var list = try PluginList(of: folder.url.path)
        _ = try list.add(Built.plugin("FaultyC"), config: ["word": "do-crash"])
        let error = await Self.failure { try await Self.start(folder) }
        #expect(error?.code == .pluginCrashed && error?.message.contains("libFaultyC.so") == true, "\(String(describing: error))")
    }
}
