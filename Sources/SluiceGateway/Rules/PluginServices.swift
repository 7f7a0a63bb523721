import SluiceCore
import SluicePipeline
import SluicePluginHost
import SluicePostgres
import SluiceQuery
import Synchronization

/// What plugins may ask the gateway: its users, and whether a predicate fits the schema of the moment.
final class PluginServices: Sendable {
    private let users: UserStore
    private let authority = Mutex<(any SchemaAuthority)?>(nil)

    init(users: UserStore) { self.users = users }

    /// From here on predicates can be held against the schema.
    func connect(_ authority: any SchemaAuthority) { self.authority.withLock { $0 = authority } }

    var host: HostServices {
        HostServices(
            customData: { (user) async throws(SluiceError) in
                do { return try await self.users.find(id: user)?.customData } catch let error as SluiceError { throw error } catch {
                    throw SluiceError(.pluginUnavailable, "the user could not be looked up: \(error)")
                }
            },
            parse: { (type, predicate) throws(SluiceError) in
                guard let schema = self.authority.withLock({ $0 })?.current().schema, let type = schema[type] else {
                    throw SluiceError(.queryUnknownProperty, "There is no type \(type).")
                }
                return try Query.parse(predicate).bind(to: type, in: schema).canonicalText
            },
            isQuery: { text in (try? Query.parse(text)) != nil })
    }
}
