import SluiceCore
import SluicePorts
import Testing

@testable import SluiceMail

@Suite struct `The queue of mails` {
    private static func mail(_ name: String) throws -> Mail {
        try Mail(to: try MailAddress("\(name)@example.com"), subject: "s", text: "t")
    }

    private static func sent(_ step: MailQueue.Step) -> MailQueue.Entry? {
        if case .send(let entry) = step { return entry }
        return nil
    }

    private static let second: UInt64 = 1_000_000_000

    @Test func `sends mails in order, and a deferred one does not delay the others`() throws {
        var queue = MailQueue()
        for (id, now) in [("a", 1), ("b", 2)] as [(String, UInt64)] { #expect(queue.add(try Self.mail(id), id: id, now: now)) }
        let first = try #require(Self.sent(queue.next(now: 3)))
        #expect(first.id == "a" && first == Self.sent(queue.next(now: 3)), "it stays until it is finished")
        queue.retry(first, now: 3, random: 0)
        let second = try #require(Self.sent(queue.next(now: 3)))
        #expect(second.id == "b")
        queue.finish(second)
        #expect(queue.next(now: 3) == .wait(until: 3 + Self.second * 5 / 2))
    }

    @Test func `doubles the pause up to five minutes, and spreads attempts over its second half`() throws {
        var queue = MailQueue()
        #expect(queue.add(try Self.mail("a"), id: "a", now: 0))
        var now: UInt64 = 0
        for pause: UInt64 in [5, 10, 20, 40, 80, 160, 300, 300] {
            let entry = try #require(Self.sent(queue.next(now: now)))
            queue.retry(entry, now: now, random: now)
            guard case .wait(let due?) = queue.next(now: now) else { return #expect(Bool(false), "nothing waits") }
            #expect((pause * Self.second / 2..<pause * Self.second).contains(due - now), "\(pause)")
            now = due
        }
    }

    @Test func `drops a mail that waits too long, and refuses one over its bound`() throws {
        var queue = MailQueue()
        for number in 0..<Limits.waitingMails { #expect(queue.add(try Self.mail("a"), id: "\(number)", now: 0)) }
        #expect(!queue.add(try Self.mail("a"), id: "more", now: 0))
        let end = Limits.mailPatienceSeconds * Self.second
        guard case .drop(let entry) = queue.next(now: end) else { return #expect(Bool(false), "nothing is dropped") }
        #expect(entry.id == "0" && queue.count == Limits.waitingMails - 1)
        #expect(queue.add(try Self.mail("a"), id: "more", now: end))
    }
}
