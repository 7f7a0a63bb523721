import Logging
package import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// The command `sluice serve` after its options: logging, the ready line, and signals.
package enum GatewayProcess {
    /// Runs a gateway until SIGINT or SIGTERM.
    ///
    /// - Parameter json: `true` to print one line of JSON on standard output once clients can connect.
    package static func run(_ configuration: GatewayConfiguration, json: Bool) async throws {
        let logger = ProcessLogger.make()
        let gateway = Gateway(configuration, logger: logger)
        try await ProcessSignals.cancelling {
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
        var logger = Logger(label: "sluice") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = ProcessEnvironment()["SLUICE_LOG"].flatMap { Logger.Level(rawValue: $0) } ?? .info
        return logger
    }
}

package enum StandardError {
    package static func write(_ text: String) { text.withCString { _ = Glibc.write(2, $0, strlen($0)) } }
}

package enum StandardOutput {
    /// Writes one line of JSON with a single call of `write`.
    package static func line(_ json: JSON) {
        let text = json.text + "\n"
        text.withCString { _ = Glibc.write(1, $0, strlen($0)) }
    }
}

/// The environment variables of the process.
package struct ProcessEnvironment: Sendable {
    package init() {}
    package subscript(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
