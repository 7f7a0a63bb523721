import Logging
import SluiceCore

/// Sees every five seconds that the tables are those that were published: nothing of what is written to another one under the same name
/// is in the write-ahead log.
struct TableWatch {
    private static let interval: UInt64 = 5_000_000_000
    /// After a failure: whoever writes to a table waits behind who waits to publish it.
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
                        "A table was another than the one that was published, or not published whole: who reads it starts again.",
                        metadata: ["table": "\(table)", "code": "\(ErrorCode.logGap.rawValue)"])
                }
            } catch let error as SluiceError where error.code != .postgresUnreachable {
                if trouble != error.operatorText { logger.error("A table's changes are not published.", metadata: ["error": "\(error)"]) }
                trouble = error.operatorText
            } catch is SluiceError {
                // A server that does not answer is the publisher's to tell.
            }
        }
    }
}
