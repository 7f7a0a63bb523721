import Logging
import SluiceCore

/// Checks every five seconds that each table is the published one, with the known columns. The WAL stream lacks the changes to a table
/// that replaced it under the same name, and does not show the formula of a generated column.
struct TableWatch {
    private static let interval: UInt64 = 5_000_000_000
    /// The pause after a failure, in nanoseconds. It is longer because writers queue behind the table lock that publishing needs.
    private static let rest: UInt64 = 60_000_000_000

    let tables: GatewayTables
    let environment: any Environment
    let logger: Logger

    func run() async throws {
        var trouble: String?
        while true {
            try await environment.sleep(nanoseconds: trouble == nil ? Self.interval : Self.rest)
            do {
                let again = try await tables.publishAgain()
                trouble = nil
                for table in again {
                    logger.warning(
                        "A table was replaced, or not published completely. Sessions that read it start again.",
                        metadata: ["table": "\(table)", "code": "\(ErrorCode.logGap.rawValue)"])
                }
            } catch let error as SluiceError where error.code != .postgresUnreachable {
                if trouble != error.operatorText { logger.error("A table is not served as it is now.", metadata: ["error": "\(error)"]) }
                trouble = error.operatorText
            } catch is SluiceError {
                // The publisher reports an unreachable server.
            }
        }
    }
}
