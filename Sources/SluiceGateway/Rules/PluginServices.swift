import SluiceCore
import SluicePluginHost
import SluicePorts
import SluicePostgres
import SluiceQuery
import Synchronization

/// The services that the gateway offers to plugins: custom data of users, and the parsing of predicates against the current schema.
final class PluginServices: Sendable {
    private let users: UserStore
    private let authority = Mutex<(any SchemaAuthority)?>(nil)

    init(users: UserStore) { self.users = users }

    /// Sets the schema for `parse`. Until then `parse` throws `queryUnknownProperty`.
    func connect(_ authority: any SchemaAuthority) { self.authority.withLock { $0 = authority } }

    var host: HostServices {
        HostServices(
            customData: { (user) async throws(SluiceError) in
                do { return try await self.users.find(id: user)?.customData } catch {
                    throw SluiceError(error, otherwise: .pluginUnavailable, "The user could not be read.")
                }
            },
            parse: { (type, predicate) throws(SluiceError) in
                guard let schema = self.authority.withLock({ $0 })?.current().schema, let type = schema[type] else {
                    throw SluiceError(.queryUnknownProperty, "The class \(type) does not exist.")
                }
                return try Query.parse(predicate).bind(to: type, in: schema).canonicalText
            },
            isQuery: { text in (try? Query.parse(text)) != nil })
    }
}
