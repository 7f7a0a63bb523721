package import SluiceCore
package import SluiceGateway
package import SluiceKafka
import SluiceNet
import SluicePostgres

/// The command `sluice check`: looks at everything that `sluice serve` with the same options needs, in one round.
///
/// It changes nothing, takes no lock that a gateway needs, and can run beside gateways. Each wait has a deadline.
package struct GatewayCheck: Sendable {
    /// The options of the command, which are those of `sluice serve`.
    package struct Options: Sendable {
        package var directory: String
        package var appID: String?
        /// nil if no option and no variable names it.
        package var postgres: String?
        package var kafka: String?
        package var kafkaSettings: KafkaSettings = [:]
        package var network = GatewayConfiguration.Network(port: 8090, adminPort: 8091)
        package var admin = GatewayConfiguration.Admin()
        package var plugins = GatewayConfiguration.Plugins()
        /// The files with secrets that options and variables name, with that name.
        package var secretFiles: [(option: String, path: String)] = []
        /// The options that cannot be used, with the error of each.
        package var problems: [(option: String, error: SluiceError)] = []

        package init(directory: String) { self.directory = directory }
    }

    /// The limit of each request to an outside system.
    static let patience = Duration.seconds(5)

    let options: Options
    let environment: any Environment

    package init(_ options: Options, environment: any Environment = SystemEnvironment()) {
        self.options = options
        self.environment = environment
    }

    package func run() async -> CheckReport {
        var report = CheckReport()
        report.add(options.problems.map { CheckFinding(.error, .options, $0.option, $0.error) })
        let app = await look(atDirectory: &report)
        // At once, so that the longest wait is that of one system.
        async let plugins = plugins(app)
        async let logins = logins(app)
        async let database = DatabaseCheck(options, app, environment: environment).run()
        async let log = LogCheck(options, app).run()
        async let network = NetworkCheck(options, app: app?.appID ?? options.appID, environment: environment).run()
        for part in await [plugins, logins, database, log, network] {
            report.add(part.findings)
            for group in part.skipped { report.skip(group.area, group.reason) }
        }
        report.add(files)
        return report
    }

    /// Reads the app directory.
    ///
    /// - Returns: The app; nil if its problems leave none.
    private func look(atDirectory report: inout CheckReport) async -> AppConfiguration? {
        do {
            let found = try await ExportCheck.report(at: options.directory, appID: options.appID)
            report.add(AppFindings.findings(found))
            return found.app
        } catch {
            report.add([CheckFinding(.error, .app, options.directory, error)])
            return nil
        }
    }

    private func plugins(_ app: AppConfiguration?) async -> CheckReport {
        var report = CheckReport()
        guard let app else {
            report.skip(.plugins, "the app directory cannot be read.")
            return report
        }
        do {
            let files = RuleFiles(directory: options.directory, keys: options.plugins.keys, inProcess: false)
            let entries = try await PluginInspection.entries(of: app, files, beside: options.plugins.files, configures: true)
            report.add(AppFindings.findings(entries, directory: options.directory, needsSignature: !options.plugins.keys.isEmpty))
            report.add(AppFindings.findings(app.functionPlugins, in: entries))
            if options.plugins.inProcess {
                report.add([
                    CheckFinding(
                        .warning, .plugins, "--plugins-in-process", "Plugins run in the gateway's process: a crash of one ends the gateway."
                    )
                ])
            }
        } catch {
            report.add([CheckFinding(.error, .plugins, "sluice-plugin-host", error)])
        }
        return report
    }

    private func logins(_ app: AppConfiguration?) async -> CheckReport {
        var report = CheckReport()
        guard let app else {
            report.skip(.logins, "the app directory cannot be read.")
            return report
        }
        do throws(SluiceError) {
            report.add(
                try await ProviderInspection.findings(of: app).map {
                    CheckFinding($0.preventsStart ? .error : .warning, .logins, $0.provider, $0.error)
                })
        } catch {
            report.add([CheckFinding(.error, .logins, "auth/providers.json", error)])
        }
        return report
    }

    private var files: [CheckFinding] {
        var facts = options.secretFiles.map { FileFindings.Fact(lookingAt: $0.path, option: $0.option, use: .secret) }
        if let socket = options.admin.socket {
            let folder = socket.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
            let path = folder.isEmpty ? (socket.hasPrefix("/") ? "/" : ".") : folder
            facts.append(FileFindings.Fact(lookingAt: path, option: "--admin-socket", use: .folder))
        }
        return FileFindings(facts).findings
    }
}
