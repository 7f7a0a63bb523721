import IdentityTestSupport
import Logging
import SluiceCore
import SluiceIdentity
import SluicePorts
import SluiceValues
import Testing

/// The key sets of issuers: their requests, and logins meanwhile.
@Suite struct KeySetCacheTests {
    private static let url = "https://issuer.example/keys"
    private let clock = ManualEnvironment()

    private func cache(_ http: any OutboundHTTP) -> KeySetCache {
        KeySetCache(.init(url: Self.url), http: http, environment: clock, logger: Logger(label: "test"))
    }

    private func issuer(_ http: any OutboundHTTP) -> TokenIssuer {
        TokenIssuer(
            provider: "custom-token", keys: .remote(cache(http)), policy: TokenPolicy(algorithms: [.rs256, .es256]), environment: clock)
    }

    private static func serving(_ issuer: TestIssuer) throws -> ScriptedHTTP {
        let body = Array(try issuer.keySet().utf8)
        return ScriptedHTTP { _ throws(SluiceError) in OutboundAnswer(status: 200, body: body) }
    }

    private func token(_ issuer: TestIssuer, _ user: String = "ada", _ algorithm: TestIssuer.Algorithm = .es256) throws -> String {
        let now = clock.wallMilliseconds() / 1_000
        return try issuer.token(["sub": .string(user), "iat": .int(now), "exp": .int(now + 300)], algorithm)
    }

    private func code(_ issuer: TokenIssuer, _ text: String) async -> ErrorCode? {
        do throws(SluiceError) {
            _ = try await issuer.identity(of: text)
            return nil
        } catch { return error.code }
    }

