import Logging
package import SluiceCore
import SluiceIdentity
import SluiceNet

/// Looks at the login providers of an app as a gateway does: their secrets at the start, and their key sets at the first login.
package enum ProviderInspection {
    package struct Finding: Hashable, Sendable {
        /// The type of the provider.
        package var provider: String
        package var error: SluiceError
        /// `true` if a gateway does not start.
        package var preventsStart: Bool
    }

    /// Returns the problems. Each request takes at most five seconds, and those of several providers run at once.
    ///
    /// - Parameter variables: The environment variables that a gateway would have.
    package static func findings(
        of app: AppConfiguration, variables: ProcessEnvironment = ProcessEnvironment(), environment: any Environment = SystemEnvironment()
    ) async throws(SluiceError) -> [Finding] {
        let http = try OutboundClient()
        let builder = TokenLoginBuilder(
            secrets: app.secrets, variables: variables, http: http, environment: environment,
            logger: Logger(label: "check", factory: { _ in SwiftLogNoOpLogHandler() }))
        let providers = app.users.providers.filter { $0.isEnabled && $0.issuer != nil }
        return await withTaskGroup(of: Finding?.self) { group in
            for provider in providers { group.addTask { await finding(provider, builder, http) } }
            return await group.reduce(into: []) { if let found = $1 { $0.append(found) } }.sorted { $0.provider < $1.provider }
        }
    }

    private static func finding(
        _ provider: AppConfiguration.AuthProvider, _ builder: TokenLoginBuilder, _ http: OutboundClient
    ) async -> Finding? {
        do throws(SluiceError) { _ = try await builder.build([provider]) } catch {
            return Finding(provider: provider.type, error: error, preventsStart: true)
        }
        guard case .remote(let endpoint)? = provider.issuer?.keys else { return nil }
        let source = KeySetCache.Source(url: endpoint.url, allowsPrivateAddresses: endpoint.allowsPrivateAddresses)
        do throws(SluiceError) { _ = try await KeySetCache.load(source, http) } catch {
            return Finding(provider: provider.type, error: error, preventsStart: false)
        }
        return nil
    }
}
