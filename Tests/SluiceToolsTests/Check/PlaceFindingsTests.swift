import Foundation
import SluiceCore
import SluiceGateway
import SluiceNet
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// The judgement of ports, certificates and files by `sluice check`, and its report.
struct PlaceFindingsTests {
    private static let taken = SluiceError(.portInUse, "Port 8090 of 127.0.0.1 is in use by another program.", fix: "Stop that program.")

    private static func port(
        _ problem: SluiceError?, _ gateway: String? = nil, host: String = "127.0.0.1", port: Int = 8090, option: String = "--port"
    ) -> NetworkFindings.Port {
        .init(host: host, port: port, option: option, problem: problem, gateway: gateway)
    }

    @Test func `a port is an error unless it is free or a gateway of the app serves it`() {
        #expect(NetworkFindings(ports: [Self.port(nil)], now: 0).findings == [])
        let error = NetworkFindings(ports: [Self.port(Self.taken)], now: 0).findings
        #expect(error.map(\.severity) == [.error] && error.first?.commands == ["ss -ltnp 'sport = :8090'"])
        let other = NetworkFindings(ports: [Self.port(Self.taken, "other")], app: "app", now: 0).findings
        #expect(other.map(\.message) == ["A gateway of the app other serves port 8090 of 127.0.0.1."])
        #expect(other.map(\.severity) == [.error])
        #expect(NetworkFindings(ports: [Self.port(Self.taken, "app")], app: "app", now: 0).findings.map(\.severity) == [.note])
    }

    @Test(
        arguments: [
            ("127.0.0.1", 9000, "127.0.0.1", 9000, true), ("0.0.0.0", 9000, "127.0.0.1", 9000, true),
            ("127.0.0.1", 9000, "::", 9000, true), ("127.0.0.1", 9000, "127.0.0.2", 9000, false),
            ("127.0.0.1", 9000, "127.0.0.1", 9001, false), ("127.0.0.1", 0, "127.0.0.1", 0, false),
        ])
    func `two ports of one number and address are an error, though each is free`(
        host: String, port: Int, otherHost: String, otherPort: Int, isError: Bool
    ) {
        let ports = [
            Self.port(nil, host: host, port: port), Self.port(nil, host: otherHost, port: otherPort, option: "--admin-port"),
        ]
        let found = NetworkFindings(ports: ports, now: 0).findings
        #expect(found.map(\.message) == (isError ? ["--port and --admin-port are both 9000."] : []))
        #expect(found.allSatisfy { $0.severity == .error })
    }

    /// A server that gives every request the same answer.
    private static func answering(_ json: String, _ body: (Int) async throws -> Void) async throws {
        let server = try AnsweringServer("HTTP/1.1 200 OK\r\nContent-Length: \(json.utf8.count)\r\nConnection: close\r\n\r\n\(json)")
        defer { server.close() }
        try await body(server.port)
    }

    @Test(
        arguments: [
            (#"{"status":"ok"}"#, "error"), (#"{"status":"ok","app":"other"}"#, "error"), (#"{"status":"ok","app":"mine"}"#, "note"),
            ("hello", "error"),
        ])
    func `a program on the port is the app's gateway only if it says so`(answer: String, severity: String) async throws {
        try await Self.answering(answer) { port in
            var options = GatewayCheck.Options(directory: "/nowhere")
            options.appID = "mine"
            options.network = .init(port: port, adminPort: 0)
            let found = await GatewayCheck(options).run().findings.filter { $0.area == .network }
            #expect(found.map(\.severity.rawValue) == [severity], "\(found)")
        }
    }

    @Test func `an admin port that others reach needs a token`() {
        let missing = SluiceError(.adminTokenMissing, "The admin port would listen on 0.0.0.0, which is not the loopback, without a token.")
        #expect(NetworkFindings(ports: [], adminToken: missing, now: 0).findings.map(\.severity) == [.error])
    }

    @Test(
        arguments: [
            (.none, []), (.plain(url: "http://a"), [.warning]), (.valid(place: "https://a", until: 14 * 86_400), []),
            (.valid(place: "https://a", until: 14 * 86_400 - 1), [.warning]),
            (.refused(place: "https://a", SluiceError(.connectionFailed, "no")), [.warning]),
        ] as [(NetworkFindings.Certificate, [CheckFinding.Severity])])
    func `a public address needs a certificate that stays valid`(
        certificate: NetworkFindings.Certificate, severities: [CheckFinding.Severity]
    ) {
        #expect(NetworkFindings(ports: [], certificate: certificate, now: 0).findings.map(\.severity) == severities)
    }

    /// A gateway with files that cannot be used does not start.
    @Test func `the certificate of the client port is read, and its key is for its owner`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-check-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (chain, key) = (folder.appendingPathComponent("chain.pem").path, folder.appendingPathComponent("key.pem").path)
        try Data(TestCertificate.certificate.utf8).write(to: URL(fileURLWithPath: chain))
        try Data(TestCertificate.strangerKey.utf8).write(to: URL(fileURLWithPath: key))
        var options = GatewayCheck.Options(directory: folder.path)
        options.network = .init(port: 0, adminPort: 0, tls: TLSFiles(certificateChain: chain, privateKey: key))
        options.secretFiles = [("--tls-key", key)]
        func found() async -> [String] {
            let findings = await GatewayCheck(options).run().findings.filter { [.network, .files].contains($0.area) }
            return findings.map { "\($0.severity) \($0.subject)" }.sorted()
        }
        #expect(await found() == ["error --tls-certificate \(chain)", "warning \(key)"])
        try Data(TestCertificate.key.utf8).write(to: URL(fileURLWithPath: key))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        #expect(await found() == [])
        let soon = NetworkFindings(ports: [], ownCertificate: .valid(place: chain, until: 13 * 86_400), now: 0).findings
        #expect(soon.map(\.severity) == [.warning] && soon.first?.message.contains("13 days") == true)
    }

