import Hummingbird
import NIOCore
import SluiceNet

/// The sender of a request to the admin port.
package struct AdminIdentity: Hashable, Sendable {
    /// The name in the audit log: `token NAME`, `unix socket` or `loopback`.
    package var name: String
    package var role: AdminRole

    package init(name: String, role: AdminRole) {
        self.name = name
        self.role = role
    }
}

/// The context of a request to the admin port, with its sender once authenticated.
struct AdminContext: RequestContext, RemoteAddressRequestContext {
    var coreContext: CoreRequestContextStorage
    let remoteAddress: SocketAddress?
    var identity: AdminIdentity?

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        remoteAddress = source.channel.remoteAddress
    }
}
