import Logging
import SluiceCore
package import SluiceGateway
import SluiceValues

/// The command `sluice serve` after its options: logging, the ready line, and signals.
package enum GatewayProcess {
    /// Runs a gateway until SIGINT or SIGTERM.
    ///
    /// - Parameter json: `true` to print one line of JSON on standard output once clients can connect.
    package static func run(_ configuration: GatewayConfiguration, json: Bool) async throws {
        let logger = ProcessLogger.make()
        let gateway = Gateway(configuration, logger: logger, telemetry: .bootstrap(collector: configuration.traceCollector))
        try await ProcessSignals.cancelling(within: configuration.grace) {
            try await gateway.run { addresses in
                if json {
                    StandardOutput.line(
                        ["url": .string(addresses.url), "admin_url": .string(addresses.adminURL), "app_id": .string(addresses.appID)])
                } else {
                    StandardError.write("sluice: serving \(addresses.appID) at \(addresses.url), admin at \(addresses.adminURL)\n")
                }
            }
        }
    }
}

/// The logger of a process: lines on standard error, at the level of `SLUICE_LOG` (info by default).
enum ProcessLogger {
    static func make() -> Logger {
        var logger = Logger(label: "sluice") { LineLogHandler.standardError(label: $0) }
        logger.logLevel = ProcessEnvironment()["SLUICE_LOG"].flatMap { Logger.Level(rawValue: $0) } ?? .info
        return logger
    }
}
