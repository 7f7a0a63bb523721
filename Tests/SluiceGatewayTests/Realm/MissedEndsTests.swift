import SluicePorts
import SluiceRealm
import Testing

@testable import SluiceGateway

@Suite struct `Ends of users before a connection knows its user` {
    @Test func `reach the connection of that user only`() {
        var missed = MissedEnds()
        #expect(missed.note(.tokenExpired, .user("ada")) == nil)
        #expect(missed.note(.userDisabled, .user("ada")) == nil)
        var other = missed
        #expect(missed.take("ada", "l1") == .userDisabled)
        #expect(missed.take("ada", "l1") == nil, "an end is taken once")
        #expect(other.take("grace", "l1") == nil)
    }

    @Test func `of a login reach the connections of that login only`() {
        var missed = MissedEnds()
        #expect(missed.note(.tokenExpired, .login("l1", of: "ada")) == nil)
        var (other, stranger) = (missed, missed)
        #expect(missed.take("ada", "l1") == .tokenExpired)
        #expect(other.take("ada", "l2") == nil)
        #expect(stranger.take("grace", "l1") == nil)
    }

    @Test func `beyond the bound let the client connect again, and log out no user`() {
        var missed = MissedEnds()
        for number in 0..<MissedEnds.most { #expect(missed.note(.userDisabled, .user("user \(number)")) == nil) }
        #expect(missed.note(.userDisabled, .user("one more")) == .shutDown)
        #expect(missed.note(.tokenExpired, .user("user 0")) == nil, "a known user has its place")
        #expect(missed.take("user 0", "l1") == .tokenExpired)
    }
}
