import SluiceIdentity
import Testing

@Suite struct `A circuit breaker` {
    private static let second: UInt64 = 1_000_000_000

    private static func begin(_ breaker: inout CircuitBreaker, _ now: UInt64) -> Int? { breaker.begin(now: now) }
    private static func begin(_ calls: inout CallsInFlight, _ function: String, _ user: String?) -> Bool {
        calls.begin(function, user: user) == nil
    }

    /// A breaker that opened at `now`.
    private static func open(at now: UInt64) -> CircuitBreaker {
        var breaker = CircuitBreaker()
        for _ in 0..<CircuitBreaker.failures {
            #expect(Self.begin(&breaker, now) == nil)
            breaker.failed(now: now)
        }
        return breaker
    }

    @Test func `opens at the last failure of a row, and an answer begins the row anew`() {
        var breaker = CircuitBreaker()
        for _ in 1..<CircuitBreaker.failures { breaker.failed(now: 0) }
        #expect(!breaker.isOpen)
        breaker.answered()
        for _ in 1..<CircuitBreaker.failures { breaker.failed(now: 0) }
        #expect(Self.begin(&breaker, 0) == nil)
        breaker.failed(now: 0)
        #expect(breaker.isOpen)
        #expect(Self.begin(&breaker, 0) == 2)
    }

    @Test func `lets one call through when its time is over, and closes with its answer`() {
        var breaker = Self.open(at: 5)
        #expect(Self.begin(&breaker, 5 + Self.second - 1) == 1)
        #expect(Self.begin(&breaker, 5 + Self.second) == nil)
        #expect(breaker.isOpen)
        #expect(Self.begin(&breaker, 5 + Self.second) == 1)
        breaker.answered()
        #expect(!breaker.isOpen)
        #expect(Self.begin(&breaker, 5 + Self.second) == nil)
    }

    @Test func `doubles its time with each probe that fails, up to the longest`() {
        var breaker = Self.open(at: 0)
        var now: UInt64 = 0
        for seconds: UInt64 in [1, 2, 4, 8, 16, 30, 30] {
            #expect(Self.begin(&breaker, now + seconds * Self.second - 1) == 1, "\(seconds)")
            now += seconds * Self.second
            #expect(Self.begin(&breaker, now) == nil, "\(seconds)")
            breaker.failed(now: now)
        }
    }

    @Test func `is not prolonged by calls that began before it opened`() {
        var breaker = Self.open(at: 0)
        breaker.failed(now: Self.second / 2)
        #expect(Self.begin(&breaker, Self.second) == nil)
    }

    @Test func `has bounds of running calls beside it, by function and by user`() {
        var calls = CallsInFlight()
        for _ in 0..<CallsInFlight.perUser { #expect(Self.begin(&calls, "a", "ada")) }
        #expect(!Self.begin(&calls, "a", "ada"))
        #expect(!Self.begin(&calls, "b", "ada"))
        #expect(Self.begin(&calls, "b", "bob"))
        for _ in CallsInFlight.perUser..<CallsInFlight.perFunction { #expect(Self.begin(&calls, "a", nil)) }
        #expect(!Self.begin(&calls, "a", nil))
        #expect(!Self.begin(&calls, "a", "bob"))
        calls.end("a", user: "ada")
        #expect(Self.begin(&calls, "a", "bob"))
        for _ in 1..<CallsInFlight.perUser { calls.end("a", user: "ada") }
        for _ in 0..<CallsInFlight.perFunction - CallsInFlight.perUser { calls.end("a", user: nil) }
        for _ in 0..<1 { calls.end("a", user: "bob") }
        calls.end("b", user: "bob")
        #expect(calls == CallsInFlight())
    }

    @Test func `has a bound of the calls of users in a plugin, which the gateway's own calls do not have`() {
        var calls = CallsInFlight()
        func begin(_ number: Int, user: String?) -> CallsInFlight.Bound? {
            calls.begin("function \(number / 60)", user: user, plugin: "desk")
        }
        for number in 0..<CallsInFlight.perPlugin { #expect(begin(number, user: "user \(number)") == nil) }
        #expect(begin(200, user: "ada") == .plugin)
        #expect(calls.begin("function", user: "ada", plugin: "another") == nil && calls.begin("service", user: "ada") == nil)
        #expect(begin(200, user: nil) == nil)
        calls.end("function 0", user: "user 0", plugin: "desk")
        #expect(begin(200, user: "ada") == nil && begin(200, user: "ada") == .plugin)
    }
}
