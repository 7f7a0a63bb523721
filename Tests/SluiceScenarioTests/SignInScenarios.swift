import Foundation
import GatewayTestSupport
import IdentityTestSupport
import SluiceCore
import SluiceGateway
import SluiceSDK
import SluiceValues
import TestSupport
import Testing

/// Apps whose users log in at another issuer: a real gateway, a real key server, and the SDK.
@Suite(.timeLimit(.minutes(5))) struct `Users of another issuer` {
    private static let queries = ["store == 'north'"]

    /// Runs a gateway that trusts an issuer.
    private static func with(
        _ body: @escaping @Sendable (RunningGateway, TestIssuer, IssuerServer) async throws -> Void
    ) async throws {
        let issuer = try TestIssuer()
        let server = try await IssuerServer(keysOf: issuer)
        do {
            try await RunningGateway.with(files: files(server.url)) { gateway in try await body(gateway, issuer, server) }
        } catch {
            await server.close()
            throw error
        }
        await server.close()
    }

    private static func files(_ url: String) -> [String: String] {
        [
            "auth/providers.json": """
            {
                "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false },
                "local-userpass": { "name": "local-userpass", "type": "local-userpass", "config": { "autoConfirm": true }, "disabled": false },
                "custom-token": {
                    "name": "custom-token", "type": "custom-token", "disabled": false,
                    "config": { "audience": "shop", "useJWKURI": true, "jwkURI": "https://issuer.example/keys" },
                    "metadata_fields": [{ "required": false, "name": "profile.name", "field_name": "name" }]
                },
                "oauth2-google": {
                    "name": "oauth2-google", "type": "oauth2-google", "disabled": false, "config": { "clientId": "shop" },
                    "secret_config": { "clientSecret": "google" }, "metadata_fields": [{ "required": true, "name": "email" }]
                }
            }
            """,
            "secrets.json": #"{ "google": "client-secret" }"#,
            "sluice.json": """
            {
                "providers": {
                    "custom-token": { "jwks_url": "\(url)/keys", "issuers": ["https://issuer.example"], "allow_private_addresses": true },
                    "oauth2-google": {
                        "jwks_url": "\(url)/keys", "service_url": "\(url)/token", "issuers": ["https://issuer.example"],
                        "allow_private_addresses": true
                    }
                }
            }
            """,
        ]
    }

    private static func token(_ issuer: TestIssuer, _ user: String, _ algorithm: TestIssuer.Algorithm = .rs256) throws -> String {
        let now = Int64(Date().timeIntervalSince1970)
        return try issuer.token(
            [
                "sub": .string(user), "iss": .string(issuer.name), "aud": "shop", "iat": .int(now), "exp": .int(now + 300),
                "profile": ["name": .string("Name of \(user)")], "email": .string("\(user)@example.com"),
            ], algorithm)
    }

    @MainActor private static func app(_ gateway: RunningGateway, _ folder: Phone.Folder) -> App {
        App(id: gateway.app, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder.url))
    }

    @MainActor private static func open(_ user: User, _ folder: Phone.Folder) async throws -> Phone {
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            for query in queries { subscriptions.append(QuerySubscription<Order>(name: query, where: query)) }
        })
        configuration.objectTypes = [Order.self, Tag.self]
        return try await Phone.open(configuration, Phone.Said(), folder)
    }

    @Test @MainActor func `log in by their tokens on several devices, and are one user`() async throws {
        try await Self.with { @MainActor gateway, issuer, server in
            let (first, second) = (try Phone.Folder(), try Phone.Folder())
            let user = try await Self.app(gateway, first).login(credentials: .jwt(token: try Self.token(issuer, "ada")))
            #expect(user.identities == [UserIdentity(providerType: "custom-token", identifier: "ada")])
            #expect(user.profile.name == "Name of ada")
            let phone = try await Self.open(user, first)
            try phone.add("o1", title: "by token")
            try await phone.session.wait(for: .upload)

            let same = try await Self.app(gateway, second).login(credentials: .jwt(token: try Self.token(issuer, "ada", .edDSA)))
            #expect(same.id == user.id)
            let tablet = try await Self.open(same, second)
            try await tablet.wait { $0.contains { $0._id == "o1" } }
            let other = try await Self.app(gateway, try Phone.Folder()).login(credentials: .jwt(token: try Self.token(issuer, "bob")))
            #expect(other.id != user.id)
            #expect(server.requests == 1, "one key set for all logins")
        }
    }

    @Test @MainActor func `get an error by name for a token that is not accepted`() async throws {
        try await Self.with { @MainActor gateway, issuer, _ in
            let app = Self.app(gateway, try Phone.Folder())
            let foreign = try TestIssuer()
            for text in [try Self.token(foreign, "ada"), "no token"] {
                let error = await #expect(throws: AppError.self) { try await app.login(credentials: .jwt(token: text)) }
                #expect(error?.code == .authError && error?.httpStatusCode == 401)
            }
            #expect(app.currentUser == nil)
        }
    }

    @Test @MainActor func `keep an anonymous user's replica and its pending writes when they link`() async throws {
        try await Self.with { @MainActor gateway, issuer, _ in
            let folder = try Phone.Folder()
            let app = Self.app(gateway, folder)
            let user = try await app.login(credentials: .anonymous)
            let phone = try await Self.open(user, folder)
            try phone.add("before")
            try await phone.session.wait(for: .upload)
            phone.session.suspend()
            try phone.add("pending")
            let linked = try await user.linkUser(credentials: .jwt(token: try Self.token(issuer, "ada")))
            #expect(linked === user && user.isLoggedIn)
            #expect(user.identities.map(\.providerType) == ["anon-user", "custom-token"])
            #expect(user.profile.name == "Name of ada")
            #expect(phone.keys == ["before", "pending"])
            phone.session.resume()
            try await phone.settles(gateway)
            #expect(try await gateway.texts("SELECT _id FROM orders ORDER BY 1") == ["before", "pending"])

            // The user is no anonymous one any more: an anonymous login makes another.
            #expect(try await app.login(credentials: .anonymous).id != user.id)
            let elsewhere = try await Self.app(gateway, try Phone.Folder()).login(credentials: .jwt(token: try Self.token(issuer, "ada")))
            #expect(elsewhere.id == user.id)
        }
    }

    @Test @MainActor func `link an e-mail that they registered, and an identity of another user is refused`() async throws {
        try await Self.with { @MainActor gateway, issuer, _ in
            let app = Self.app(gateway, try Phone.Folder())
            let user = try await app.login(credentials: .anonymous)
            try await app.emailPasswordAuth.registerUser(email: "ada@example.com", password: "secret123")
            let email = Credentials.emailPassword(email: "ada@example.com", password: "secret123")
            _ = try await user.linkUser(credentials: email)
            #expect(user.profile.email == "ada@example.com")
            let elsewhere = try await Self.app(gateway, try Phone.Folder()).login(credentials: email)
            #expect(elsewhere.id == user.id)

            let other = try await Self.app(gateway, try Phone.Folder()).login(credentials: .jwt(token: try Self.token(issuer, "bob")))
            let error = await #expect(throws: AppError.self) { try await other.linkUser(credentials: email) }
            #expect(error?.code == .accountNameInUse)
            #expect(other.identities.count == 1)
        }
    }

    @Test @MainActor func `log in with a server auth code of Google, and with its ID token`() async throws {
        try await Self.with { @MainActor gateway, issuer, server in
            let keys = try issuer.keySet()
            let idToken = try Self.token(issuer, "g-1")
            server.replace { path, body in
                guard path == "/token" else { return (200, keys) }
                let isRight = body.contains("code=4%2Fcode") && body.contains("client_secret=client-secret")
                return isRight ? (200, ["id_token": .string(idToken)]) : (400, ["error": "invalid_grant"])
            }
            let app = Self.app(gateway, try Phone.Folder())
            let user = try await app.login(credentials: .google(serverAuthCode: "4/code"))
            #expect(user.identities == [UserIdentity(providerType: "oauth2-google", identifier: "g-1")])
            #expect(user.profile.email == "g-1@example.com")
            #expect(try await app.login(credentials: .googleId(token: idToken)).id == user.id)
            let error = await #expect(throws: AppError.self) { try await app.login(credentials: .google(serverAuthCode: "used")) }
            #expect(error?.code == .authError)
        }
    }
}
