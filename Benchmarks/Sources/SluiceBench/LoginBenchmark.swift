import CryptoExtras
import Foundation
import JWTKit
import Logging
import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluicePostgres
import SluiceValues

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Measures logins by a token of another issuer, by RS256 and by ES256: over HTTP, beside requests to `/health` of the same gateway, and in
/// this process without HTTP. Also measures the verification alone, beside jwt-kit's own.
@MainActor
struct LoginBenchmark {
    let setup: Setup

    /// The number of requests at a time.
    private static let width = 16
    private static let users = 500

    func run(_ report: inout Report) async throws {
        for algorithm in [TokenAlgorithm.rs256, .es256] { try await run(try await Issuer(algorithm), &report) }
    }

    private func run(_ issuer: Issuer, _ report: inout Report) async throws {
        try await verify(issuer, &report)
        let algorithm = issuer.algorithm.rawValue
        let name = "bench_logins_\(algorithm.lowercased())"
        let (conninfo, sql) = try await setup.database(name)
        let gateway = try await setup.gateway(
            name, conninfo, kafka: false, app: "login-app", environment: ["SLUICE_BENCH_ISSUER": issuer.pem],
            arguments: ["--trusted-proxy", "127.0.0.1"], replacing: ("auth/providers.json", "ES256", algorithm))
        var bodies: [Data] = []
        for user in 0..<Self.users {
            let token = try await issuer.token("user-\(user)")
            bodies.append(Data(#"{"token": "\#(token)"}"#.utf8))
        }
        let logins = try request(gateway, "/api/client/v2.0/app/\(gateway.appID)/auth/providers/custom-token/login", bodies)
        // The first login of each user makes the account.
        _ = try await measure(logins, Self.users, gateway)
        let health = try request(gateway, "/health", bodies.map { _ in nil })
        let count = setup.scaled(4_000)
        var samples: [(login: Double, cpu: Double, healthCPU: Double)] = []
        for _ in 0..<setup.rounds {
            let (rate, cpu) = try await measure(logins, count, gateway)
            samples.append((rate, cpu, try await measure(health, count, gateway).cpu))
        }
        let (rate, cpu, bare) = (samples.map(\.login).median, samples.map(\.cpu).median, samples.map(\.healthCPU).median)
        report.add(
            "CPU of a login by JWT (\(algorithm)) over HTTP, with its row in PostgreSQL", ours: "\(cpu.text()) µs",
            reference: "a request to /health \(bare.text()) µs, so \((cpu - bare).text()) µs beyond it",
            ratio: "\((cpu / bare).text(1)) ×", target: "–")
        report.add(
            "logins by JWT (\(algorithm)), \(Self.width) at a time", ours: "\(rate.short)/s", reference: "–",
            ratio: "\((rate / 1_000 * 100).text()) % of the target",
            target: "1,000/s on two cores")
        try await withoutHTTP(issuer, bodies.map { [UInt8]($0) }, conninfo, gateway.appID, &report)
        gateway.child.stop()
        await sql.close()
    }

    private static func policy(_ algorithm: TokenAlgorithm) -> TokenPolicy {
        TokenPolicy(algorithms: [algorithm], audience: .any(["bench"]), fields: [.init(claim: "email", name: "email")])
    }

    /// Measures logins from the body of a request to both tokens, with the row in PostgreSQL.
    private func withoutHTTP(
        _ issuer: Issuer, _ bodies: [[UInt8]], _ conninfo: String, _ app: String, _ report: inout Report
    ) async throws {
        let pool = PostgresPool(conninfo, name: "bench")
        let users = UserService(
            directory: PostgresUsers(pool: pool), pending: PendingUserStore(pool: pool),
            tokens: try await AccessTokens(appID: app, key: [UInt8](repeating: 7, count: 32)),
            settings: .init(providers: ["custom-token"]))
        let token = TokenIssuer(
            provider: "custom-token", keys: .fixed(IssuerKeySet([try await IssuerKey(pem: issuer.pem, issuer.algorithm)])),
            policy: Self.policy(issuer.algorithm),
            environment: SystemEnvironment())
        let logins = IdentityLogins(
            users: users, tokens: TokenLogins(["custom-token": .customToken(token)]),
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
        let each = max(setup.scaled(8_000) / Self.width, 10)
        var samples: [Double] = []
        for round in 0...setup.rounds {
            let cpu = Self.cpuSeconds
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<Self.width {
                    group.addTask {
                        for number in 0..<each {
                            let body = bodies[(worker * each + number) % bodies.count]
                            _ = try await logins.logIn(by: "custom-token", try JSON.parse(body), from: "10.0.0.1")
                        }
                    }
                }
                try await group.waitForAll()
            }
            if round > 0 { samples.append((Self.cpuSeconds - cpu) * 1e6 / Double(each * Self.width)) }
        }
        report.add(
            "CPU of a login by JWT (\(issuer.algorithm.rawValue)) without HTTP, with its row in PostgreSQL",
            ours: "\(samples.median.text()) µs", reference: "–",
            ratio: "–",
            target: "≤ 200 µs")
        await pool.close()
    }

    /// The processor time of this process.
    private static var cpuSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Measures the verification of one token by the policy of an app.
    private func verify(_ issuer: Issuer, _ report: inout Report) async throws {
        let text = try await issuer.token("user-1")
        let keys = IssuerKeySet([try await IssuerKey(pem: issuer.pem, issuer.algorithm)])
        let verifier = TokenVerifier(provider: "custom-token", policy: Self.policy(issuer.algorithm))
        let reference = try await issuer.verifier()
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        let repeats = setup.scaled(2_000)
        var (ours, theirs): ([Double], [Double]) = ([], [])
        for _ in 0..<setup.rounds {
            var begin = seconds()
            for _ in 0..<repeats { _ = try verifier.verify(try SignedToken(text), with: keys, now: now) }
            ours.append((seconds() - begin) * 1e6 / Double(repeats))
            begin = seconds()
            for _ in 0..<repeats { _ = try await reference.verify(text, as: Issuer.Claims.self) }
            theirs.append((seconds() - begin) * 1e6 / Double(repeats))
        }
        report.add(
            "verification of a token by \(issuer.algorithm.rawValue)", ours: "\(ours.median.text(1)) µs",
            reference: "jwt-kit \(theirs.median.text(1)) µs",
            ratio: "\((ours.median / theirs.median).text(2)) ×", target: "≤ 1.1 ×")
    }

    // MARK: Requests

    /// Returns a request of each user, a POST if it has a body.
    private func request(_ gateway: RunningGateway, _ path: String, _ bodies: [Data?]) throws -> [URLRequest] {
        guard let url = URL(string: gateway.url + path) else { throw BenchFailure("\(path) is no path.") }
        return bodies.enumerated().map { user, body in
            var request = URLRequest(url: url)
            // Each user has an address, as behind a proxy. One address may not send so many requests.
            request.setValue("10.0.\(user / 250).\(user % 250 + 1)", forHTTPHeaderField: "X-Forwarded-For")
            guard let body else { return request }
            request.httpMethod = "POST"
            request.httpBody = body
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            return request
        }
    }

    /// Sends requests in turn, some at a time.
    ///
    /// - Returns: The requests in a second, and the gateway's CPU for one in microseconds.
    private func measure(_ requests: [URLRequest], _ count: Int, _ gateway: RunningGateway) async throws -> (rate: Double, cpu: Double) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = Self.width
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let (cpu, begin) = (gateway.child.cpuSeconds, seconds())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                if number >= Self.width { try await group.next() }
                let request = requests[number % requests.count]
                group.addTask {
                    let (_, response) = try await session.data(for: request)
                    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
                    if status == 200 { return }
                    // The other requests would not end otherwise.
                    session.invalidateAndCancel()
                    throw BenchFailure("A request was answered with \(status).")
                }
            }
            try await group.waitForAll()
        }
        return (Double(count) / (seconds() - begin), (gateway.child.cpuSeconds - cpu) * 1e6 / Double(count))
    }

    /// An issuer of tokens with one key.
    private struct Issuer {
        struct Claims: JWTPayload {
            var sub: SubjectClaim
            var aud: AudienceClaim
            var exp: ExpirationClaim
            var email: String

            func verify(using algorithm: some JWTAlgorithm) throws { try exp.verifyNotExpired() }
        }

        let algorithm: TokenAlgorithm
        /// The public key.
        let pem: String
        private let keys = JWTKeyCollection()

        /// - Parameter algorithm: RS256 or ES256.
        init(_ algorithm: TokenAlgorithm) async throws {
            self.algorithm = algorithm
            if algorithm == .rs256 {
                let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
                pem = key.publicKey.pemRepresentation
                await keys.add(rsa: try Insecure.RSA.PrivateKey(backing: key), digestAlgorithm: .sha256)
            } else {
                let key = ES256PrivateKey()
                pem = key.publicKey.pemRepresentation
                await keys.add(ecdsa: key)
            }
        }

        /// Returns jwt-kit's own verifier.
        func verifier() async throws -> JWTKeyCollection {
            algorithm == .rs256
                ? await JWTKeyCollection().add(rsa: try Insecure.RSA.PublicKey(pem: pem), digestAlgorithm: .sha256)
                : await JWTKeyCollection().add(ecdsa: try ES256PublicKey(pem: pem))
        }

        func token(_ user: String) async throws -> String {
            try await keys.sign(
                Claims(
                    sub: SubjectClaim(value: user), aud: AudienceClaim(value: "bench"), exp: ExpirationClaim(value: .now + 86_400),
                    email: "\(user)@example.com"))
        }
    }
}
