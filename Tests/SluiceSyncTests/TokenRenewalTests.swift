import SluiceCore
import SluiceSync
import SluiceValues
import SluiceWire
import Testing

/// The renewal of access tokens by open sessions.
@Suite struct TokenRenewalTests {
    /// A token that lives for a time in seconds. Its signature is none.
    private static func token(_ life: Int64, number: Int = 0, issued: Int64 = 1_700_000_000) -> String {
        let claims: JSON = ["iat": .int(issued), "exp": .int(issued + life), "jti": .int(Int64(number))]
        let payload = Base64.encode(Array(claims.utf8)).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return "e30.\(payload).AA"
    }

    /// Returns a harness with an open session that keeps receiving, so that only the token is timed.
    private func opened(_ token: String) -> MachineHarness {
        var harness = MachineHarness()
        harness.feed(.start(token: token))
        harness.open()
        return harness
    }

    /// Lets time pass until the machine asks for a token, and returns the milliseconds; nil if it does not within the time.
    private func wait(_ harness: inout MachineHarness, within milliseconds: UInt64) -> UInt64? {
        var passed: UInt64 = 0
        while passed < milliseconds {
            passed += 1_000
            harness.feed(.traffic(harness.connection))
            harness.feed(.tick, after: 1_000)
            if harness.asksForToken { return passed }
        }
        return nil
    }

    @Test func `a session requests a token soon after its start, later after 60 to 80 percent of the life, and goes on`() throws {
        var harness = opened(Self.token(1_800))
        let first = try #require(wait(&harness, within: 1_800_000))
        #expect((90_000...271_000).contains(first), "after \(first) ms")
        let fresh = Self.token(1_800, number: 1)
        harness.feed(.tokenRefreshed(fresh))
        guard case .refreshToken(let message)? = harness.sent.last else {
            Issue.record("the gateway gets no token")
            return
        }
        #expect(message.accessToken == fresh && harness.machine.phase == .open && !harness.hasClosed)
        #expect((1_080_000...1_441_000).contains(try #require(wait(&harness, within: 1_800_000))))
    }

    @Test func `devices spread their requests over the range`() {
        var times: Set<UInt64> = []
        for random in 0..<200 as Range<UInt64> {
            var harness = MachineHarness()
            harness.random = random &* 0x9E37_79B9_7F4A_7C15
            harness.feed(.start(token: Self.token(1_800)))
            harness.open()
            if let time = wait(&harness, within: 1_800_000) { times.insert(time / 18_000) }
        }
        #expect(times.count >= 9, "\(times.sorted())")
    }

    @Test func `a request that fails is repeated after a minute, and the session goes on meanwhile`() throws {
        var harness = opened(Self.token(1_800))
        _ = try #require(wait(&harness, within: 1_800_000))
        for _ in 0..<3 {
            harness.feed(.tokenFailed(SluiceError(.connectionFailed, "offline")))
            #expect(harness.machine.phase == .open && !harness.hasClosed)
            #expect(wait(&harness, within: 120_000) == 60_000)
        }
    }

    @Test func `a token that another session has requested is sent once, and is no reason to request another`() throws {
        var harness = opened(Self.token(1_800))
        for _ in 0..<60 {
            harness.feed(.traffic(harness.connection))
            harness.feed(.tick, after: 1_000)
        }
        let fresh = Self.token(1_800, number: 1)
        harness.feed(.tokenRefreshed(fresh))
        #expect(harness.sent.count == 1)
        harness.feed(.tokenRefreshed(fresh))
        #expect(harness.sent.isEmpty)
        #expect(try #require(wait(&harness, within: 1_800_000)) >= 1_080_000)
    }

    @Test(arguments: ["t", "a.b.c", "e30.e30.AA", token(0), token(-5), token(.max, issued: -5), token(400_000_000)])
    func `a token without a life is not renewed`(token: String) {
        var harness = opened(token)
        #expect(wait(&harness, within: 3_600_000) == nil)
    }
}