    @Test func `the keys are requested once for many logins`() async throws {
        let test = try TestIssuer()
        let http = try Self.serving(test)
        let issuer = issuer(http)
        for user in 0..<20 { #expect(try await issuer.identity(of: try token(test, "user-\(user)")).id == "user-\(user)") }
        #expect(http.requests.map(\.url) == [Self.url])
        #expect(http.requests.first?.allowsPrivateAddresses == false)
    }

    @Test func `logins that come together share the first request`() async throws {
        let test = try TestIssuer()
        let body = Array(try test.keySet().utf8)
        let gate = Gate()
        let http = ScriptedHTTP { _ throws(SluiceError) in
            await gate.wait()
            return OutboundAnswer(status: 200, body: body)
        }
        let issuer = issuer(http)
        let text = try token(test)
        try await withThrowingTaskGroup(of: ProvenIdentity.self) { group in
            for _ in 0..<50 { group.addTask { try await issuer.identity(of: text) } }
            await gate.open()
            for try await identity in group { #expect(identity.id == "ada") }
        }
        #expect(http.requests.count == 1)
    }

    @Test func `a rotation under load loses no login`() async throws {
        let (old, new) = (try TestIssuer(generation: "old"), try TestIssuer(generation: "new"))
        let http = try Self.serving(old)
        let issuer = issuer(http)
        #expect(await code(issuer, try token(old)) == nil)
        clock.advance(seconds: 61)
        let (oldKeys, newKeys) = (try old.keySet()["keys"]?.array ?? [], try new.keySet()["keys"]?.array ?? [])
        let both = Array((["keys": .array(newKeys + oldKeys)] as JSON).utf8)
        http.replace { _ throws(SluiceError) in OutboundAnswer(status: 200, body: both) }
        let texts = try (0..<200).map { try token($0.isMultiple(of: 2) ? new : old, "user-\($0)") }
        let lost = await withTaskGroup(of: ErrorCode?.self) { group in
            for text in texts { group.addTask { await code(issuer, text) } }
            return await group.reduce(into: [ErrorCode]()) { lost, code in if let code { lost.append(code) } }
        }
        #expect(lost.isEmpty)
        #expect(http.requests.count == 2)
    }

    @Test func `unknown key ids cause one request a minute`() async throws {
        let (test, stranger) = (try TestIssuer(), try TestIssuer(generation: "stranger"))
        let http = try Self.serving(test)
        let issuer = issuer(http)
        #expect(await code(issuer, try token(test)) == nil)
        for second in 1...180 {
            clock.advance(seconds: 1)
            #expect(await code(issuer, try token(stranger)) == .loginTokenRejected, "second \(second)")
        }
        #expect(http.requests.count == 4)
    }

    @Test func `stored keys serve through an outage for 24 hours`() async throws {
        let test = try TestIssuer()
        let http = try Self.serving(test)
        let issuer = issuer(http)
        #expect(await code(issuer, try token(test)) == nil)
        http.replace { _ throws(SluiceError) in throw SluiceError(.outboundTimeout, "The issuer does not answer.") }
        for _ in 0..<23 {
            clock.advance(seconds: 3_600)
            #expect(await code(issuer, try token(test)) == nil)
        }
        clock.advance(seconds: 3_600)
        #expect(await code(issuer, try token(test)) == .outboundTimeout)
        // The issuer is back. Without keys the next request comes after five seconds.
        let body = Array(try test.keySet().utf8)
        http.replace { _ throws(SluiceError) in OutboundAnswer(status: 200, body: body) }
        #expect(await code(issuer, try token(test)) == .outboundTimeout)
        clock.advance(seconds: 5)
        #expect(await code(issuer, try token(test)) == nil)
    }

    @Test func `a key that the issuer has withdrawn is rejected after the renewal`() async throws {
        let (old, new) = (try TestIssuer(generation: "old"), try TestIssuer(generation: "new"))
        let http = try Self.serving(old)
        let issuer = issuer(http)
        #expect(await code(issuer, try token(old)) == nil)
        let body = Array(try new.keySet().utf8)
        http.replace { _ throws(SluiceError) in OutboundAnswer(status: 200, body: body) }
        clock.advance(seconds: 3_600)
        // This login starts the renewal, and the next one waits for it.
        _ = await code(issuer, try token(old))
        #expect(await code(issuer, try token(new)) == nil)
        #expect(await code(issuer, try token(old)) == .loginTokenRejected)
    }

    @Test func `an answer that is no key set is an error, and the next login tries again`() async throws {
        let test = try TestIssuer()
        let answers: [OutboundAnswer] = [
            .init(status: 500), .init(status: 302, headers: ["location": "https://evil.example"]),
            .init(status: 200, body: Array("<html>".utf8)),
            .init(status: 200, body: Array(#"{"keys": []}"#.utf8)),
            .init(status: 200, body: Array(#"{"keys": [{"kty": "oct", "k": "AA"}]}"#.utf8)),
            .init(status: 200, body: Array(#"{"keys": [{"kty": "RSA", "n": "!", "e": "AQAB"}]}"#.utf8)),
            .init(
                status: 200,
                body: Array(#"{"keys": ["#.utf8) + Array(repeating: Array("{},".utf8), count: 101).joined() + Array("{}]}".utf8)),
        ]
        for answer in answers {
            let http = ScriptedHTTP { _ throws(SluiceError) in answer }
            let issuer = issuer(http)
            #expect(await code(issuer, try token(test)) == .outboundFailed, "\(answer.status)")
            #expect(await code(issuer, try token(test)) == .outboundFailed)
            #expect(http.requests.count == 1)
            let body = Array(try test.keySet().utf8)
            http.replace { _ throws(SluiceError) in OutboundAnswer(status: 200, body: body) }
            clock.advance(seconds: 5)
            #expect(await code(issuer, try token(test)) == nil)
        }
    }

    @Test func `an RSA key of less than 2048 bits is left out`() async throws {
        let modulus = TestIssuer.base64URL([0x01] + [UInt8](repeating: 0xFF, count: 127))
        let weak: JSON = ["keys": [["kty": "RSA", "kid": "weak", "n": .string(modulus), "e": "AQAB"]]]
        await #expect(throws: SluiceError.self) { try await IssuerKeySet(jwks: Array(weak.utf8)) }
    }
}

/// A barrier that opens once.
private actor Gate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func wait() async {
        if isOpen { return }
        await withCheckedContinuation { waiting.append($0) }
    }

    func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
}
