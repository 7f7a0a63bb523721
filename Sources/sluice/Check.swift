import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check everything that 'sluice serve' with the same options needs: app directory, plugins, PostgreSQL, Kafka, ports.",
        discussion: """
            Takes the options and variables of 'sluice serve'. Every problem is found in one round, with the command that mends it. It changes \
            nothing and can run beside gateways; each wait ends after a few seconds.

            --fix lists the changes that are safe, and makes them after it has asked: it publishes tables with their old rows, and corrects \
            files and folders. It changes no setting of a server.

            Exit codes: 0 without errors, also with warnings; 78 with an error.
            """)

    @OptionGroup var options: GatewayOptions

    @Flag(help: "Make the safe changes, after asking for each round of them.")
    var fix = false

    @Flag(help: "With --fix: do not ask.")
    var yes = false

    @Flag(help: "Print one document of JSON.")
    var json = false

    func validate() throws {
        if yes, !fix { throw ValidationError("--yes has an effect only with --fix.") }
        if json, fix, !yes { throw ValidationError("--fix asks, so with --json it needs --yes.") }
    }

    func run() async throws {
        try await reporting {
            let check = GatewayCheck(options.checked())
            var report = await check.run()
            if fix, !report.repairs.isEmpty {
                if !json { print(report.text + "\n") }
                if try yes || CheckRepairs.confirm(report.repairs) {
                    let failures = await CheckRepairs(postgres: try options.app.named()).make(report.repairs)
                    report = await check.run()
                    report.add(failures)
                }
            }
            print(json ? report.json.text : report.text)
            if report.exitCode != 0 { throw ExitCode(report.exitCode) }
        }
    }
}

extension GatewayOptions {
    /// The options for a check. An option that cannot be used becomes a problem of it, so that the others are looked at.
    func checked() -> GatewayCheck.Options {
        let environment = ProcessEnvironment()
        var checked = GatewayCheck.Options(directory: app.app)
        checked.appID = app.id.appID
        func part(_ option: String, _ read: () throws -> Void) {
            do { try read() } catch {
                checked.problems.append((option, SluiceError(of: error) ?? SluiceError(.configInvalid, "\(option): \(error)")))
            }
        }
        let kafkaFile = kafkaConfig ?? environment["SLUICE_KAFKA_CONFIG"]
        let tokenFile = admin.adminTokenFile ?? environment["SLUICE_ADMIN_TOKEN_FILE"]
        part("--postgres") { checked.postgres = try app.named() }
        part("--kafka-config") {
            (checked.kafka, checked.kafkaSettings) = try KafkaFile.read(servers: kafka ?? environment["SLUICE_KAFKA"], file: kafkaFile)
        }
        checked.network = .init(
            host: network.host, port: Int(network.port), adminHost: network.adminHost, adminPort: Int(network.adminPort))
        part("--public-url, --trusted-proxy, --connections-per-address") { checked.network = try network.configuration() }
        part("--admin-token-file") { checked.admin = try admin.configuration() }
        part("--plugin-key") { checked.plugins = try plugins.specs() }
        part("--grace-seconds") { _ = try grace(environment) }
        part("--trace-collector") { _ = try collector(environment) }
        part(KeyEncryption.variable) { _ = try KeyEncryption.sealers(environment) }
        let keyFiles = [KeyEncryption.variable, KeyEncryption.previous].map { ("\($0)_FILE", environment["\($0)_FILE"]) }
        for (option, file) in keyFiles + [("--kafka-config", kafkaFile), ("--admin-token-file", tokenFile), ("--tls-key", network.tlsKey)] {
            if let file, !file.isEmpty { checked.secretFiles.append((option, file)) }
        }
        return checked
    }
}
