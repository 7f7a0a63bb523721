import Crypto
import Foundation
import HTTPTypes
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceValues
import Testing

struct AccessTokensTests {
    private static func account() -> UserAccount { UserAccount(id: "65a000000000000000000001", provider: "anon-user") }

    private static func code(_ body: () async throws -> some Any) async -> ErrorCode? {
        do {
            _ = try await body()
            return nil
        } catch { return (error as? SluiceError)?.code }
    }

    @Test func `a token is valid for thirty minutes and not a millisecond more`() async throws {
        let environment = StillEnvironment()
        let tokens = try await AccessTokens(appID: "shop", key: AuthFixture.key, environment: environment)
        let token = tokens.access(for: Self.account(), login: "l1")
        environment.advance(seconds: 1_799)
        #expect(try await tokens.verify(token).user.id == Self.account().id)
        environment.advance(seconds: 1)
        #expect(await Self.code { try await tokens.verify(token) } == .tokenExpired)
    }

    @Test func `no change of a single character goes unnoticed`() async throws {
        let tokens = try await AccessTokens(appID: "shop", key: AuthFixture.key, environment: StillEnvironment())
        let token = Array(tokens.access(for: Self.account(), login: "l1").utf8)
        for index in token.indices {
            var other = token
            // Another character of the same alphabet; the last one of a part carries unused bits, so it is changed by a lot.
            other[index] = other[index] == UInt8(ascii: "A") ? UInt8(ascii: "z") : UInt8(ascii: "A")
            let text = String(decoding: other, as: UTF8.self)
            #expect(await Self.code { try await tokens.verify(text) } == .badAuthentication, "character \(index)")
        }
    }

    @Test func `another app's, another key's and an unsigned token are refused`() async throws {
        let environment = StillEnvironment()
        let tokens = try await AccessTokens(appID: "shop", key: AuthFixture.key, environment: environment)
        let otherApp = try await AccessTokens(appID: "bank", key: AuthFixture.key, environment: environment).access(
            for: Self.account(), login: "l1")
        let otherKey = try await AccessTokens(appID: "shop", key: [UInt8](repeating: 8, count: 32), environment: environment)
            .access(for: Self.account(), login: "l1")
        let payload = tokens.access(for: Self.account(), login: "l1").split(separator: ".")[1]
        // {"alg":"none","typ":"JWT"}
        let unsigned = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.\(payload)."
        for token in [otherApp, otherKey, unsigned, "", "a.b.c", "...", String(repeating: "x", count: 70_000)] {
            #expect(await Self.code { try await tokens.verify(token) } == .badAuthentication, "\(token.prefix(60))")
        }
    }

    /// A token with the right signature, whatever it says.
    private static func signed(_ claims: String) -> String {
        func encode(_ bytes: some Sequence<UInt8>) -> String {
            Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        let text = "\(encode(#"{"alg":"HS256","typ":"JWT"}"#.utf8)).\(encode(claims.utf8))"
        return "\(text).\(encode(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: SymmetricKey(data: AuthFixture.key))))"
    }

    @Test func `a signed token that lacks something or says it in another kind is refused`() async throws {
        let environment = StillEnvironment()
        let tokens = try await AccessTokens(appID: "shop", key: AuthFixture.key, environment: environment)
        let now = environment.wallMilliseconds() / 1_000
        let whole = [
            "sub": #""ann""#, "app": #""shop""#, "typ": #""access""#, "iat": "\(now)", "exp": "\(now + 60)", "jti": #""1""#,
            "sid": #""l1""#, "user_data": "null",
        ]
        func token(_ claims: [String: String]) -> String { Self.signed("{\(claims.map { "\"\($0)\":\($1)" }.joined(separator: ","))}") }
        let user = try await tokens.verify(token(whole)).user
        #expect(user.id == "ann" && user.customData == .object([]) && user.identities == .array([]))
        // A client renews a token of an earlier release, which names no login.
        for value in [nil, "null", "1"] {
            var claims = whole
            claims["sid"] = value
            #expect(await Self.code { try await tokens.verify(token(claims)) } == .tokenExpired, "\(value ?? "none")")
        }
        for name in whole.keys where !["user_data", "sid"].contains(name) {
            for value in [nil, "null", "true", "[]", "1.5"] {
                var claims = whole
                claims[name] = value
                #expect(await Self.code { try await tokens.verify(token(claims)) } == .badAuthentication, "\(name): \(value ?? "none")")
            }
        }
        let never = try await tokens.verify(token(whole.merging(["exp": "\(Int64.max)"]) { $1 }))
        #expect(never.expires == .max)
        let ever = token(whole.merging(["exp": "\(Int64.min)"]) { $1 })
        #expect(await Self.code { try await tokens.verify(ever) } == .tokenExpired)
        for text in ["", "{", "[]", "3", #"{"sub":"ann"}}"#] {
            #expect(await Self.code { try await tokens.verify(Self.signed(text)) } == .badAuthentication, "\(text)")
        }
    }

