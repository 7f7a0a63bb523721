package import Logging
import SluiceCore
package import SluicePipeline
package import SluicePorts
package import SluiceRealm

/// Serves client files of Realm's protocol through sessions of the pipeline.
package final class RealmBridge: RealmViews, RealmWrites {
    let services: SessionServices
    let logger: Logger

    package init(services: SessionServices, logger: Logger) { (self.services, self.logger) = (services, logger) }

    package func open(_ client: RealmViewClient) async throws -> any RealmClientView {
        throw SluiceError(.internalError, "The views of client files are not served yet.")
    }

    package func integrate(_ upload: RealmUploadMessage, of session: RealmFileSession, user: String) async throws -> RealmWriteResult {
        throw SluiceError(.internalError, "The uploads of client files are not served yet.")
    }

    /// Re-evaluates the rules for all files, and returns at once. If the permissions of one changed, its client receives a bootstrap.
    /// - Parameter user: The user with new data; nil if the rules changed.
    package func reconsider(user: String?) {}
}
