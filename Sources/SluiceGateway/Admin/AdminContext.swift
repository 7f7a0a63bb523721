import Hummingbird
import NIOCore
import SluiceNet

/// The sender of a request to the admin port.
package struct AdminIdentity: Hashable, Sendable {
    /// `token NAME`, `unix socket` or `loopback`, as the audit log has it.
    package var name: String
    package var role: AdminRole

    package init(name: String, role: AdminRole) {
        self.name = name
        self.role = role
    }
}

/// A request to the admin port, with its sender once that is known.
struct AdminContext: RequestContext, RemoteAddressRequestContext {
    var coreContext: CoreRequestContextStorage
    let remoteAddress: SocketAddress?
    var identity: AdminIdentity?

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        remoteAddress = source.channel.remoteAddress
    }
}