    /// The upgrade of the companion schema gives the login the first 32 digits of the token's SHA-256.
    @Test func `a refresh token of a release before logins keeps its user logged in`() async throws {
        let fixture = try await AuthFixture()
        let account = UserAccount(id: "ann", provider: "anon-user")
        try await fixture.directory.create(account)
        let now = fixture.environment.wallMilliseconds() / 1_000
        let old = Self.signed(#"{"sub":"ann","app":"shop","typ":"refresh","iat":\#(now),"exp":\#(now + 60),"jti":"1"}"#)
        let session = "/api/client/v2.0/auth/session"
        #expect(try await fixture.call(.post, session, token: old).status == 401)
        let id = SHA256.hash(data: Data(old.utf8)).prefix(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        #expect(try await fixture.directory.add(Login(id: id, user: "ann", expires: .max), .none))
        #expect(try await fixture.call(.post, session, token: old).status == 201)
    }

    @Test func `a short key is refused`() async {
        #expect(await Self.code { try await AccessTokens(appID: "shop", key: [1, 2, 3]) } == .configInvalid)
    }

    @Test func `custom data of every kind survive a token`() async throws {
        let tokens = try await AccessTokens(appID: "shop", key: AuthFixture.key, environment: StillEnvironment())
        var account = Self.account()
        account.customData = [
            "big": .int(.max), "deep": ["list": [[], .object([]), ["x": .null]]], "text": "\u{1F9EA}\"\\\n", "truth": false, "zero": 0,
        ]
        let data = try await tokens.verify(tokens.access(for: account, login: "l1")).user.customData
        #expect(data == account.customData)
    }
}

struct PasswordHasherTests {
    @Test func `a password fits its own hash only, and no two hashes are equal`() async throws {
        let hasher = PasswordHasher(cost: AuthFixture.cost)
        let hash = try await hasher.hash("correct horse")
        #expect(hash.hasPrefix("scrypt$16$1$1$"))
        #expect(try await hasher.verify("correct horse", hash: hash))
        #expect(try await !hasher.verify("correct horsf", hash: hash))
        #expect(try await !hasher.verify("", hash: hash))
        #expect(try await hasher.hash("correct horse") != hash)
    }

    @Test func `nobody's password fits`() async throws {
        #expect(try await !PasswordHasher(cost: AuthFixture.cost).verify("anything", hash: nil))
    }

    @Test func `a hash of another cost still fits`() async throws {
        let hash = try await PasswordHasher(cost: .init(rounds: 32, blockSize: 2, parallelism: 2)).hash("password")
        #expect(try await PasswordHasher(cost: AuthFixture.cost).verify("password", hash: hash))
    }

    /// RFC 7914, section 12, the second vector: its 64 bytes cut to the 32 that we keep (scrypt's last step makes them in
    /// order).
    @Test func `the published vector fits`() async throws {
        let key = "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
        let stored = "scrypt$1024$8$16$\(Base64.encode(Array("NaCl".utf8)))$\(Base64.encode(Hex.decode(key) ?? []))"
        #expect(try await PasswordHasher().verify("password", hash: stored))
    }

    @Test(arguments: [
        "", "scrypt", "scrypt$16$1$1$AAAA", "scrypt$15$1$1$AAAA$AAAA", "scrypt$1073741824$8$1$AAAA$AAAA", "scrypt$16$1$100000$AAAA$AAAA",
        "scrypt$-2$1$1$AAAA$AAAA", "scrypt$16$0$1$AAAA$AAAA", "bcrypt$16$1$1$AAAA$AAAA", "scrypt$16$1$1$!!$AAAA",
    ])
    func `a damaged or absurd hash fits nothing and costs nothing`(hash: String) async throws {
        #expect(try await !PasswordHasher(cost: AuthFixture.cost).verify("password", hash: hash))
    }

    @Test func `more than may wait are refused at once`() async throws {
        // Costs a tenth of a second each, so that the first is still at work when the last comes.
        let hasher = PasswordHasher(cost: .init(rounds: 1 << 15, blockSize: 8, parallelism: 1), width: 1, waiting: 2)
        let refused = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<40 {
                group.addTask {
                    do throws(SluiceError) {
                        _ = try await hasher.hash("password")
                        return false
                    } catch {
                        return error.code == .tooManyRequests
                    }
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(refused > 0)
        #expect(refused < 40)
        #expect(try await hasher.hash("password").hasPrefix("scrypt$"), "the queue goes on")
    }
}
