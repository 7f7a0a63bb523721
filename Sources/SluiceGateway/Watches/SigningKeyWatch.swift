import Logging
import SluiceCore

/// Reads the signing keys again every half minute: another gateway may have added one, or removed one.
struct SigningKeyWatch: Sendable {
    private static let pause: UInt64 = 30_000_000_000

    let keys: SigningKeys
    let environment: any Environment
    let logger: Logger

    func run() async throws {
        while !Task.isCancelled {
            try await environment.sleep(nanoseconds: Self.pause)
            do { try await keys.reload() } catch let error as SluiceError {
                logger.warning("The signing keys could not be read again.", metadata: ["error": "\(error)"])
            }
        }
    }
}
