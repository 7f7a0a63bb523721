import GatewayTestSupport
import HTTPTypes
import SluiceCore
import SluiceGateway
import SluiceNet
import SluiceValues
import TestSupport
import Testing

@Suite struct `The limits of logins` {
    private static let anonymous = "/api/client/v2.0/app/shop/auth/providers/anon-user/login"
    private static let register = "/api/client/v2.0/app/shop/auth/providers/local-userpass/register"
    private static let session = "/api/client/v2.0/auth/session"
    private static let ann = "ann@example.com"

    private static func fixture(exemptsLoopback: Bool = false) async throws -> AuthFixture {
        let fixture = try await AuthFixture(exemptsLoopback: exemptsLoopback)
        for email in [ann, "bob@example.com"] { _ = try await fixture.users.create(email: email, password: "secret-1") }
        return fixture
    }

    /// Wrong passwords until the address is refused for the account.
    private static func exhaust(_ fixture: AuthFixture, _ email: String, from address: String) async throws {
        var attempts = 0
        while try await fixture.login(email, "guess", from: address).status == 401, attempts < 1_000 { attempts += 1 }
        #expect(attempts < 1_000, "wrong passwords are never refused")
    }

    @Test func `wrong passwords from anywhere never refuse the right one from another address`() async throws {
        let fixture = try await Self.fixture()
        for round in 0..<3 {
            for host in 0..<100 { _ = try await fixture.login(Self.ann, "guess", from: "10.0.\(round).\(host)") }
            let fresh = try await fixture.login(Self.ann, "secret-1", from: "10.1.\(round).1")
            #expect(fresh.status == 200, "after \((round + 1) * 100) wrong ones: \(fresh.json.text)")
        }
    }

    @Test func `ten wrong passwords close an account to their own address, and say until when`() async throws {
        let fixture = try await Self.fixture()
        for _ in 0..<Limits.loginPairFailures.atOnce {
            #expect(try await fixture.login(Self.ann, "guess", from: "10.0.2.1").status == 401)
        }
        let refused = try await fixture.call(
            .post, "/api/client/v2.0/app/shop/auth/providers/local-userpass/login",
            ["username": .string(Self.ann), "password": "secret-1"], from: "10.0.2.1")
        #expect(refused.status == 429 && refused.json["code"]?.int == Int64(ErrorCode.tooManyRequests.rawValue))
        #expect(refused.headers[.retryAfter] == "30")
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.0.2.2").status == 200)
        #expect(try await fixture.login("bob@example.com", "secret-1", from: "10.0.2.1").status == 200)
        #expect(fixture.metrics.number(.loginsLimited, label: "account-and-address").value == 1)
        fixture.environment.advance(seconds: 30)
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.0.2.1").status == 200)
    }