    @Test func `a file with secrets is for its owner, and --fix makes it so`() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-secret-\(UUID())").path
        try "secret".write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        func findings() -> [CheckFinding] {
            FileFindings([.init(lookingAt: path, option: "--kafka-config", use: .secret)]).findings
        }
        let open = findings()
        #expect(open.map(\.severity) == [.warning] && open.first?.commands == ["chmod 600 \(path)"])
        #expect(await CheckRepairs(postgres: nil).make(open) == [])
        #expect(findings() == [])
        // A missing file is the error of the option that names it.
        #expect(FileFindings([.init(lookingAt: path + "x", option: "--kafka-config", use: .secret)]).findings == [])
    }

    @Test func `a folder that is missing is made, with those above it`() async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-folder-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: root) }
        let path = root + "/a/b"
        func findings() -> [CheckFinding] { FileFindings([.init(lookingAt: path, option: "--admin-socket", use: .folder)]).findings }
        #expect(findings().map(\.severity) == [.error])
        #expect(await CheckRepairs(postgres: nil).make(findings()) == [])
        #expect(findings() == [])
        let full = FileFindings.Fact(path: "/f", option: "--admin-socket", use: .folder, mode: 0o700, isAccessible: true, freeBytes: 1_000)
        #expect(FileFindings([full]).findings.map(\.severity) == [.warning])
        let barred = FileFindings.Fact(path: "/f", option: "--admin-socket", use: .folder, mode: 0o700, isAccessible: false)
        #expect(FileFindings([barred]).findings.map(\.severity) == [.error])
    }

    @Test func `a repair that fails is an error with the reason`() async {
        let finding = CheckFinding(.warning, .files, "f", "m", repair: .restrict(path: "/nowhere/at/all"))
        let failures = await CheckRepairs(postgres: nil).make([finding])
        #expect(failures.map(\.severity) == [.error])
        #expect(
            failures.first?.message.hasPrefix("“chmod 600 /nowhere/at/all” failed. The system refuses it. Cause: ") == true, "\(failures)")
    }

    // MARK: The report

    @Test func `the report has errors first, says skipped groups once, and its exit code`() throws {
        var report = CheckReport()
        #expect(report.text == "No findings." && report.exitCode == 0)
        report.add([
            CheckFinding(.note, .kafka, "b", "A note."), CheckFinding(.warning, .files, "c", "A warning.", repair: .restrict(path: "c")),
        ])
        #expect(report.exitCode == 0 && report.isFit)
        report.add([CheckFinding(.error, .postgres, "wal_level", "An error\nof two lines.", fix: "A fix.", commands: ["SQL;"])])
        report.skip(.tables, "PostgreSQL does not answer.")
        #expect(report.exitCode == 78)
        #expect(
            report.text == """
                error    PostgreSQL: An error
                           of two lines.
                           A fix.
                           SQL;
                warning  files: A warning.
                note     Kafka: A note.
                skipped  tables: PostgreSQL does not answer.

                1 error, 1 warning, 1 note. 1 group not looked at.
                `sluice check --fix` makes 1 of these changes after it has asked.
                """)
        let json = try JSON.parse(report.json.text)
        #expect(json["fit"]?.bool == false && json["errors"]?.int == 1 && json["findings"]?.array?.count == 3)
        #expect(json["skipped"]?.array?.first?["area"]?.string == "tables")
        #expect(json["findings"]?.array?.map { $0["fixable"]?.bool } == [false, true, false])
    }
}
