import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceValues
import SluiceWire
import Testing

@Suite struct `A gateway that is shown bad credentials` {
    @Test func `Scenario 58: refuses an expired token and says so`() async throws {
        try await RunningGateway.with { gateway in
            let user = try await gateway.createUser("late@example.com")
            try await gateway.besideHealthySession {
                let token = try await gateway.token(of: user, lasting: -5_400)
                let session = try await gateway.session(token: token)
                try await session.sendHello()
                #expect(try await session.failure().code == .tokenExpired)
            }
        }
    }

    @Test func `refuses another app's token`() async throws {
        try await RunningGateway.with { gateway in
            let user = try await gateway.createUser("other@example.com")
            try await gateway.besideHealthySession {
                let token = try await gateway.token(of: user, app: "another")
                let session = try await gateway.session(token: token)
                try await session.sendHello()
                #expect(try await session.failure().code == .badAuthentication)
            }
        }
    }

    @Test func `refuses what is no token`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                // One that is longer than a first message may be is not looked at.
                let texts: [(String, ErrorCode)] = [
                    ("", .badAuthentication), ("a.b.c", .badAuthentication), (String(repeating: "x", count: 60_000), .badAuthentication),
                    (String(repeating: "x", count: 100_000), .helloTooLarge),
                ]
                for (text, code) in texts {
                    let session = try await gateway.session(token: text)
                    try await session.sendHello()
                    #expect(try await session.failure().code == code)
                }
            }
        }
    }

    @Test func `Scenario 29: ends the session of a user who is disabled, and lets no new one in`() async throws {
        try await RunningGateway.with { gateway in
            let user = try await gateway.createUser("gone@example.com")
            try await gateway.besideHealthySession {
                let token = try await gateway.token(of: user)
                let session = try await gateway.session(token: token)
                try await session.hello()
                let answer = try await gateway.request("PUT", "/admin/v1/users/\(user)/disable", admin: true)
                #expect(answer.status == 204)
                #expect(try await session.failure().code == .userDisabled)
                let next = try await gateway.session(token: token)
                try await next.sendHello()
                #expect(try await next.failure().code == .userDisabled)
                let login = try await gateway.login("gone@example.com")
                #expect((login.status, login.code) == (401, 220), "\(login)")
            }
        }
    }

    @Test(arguments: [
        ("PUT", "/logout", ErrorCode.invalidSession, ErrorCode.invalidSession), ("DELETE", "", .userDisabled, .invalidSession),
    ])
    func `Scenario 29: ends the session of a user whom an operator logs out or deletes, and renews no token`(
        method: String, path: String, code: ErrorCode, renewal: ErrorCode
    ) async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let account = try await gateway.account()
                let session = try await gateway.session(token: account.token)
                try await session.hello()
                try await session.subscribe(1, [("Order", "store == 'north'")])
                try await session.upload(1, [TestSession.order("kept", ["store": .string("north"), "size": .int(1)])])
                try await session.receive { $0.acknowledged == 1 }
                #expect(try await gateway.request(method, "/admin/v1/users/\(account.id)\(path)", admin: true).status == 204)
                #expect(try await session.failure().code == code)
                #expect(session.error?.sessionAction == .logOutUser)
                let answer = try await gateway.request("POST", "/api/client/v2.0/auth/session", token: account.refreshToken)
                #expect(answer.status == 401 && answer.code == Int(renewal.rawValue), "\(answer)")
                // The objects are not the account's.
                #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'kept'") == 1)
            }
        }
    }

    @Test func `Scenario 29: ends sessions of users who are disabled, revoked and deleted elsewhere, and no others`() async throws {
        try await RunningGateway.with { gateway in
            let changes: [(sql: String, code: ErrorCode)] = [
                ("UPDATE sluice.user_account SET disabled = true WHERE id = ", .userDisabled),
                ("DELETE FROM sluice.login WHERE user_id = ", .invalidSession),
                ("DELETE FROM sluice.user_account WHERE id = ", .userDisabled),
            ]
            try await gateway.besideHealthySession {
                for change in changes {
                    let account = try await gateway.account()
                    let session = try await gateway.session(token: account.token)
                    try await session.hello()
                    try await gateway.sql("\(change.sql)'\(account.id)'")
                    #expect(try await session.failure().code == change.code, "\(change.sql)")
                }
            }
        }
    }

    /// The way in which a login ends.
    enum End: CaseIterable, Sendable { case logout, everywhere, password, key, deletedKey, reuse }

    @Test(arguments: End.allCases)
    func `ends the sessions of a login that ends, and lets its tokens open, mint and delete nothing`(end: End) async throws {
        try await RunningGateway.with { gateway in
            let user = try await gateway.createUser("ada@example.com")
            func logIn(_ answer: RunningGateway.Answer) throws -> RunningGateway.Account {
                let access = try #require(answer.json["access_token"]?.string, "\(answer)")
                return .init(id: user, refreshToken: try #require(answer.json["refresh_token"]?.string), token: access)
            }
            let base = "/api/client/v2.0"
            var login = try logIn(try await gateway.login("ada@example.com"))
            let made = try await gateway.request("POST", "\(base)/auth/api_keys", #"{"name":"tablet"}"#, token: login.refreshToken)
            let (key, secret) = (try #require(made.json["_id"]?.string), try #require(made.json["key"]?.string))
            let byKey = try logIn(
                try await gateway.request("POST", "\(base)/app/\(gateway.app)/auth/providers/api-key/login", #"{"key":"\#(secret)"}"#))
            let isOfKey = end == .key || end == .deletedKey
            // The other login of the user, which stays.
            let other = isOfKey ? login : byKey
            if isOfKey { login = byKey }
            let (session, healthy) = (try await gateway.session(token: login.token), try await gateway.session(token: other.token))
            for session in [session, healthy] { try await session.hello() }
            try await healthy.subscribe(1, [("Order", "store == 'north'")])

            switch end {
            case .logout: _ = try await gateway.request("DELETE", "\(base)/auth/session", token: login.refreshToken)
            case .everywhere: _ = try await gateway.request("DELETE", "\(base)/auth/session?everywhere=true", token: login.refreshToken)
            case .password: try await gateway.sql("UPDATE sluice.user_account SET password_hash = 'other' WHERE id = '\(user)'")
            case .key: _ = try await gateway.request("PUT", "/admin/v1/users/\(user)/api_keys/\(key)/disable", admin: true)
            case .deletedKey: _ = try await gateway.request("DELETE", "/admin/v1/users/\(user)/api_keys/\(key)", admin: true)
            case .reuse:
                let next = try await gateway.request("POST", "\(base)/auth/session?rotate=true", token: login.refreshToken)
                let newest = try #require(next.json["refresh_token"]?.string)
                #expect(try await gateway.request("POST", "\(base)/auth/session", token: newest).status == 201)
                #expect(try await gateway.request("POST", "\(base)/auth/session", token: login.refreshToken).status == 401)
            }

            #expect(try await session.failure().code == .invalidSession)
            let next = try await gateway.session(token: login.token)
            try await next.sendHello()
            #expect(try await next.failure().code == .invalidSession)
            let calls = [
                ("POST", "\(base)/auth/session", login.refreshToken), ("POST", "\(base)/auth/api_keys", login.refreshToken),
                ("POST", "\(base)/auth/api_keys", login.token), ("DELETE", "\(base)/auth/delete", login.token),
                ("GET", "\(base)/auth/profile", login.token), ("POST", "/v1/ingest/Reading", login.token),
            ]
            for (method, path, token) in calls {
                let answer = try await gateway.request(method, path, #"{"name":"late"}"#, token: token)
                #expect(answer.status == 401, "\(method) \(path): \(answer)")
            }
            #expect(try await gateway.count("SELECT count(*) FROM sluice.user_account WHERE id = '\(user)'") == 1)
            if end == .everywhere || end == .password {
                #expect(try await healthy.failure().code == .invalidSession)
            } else {
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 1)")
                try await healthy.receive { $0.keys("Order").contains("new") }
            }
        }
    }

    @Test func `answers a wrong password with 401`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.createUser("alice@example.com")
            try await gateway.besideHealthySession {
                let wrong = try await gateway.login("alice@example.com", password: "passwort")
                #expect((wrong.status, wrong.code) == (401, 401))
                let right = try await gateway.login("alice@example.com")
                #expect(right.status == 200)
                #expect(right.json["access_token"]?.string != nil)
            }
        }
    }
}
