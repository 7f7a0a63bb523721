import Logging
package import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// `sluice serve` from configuration to end: logging, the ready line, signals.
package enum GatewayProcess {
    /// Runs a gateway until SIGINT or SIGTERM.
    /// - Parameter json: whether to print one line of JSON on standard output once clients can connect.
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

/// Logs of a process: one line each on standard error; the level comes from SLUICE_LOG (default: info).
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
    /// Writes one line of JSON, whole.
    package static func line(_ json: JSON) {
        let text = json.text + "\n"
        text.withCString { _ = Glibc.write(1, $0, strlen($0)) }
    }
}

/// The process's environment variables.
package struct ProcessEnvironment: Sendable {
    package init() {}
    package subscript(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
