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
    package func requireAdminToken() throws(SluiceError) {
        guard admin.tokens.all.isEmpty, !Self.isLoopback(network.adminHost) else { return }
        throw SluiceError(
            .adminTokenMissing, "The admin port would listen on \(network.adminHost), which is not the loopback, without a token.")
    }

    private static func isLoopback(_ host: String) -> Bool {
        host.lowercased() == "localhost" || ClientNetwork(host).isLoopback
    }
}
