import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceValues
import Synchronization
import Testing

/// The keys that sign tokens, and their rotation.
@Suite struct SigningKeyTests {
    /// The keys of a database, with the number of readings.
    private final class Source: Sendable {
        private let state = Mutex<(keys: [SigningKeys.Key], reads: Int)>(([Source.key("")], 0))

        static func key(_ id: String) -> SigningKeys.Key {
            .init(id: id, bytes: Array(repeating: UInt8(id.utf8.reduce(1) { $0 &+ $1 }), count: 32))
        }

        var reads: Int { state.withLock(\.reads) }
        func set(_ ids: String...) { state.withLock { $0.keys = ids.map(Self.key) } }

        func read() -> [SigningKeys.Key] {
            state.withLock { state in
                state.reads += 1
                return state.keys
            }
        }
    }

    private let source = Source()
    private let environment = StillEnvironment()
    private let account = UserAccount(id: "65a000000000000000000001", provider: "anon-user")

    /// The tokens of a gateway of its own.
    private func gateway() async throws -> (tokens: AccessTokens, keys: SigningKeys) {
        let keys = try await SigningKeys(environment: environment) { [source] in source.read() }
        return (AccessTokens(appID: "shop", keys: keys, environment: environment), keys)
    }

    private func code(_ tokens: AccessTokens, _ text: String) async -> ErrorCode? {
        do { _ = try await tokens.verify(text) } catch { return error.code }
        return nil
    }

    @Test func `a rotation keeps the tokens of before valid, and new ones name the new key`() async throws {
        let (tokens, keys) = try await gateway()
        let before = tokens.access(for: account, login: "l")
        source.set("", "k2")
        try await keys.reload()
        let after = tokens.access(for: account, login: "l")
        #expect(before.split(separator: ".")[0] != after.split(separator: ".")[0])
        for text in [before, after] { #expect(await code(tokens, text) == nil) }
        source.set("k2", "k3")
        try await keys.reload()
        #expect(await code(tokens, before) == .badAuthentication)
        #expect(await code(tokens, after) == nil)
    }

    @Test func `a gateway that has not heard of a new key reads it with the first token`() async throws {
        let (first, firstKeys) = try await gateway()
        let (second, _) = try await gateway()
        source.set("", "k2")
        try await firstKeys.reload()
        let token = first.access(for: account, login: "l")
        environment.advance(seconds: 5)
        #expect(await code(second, token) == nil)
    }

    @Test func `tokens with unknown keys cause one reading in five seconds`() async throws {
        let (tokens, _) = try await gateway()
        let foreign = try await AccessTokens(
            appID: "shop", key: Array(repeating: 9, count: 32), id: "foreign", environment: environment)
        let token = foreign.access(for: account, login: "l")
        let start = source.reads
        for _ in 0..<20 {
            let codes = await withTaskGroup(of: ErrorCode?.self) { group in
                for _ in 0..<10 { group.addTask { await code(tokens, token) } }
                return await group.reduce(into: []) { $0.insert($1) } as Set<ErrorCode?>
            }
            // The keys do not have it, or they were read a moment ago.
            #expect(codes.isSubset(of: [.badAuthentication, .tooManyRequests]), "\(codes)")
            environment.advance(seconds: 1)
        }
        #expect((3...5).contains(source.reads - start), "\(source.reads - start)")
    }

    @Test func `a token of a known key under another key's id is refused`() async throws {
        source.set("", "k2")
        let (tokens, _) = try await gateway()
        let forged = try await AccessTokens(appID: "shop", key: Source.key("").bytes, id: "k2", environment: environment)
        #expect(await code(tokens, forged.access(for: account, login: "l")) == .badAuthentication)
    }

    @Test func `keys that are short or none are no keys`() async throws {
        for keys in [[], [SigningKeys.Key(id: "", bytes: Array(repeating: 1, count: 31))]] {
            let error = await #expect(throws: SluiceError.self) { try await SigningKeys(environment: environment) { keys } }
            #expect(error?.code == .configInvalid)
        }
    }

    @Test func `an operator rotates the key, and nobody is logged out until the old one is removed`() async throws {
        try await RunningGateway.with { gateway in
            let login = try await gateway.request("POST", "/api/client/v2.0/app/shop/auth/providers/anon-user/login", "{}")
            let (access, refresh) = (try #require(login.json["access_token"]?.string), try #require(login.json["refresh_token"]?.string))
            func profile() async throws -> Int { try await gateway.request("GET", "/api/client/v2.0/auth/profile", token: access).status }
            func renew() async throws -> Int { try await gateway.request("POST", "/api/client/v2.0/auth/session", token: refresh).status }
            let rotated = try await gateway.request("POST", "/admin/v1/keys", admin: true)
            #expect(rotated.status == 201 && rotated.json.array?.map { $0["signs"] } == [false, true], "\(rotated.json.text)")
            #expect(rotated.json.array?.first?["id"] == "first")
            #expect(!rotated.json.text.contains("key\""))
            #expect(try await profile() == 200)
            #expect(try await renew() == 201)
            let newest = try #require(rotated.json.array?.last?["id"]?.string)
            #expect(try await gateway.request("DELETE", "/admin/v1/keys/\(newest)", admin: true).status == 400)
            #expect(try await gateway.request("DELETE", "/admin/v1/keys/first", admin: true).status == 204)
            #expect(try await gateway.request("GET", "/admin/v1/keys", admin: true).json.array?.count == 1)
            #expect(try await profile() == 401)
            #expect(try await renew() == 401)
        }
    }

    @Test func `the secret for keys has 32 bytes or more, and that of before has one beside it`() throws {
        let (long, other) = (String(repeating: "a", count: 32), String(repeating: "b", count: 32))
        func sealers(_ variables: [String: String]) throws -> [any Sealer] { try KeyEncryption.sealers(ProcessEnvironment(variables)) }
        #expect(try sealers([:]).isEmpty)
        let first = try #require(try sealers(["SLUICE_KEY_ENCRYPTION": long]).first)
        let both = try sealers(["SLUICE_KEY_ENCRYPTION": other, "SLUICE_KEY_ENCRYPTION_PREVIOUS": long])
        let sealed = first.seal([1, 2, 3], context: [4])
        #expect(both.count == 2 && both[0].open(sealed, context: [4]) == nil && both[1].open(sealed, context: [4]) == [1, 2, 3])
        for variables in [["SLUICE_KEY_ENCRYPTION": "short"], ["SLUICE_KEY_ENCRYPTION_PREVIOUS": long]] {
            #expect(throws: SluiceError.self) { try sealers(variables) }
        }
    }
}