    @Test func `only failures count`() async throws {
        let fixture = try await Self.fixture()
        for _ in 0..<200 { #expect(try await fixture.login(Self.ann, "secret-1").status == 200) }
    }

    @Test func `an address that guesses at many accounts is refused, and those who have logged in from it are not`() async throws {
        let fixture = try await Self.fixture()
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.9.9.9").status == 200)
        for attempt in 0..<Limits.loginAddressFailures.atOnce {
            #expect(try await fixture.login("user\(attempt)@example.com", "secret-1", from: "10.9.9.9").status == 401)
        }
        #expect(try await fixture.login("bob@example.com", "secret-1", from: "10.9.9.9").status == 429)
        #expect(try await fixture.login("bob@example.com", "secret-1", from: "10.9.9.8").status == 200)
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.9.9.9").status == 200)
        #expect(fixture.metrics.number(.loginsLimited, label: "address").value == 1)
    }

    @Test func `a guarded account admits one guess from each unknown address, and any login from a fresh one`() async throws {
        let fixture = try await Self.fixture()
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.7.7.7").status == 200)
        for host in 0..<Limits.loginAccountFailures.atOnce { _ = try await fixture.login(Self.ann, "guess", from: "10.0.3.\(host)") }
        #expect(try await fixture.login(Self.ann, "guess", from: "10.0.4.1").status == 401)
        #expect(try await fixture.login(Self.ann, "guess", from: "10.0.4.1").status == 429)
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.0.4.2").status == 200)
        // A user who mistypes at a known place has the usual attempts.
        #expect(try await fixture.login(Self.ann, "guess", from: "10.7.7.7").status == 401)
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.7.7.7").status == 200)
        #expect(try await fixture.login("bob@example.com", "secret-1", from: "10.0.4.1").status == 200)
        fixture.environment.advance(seconds: 900)
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.0.4.1").status == 200)
    }

    @Test func `registrations, anonymous logins and refreshed sessions do not wait for failed logins`() async throws {
        let fixture = try await Self.fixture()
        let device = try #require(try await fixture.login(Self.ann, "secret-1", from: "10.5.5.5").json["refresh_token"]?.string)
        try await Self.exhaust(fixture, Self.ann, from: "10.5.5.5")
        for number in 0..<30 { _ = try await fixture.login("none\(number)@example.com", "guess", from: "10.5.5.5") }
        #expect(try await fixture.login("bob@example.com", "secret-1", from: "10.5.5.5").status == 429)
        for _ in 0..<100 { #expect(try await fixture.call(.post, Self.session, token: device, from: "10.5.5.5").status == 201) }
        for number in 0...Limits.registrations.atOnce {
            let made = try await fixture.call(
                .post, Self.register, ["email": .string("new\(number)@example.com"), "password": "secret-1"], from: "10.5.5.5")
            #expect(made.status == (number < Limits.registrations.atOnce ? 201 : 429))
        }
        for number in 0...Limits.anonymousLogins.atOnce {
            let login = try await fixture.call(.post, Self.anonymous, .object([]), from: "10.5.5.5")
            #expect(login.status == (number < Limits.anonymousLogins.atOnce ? 200 : 429))
        }
    }

    /// The attack of an address that makes accounts as fast as the limit of a minute allows.
    @Test func `an address makes a bounded number of accounts in a day`() async throws {
        let fixture = try await Self.fixture()
        var made = 0
        for _ in 0..<60 {
            for _ in 0..<Limits.anonymousLogins.atOnce {
                guard try await fixture.call(.post, Self.anonymous, .object([]), from: "10.5.5.7").status == 200 else { break }
                made += 1
            }
            fixture.environment.advance(seconds: 60)
        }
        #expect((Limits.dailyAccounts.atOnce...Limits.dailyAccounts.atOnce + Limits.dailyAccounts.perHour).contains(made))
        #expect(try await fixture.call(.post, Self.anonymous, .object([]), from: "10.5.5.8").status == 200)
    }

    @Test func `wrong API keys are limited by themselves`() async throws {
        let fixture = try await Self.fixture()
        let path = "/api/client/v2.0/app/shop/auth/providers/api-key/login"
        for _ in 0..<Limits.apiKeyFailures.atOnce {
            #expect(try await fixture.call(.post, path, ["key": "none"], from: "10.5.5.6").status == 401)
        }
        #expect(try await fixture.call(.post, path, ["key": "none"], from: "10.5.5.6").status == 429)
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.5.5.6").status == 200)
    }

    @Test func `the hosts of one IPv6 subnet count together, and IPv4 within IPv6 counts as IPv4`() async throws {
        let fixture = try await Self.fixture()
        for host in 1...10 { #expect(try await fixture.login(Self.ann, "guess", from: "2001:db8:1:2::\(host)").status == 401) }
        #expect(try await fixture.login(Self.ann, "secret-1", from: "2001:db8:1:2:ffff::1").status == 429)
        #expect(try await fixture.login(Self.ann, "secret-1", from: "2001:db8:1:3::1").status == 200)
        try await Self.exhaust(fixture, Self.ann, from: "::ffff:10.6.6.6")
        #expect(try await fixture.login(Self.ann, "secret-1", from: "10.6.6.6").status == 429)
        #expect(try await fixture.login(Self.ann, "secret-1", from: "::ffff:10.6.6.7").status == 200)
    }

    @Test(arguments: ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
    func `development has no limits on the loopback`(address: String) async throws {
        let fixture = try await Self.fixture(exemptsLoopback: true)
        for _ in 0..<150 { #expect(try await fixture.login(Self.ann, "guess", from: address).status == 401) }
        for _ in 0..<100 { #expect(try await fixture.call(.post, Self.anonymous, .object([]), from: address).status == 200) }
        #expect(try await fixture.login(Self.ann, "secret-1", from: address).status == 200)
        try await Self.exhaust(fixture, Self.ann, from: "10.0.0.9")
    }

    @Test func `what is remembered of names is bounded, and forgets in their favour`() {
        var buckets = AttemptBuckets((atOnce: 1, perHour: 1), names: 50)
        for name in 0..<10_000 {
            buckets.take("\(name)", now: 0)
            #expect(buckets.count <= 100)
            #expect(buckets.wait("\(name)", now: 0) == 3_600)
        }
        #expect(buckets.wait("0", now: 0) == nil)
        // Overdrawn by no more than its capacity.
        for _ in 0..<50 { buckets.take("x", now: 0) }
        #expect(buckets.wait("x", now: 0) == 7_200)
        #expect(buckets.wait("x", now: 7_200_000_000_000) == nil)
    }

    @Test func `an owner with many elements in a queue neither delays nor refuses another by more than one`() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let capacity = Int.random(in: 3...20, using: &random)
            var queue = FairQueue<String>(capacity: capacity)
            for _ in 0..<Int.random(in: 0...60, using: &random) {
                let owner = ["a", "b"][Int.random(in: 0...1, using: &random)]
                _ = queue.add(owner, of: owner)
                #expect(queue.count <= capacity, "seed \(seed)")
            }
            let refused = queue.add("fresh", of: "fresh")
            #expect(refused != "fresh" && queue.count <= capacity, "seed \(seed)")
            let first = [queue.next(), queue.next(), queue.next()]
            #expect(first.contains("fresh"), "seed \(seed): \(first)")
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct `The logins of a gateway` {
    private static func status(_ gateway: RunningGateway, _ password: String) async throws -> Int {
        let body: JSON = ["username": "ann@example.com", "password": .string(password)]
        return try await gateway.request("POST", "/api/client/v2.0/app/\(gateway.app)/auth/providers/local-userpass/login", body.text)
            .status
    }

    private static func makeAnn(_ gateway: RunningGateway) async throws {
        let answer = try await gateway.request(
            "POST", "/api/client/v2.0/app/\(gateway.app)/auth/providers/local-userpass/register",
            #"{"email": "ann@example.com", "password": "secret-1"}"#)
        #expect(answer.status == 201, "\(answer)")
    }

    @Test func `are not limited in development, whose clients are all on the loopback`() async throws {
        try await RunningGateway.with(isDevelopment: true) { gateway in
            try await Self.makeAnn(gateway)
            for _ in 0..<25 { #expect(try await Self.status(gateway, "guess") == 401) }
            #expect(try await Self.status(gateway, "secret-1") == 200)
        }
    }

    /// Monotonic time at a thousandth of its speed: no attempt is regained while the test runs, however slow the machine is.
    private struct SlowClock: Environment {
        private let real = SystemEnvironment()

        func wallMilliseconds() -> Int64 { real.wallMilliseconds() }
        func monotonicNanoseconds() -> UInt64 { real.monotonicNanoseconds() / 1_000 }
        func random() -> UInt64 { real.random() }
        func sleep(nanoseconds: UInt64) async throws { try await real.sleep(nanoseconds: nanoseconds) }
    }

    @Test func `are limited by failures alone in production`() async throws {
        try await RunningGateway.with(environment: SlowClock()) { gateway in
            try await Self.makeAnn(gateway)
            for _ in 0..<30 { #expect(try await Self.status(gateway, "secret-1") == 200) }
            for _ in 0..<Limits.loginPairFailures.atOnce { #expect(try await Self.status(gateway, "guess") == 401) }
            #expect(try await Self.status(gateway, "secret-1") == 429)
            #expect(try await gateway.metric(#"sluice_logins_limited_total{limit="account-and-address"}"#) == 1)
        }
    }
}
