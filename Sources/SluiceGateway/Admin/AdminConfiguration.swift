package import SluiceCore

extension GatewayConfiguration {
    /// The settings of access to the admin port.
    package struct Admin: Hashable, Sendable {
        package var tokens: AdminTokens
        /// The path of a Unix socket that serves the admin port without a token; nil for none.
        package var socket: String?

        package init(tokens: AdminTokens = AdminTokens(), socket: String? = nil) {
            self.tokens = tokens
            self.socket = socket
        }
    }

    /// - Throws: `adminTokenMissing` if other hosts can reach the admin port and no token protects it.
    package func requireAdminToken() throws(SluiceError) { try Self.requireAdminToken(admin, host: network.adminHost) }

    /// - Parameter host: The address of the admin port.
    /// - Throws: `adminTokenMissing`, as above.
    package static func requireAdminToken(_ admin: Admin, host: String) throws(SluiceError) {
        guard admin.tokens.all.isEmpty, !isLoopback(host) else { return }
        throw SluiceError(
            .adminTokenMissing, "The admin port would listen on \(host), which is not the loopback, without a token.")
    }

    /// `true` for `localhost` and loopback addresses.
    package static func isLoopback(_ host: String) -> Bool {
        host.lowercased() == "localhost" || ClientNetwork(host).isLoopback
    }
}
