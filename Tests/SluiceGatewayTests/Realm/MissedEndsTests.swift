import SluiceRealm
import Testing

@testable import SluiceGateway

@Suite struct `Ends of users before a connection knows its user` {
    @Test func `reach the connection of that user only`() {
        var missed = MissedEnds()
        #expect(missed.note(.tokenExpired, of: "ada") == nil)
        #expect(missed.note(.userDisabled, of: "ada") == nil)
        var other = missed
        #expect(missed.take("ada") == .userDisabled)
        #expect(missed.take("ada") == nil, "an end is taken once")
        #expect(other.take("grace") == nil)
    }

    @Test func `beyond the bound let the client connect again, and log out no user`() {
        var missed = MissedEnds()
        for number in 0..<MissedEnds.most { #expect(missed.note(.userDisabled, of: "user \(number)") == nil) }
        #expect(missed.note(.userDisabled, of: "one more") == .shutDown)
        #expect(missed.note(.tokenExpired, of: "user 0") == nil, "a known user has its place")
        #expect(missed.take("user 0") == .tokenExpired)
    }
}
