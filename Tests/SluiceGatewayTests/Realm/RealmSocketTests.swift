import PortsTestSupport
import SluiceCompression
import SluiceCore
import SluicePorts
import SluiceRealm
import Testing

@testable import SluiceGateway

@Suite(.timeLimit(.minutes(1))) struct `A socket of Realm's protocol` {
    private struct Users: Authenticator {
        func authenticate(token: String) async throws -> Authenticated {
            guard token == "valid" else { throw SluiceError(.badAuthentication, "The token is not valid.") }
            return Authenticated(user: UserContext(id: "ann"), expires: .max)
        }
        func current(_ user: Authenticated) async throws -> UserContext { user.user }
    }

    /// Views and writes that no test gets to.
    private struct NoViews: RealmViews, RealmWrites {
        func open(
            _ client: RealmViewClient, for connection: any Actor, wake: @escaping @Sendable () -> Void,
            keep: @escaping @Sendable ([UInt8], UInt64) async throws -> Void
        ) async throws -> any RealmClientView {
            throw SluiceError(.internalError, "There are no views.")
        }
        func integrate(_ upload: RealmUploadMessage, of session: RealmFileSession, user: String) async throws -> RealmWriteResult {
            throw SluiceError(.internalError, "There are no writes.")
        }
    }

    /// The socket and its connection refer to each other until then.
    @Test(arguments: ["valid", "invalid"]) func `is released once its connection has ended`(token: String) async {
        let environment = SystemEnvironment()
        let (ended, metrics) = (AsyncEvent(environment: environment), Metrics())
        weak var socket: RealmSocket?
        do {
            let services = RealmConnectionServices(
                store: MemoryRealmClients(), views: NoViews(), writes: NoViews(), coding: RealmCodec(compression: Zlib()),
                environment: environment)
            let opening = RealmSocket.Opening(settings: RealmConnectionSettings(version: 14, salt: 7), agent: RealmAgent(nil))
            let opened = RealmSocket(
                opening, token: token, services: services, authenticator: Users(), egress: metrics.number(.realmSentBytes, label: "other"),
                watch: RealmWatch(metrics: metrics), hooks: .init(opened: { _ in }, admit: { _ in }, ended: { _ in ended.fire() }))
            socket = opened
            await opened.begin()
            if token == "valid" {
                #expect(opened.user == "ann" && ended.count == 0)
                opened.end(.shutDown, .all)
            }
            await ended.wait(until: 1)
            #expect(ended.count == 1)
        }
        // The task of the end has it until that has returned.
        while socket != nil, !Task.isCancelled { await Task.yield() }
        #expect(socket == nil)
    }
}
