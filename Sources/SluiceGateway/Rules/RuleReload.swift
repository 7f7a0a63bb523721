package import Logging
package import SluiceCore

/// The outcome of an edit of the app directory under a running gateway.
package enum RuleReload: Sendable {
    /// The edit is in use.
    case used(generation: UInt64, AppChanges)
    /// The edit is invalid. The rules before it stay in force.
    case refused(SluiceError)
    /// A plugin host or PostgreSQL failed. The rules before it stay in force, and the gateway tries again.
    case failed(SluiceError)

    package func log(to logger: Logger) {
        switch self {
        case .used(let generation, let changes):
            logger.notice("New rules are in use.", metadata: ["generation": "\(generation)", "changes": .string(changes.line)])
        case .refused(let error):
            logger.error("The edited rules cannot be used. The previous rules stay in force.", metadata: ["error": "\(error)"])
        case .failed(let error):
            logger.error("The edited rules cannot be used yet. The previous rules stay in force.", metadata: ["error": "\(error)"])
        }
    }
}
