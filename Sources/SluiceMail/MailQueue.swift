import SluiceCore
import SluicePorts

/// The mails that wait for the mail server. It decides on the next step, and performs none.
///
/// A mail that the server cannot take now is sent again after 5 s, and then after twice as long each time, up to five minutes. A mail that
/// has to wait does not delay the others.
struct MailQueue: Sendable {
    struct Entry: Hashable, Sendable {
        var mail: Mail
        /// The text for `Message-ID`. It is the same in each attempt, so that a mail program shows one mail.
        var id: String
        var attempts = 0
        /// The time of the next attempt, in monotonic nanoseconds. The same holds for all times below.
        var due: UInt64
        /// The time from which it is not sent any more.
        var end: UInt64
    }

    enum Step: Hashable, Sendable {
        case send(Entry)
        /// The entry has waited too long, and is removed.
        case drop(Entry)
        /// Nothing is due before this time; nil if nothing waits.
        case wait(until: UInt64?)
    }

    private static let pause: (first: UInt64, longest: UInt64) = (5_000_000_000, 300_000_000_000)

    private var entries: [Entry] = []

    var count: Int { entries.count }

    /// - Returns: `false` if the queue is full. The mail is not added then.
    mutating func add(_ mail: Mail, id: String, now: UInt64) -> Bool {
        guard entries.count < Limits.waitingMails else { return false }
        entries.append(Entry(mail: mail, id: id, due: now, end: now + Limits.mailPatienceSeconds * 1_000_000_000))
        return true
    }

    /// Returns the next step. An entry that is to be sent stays in the queue until `finish` or `retry`. Costs O(entries).
    mutating func next(now: UInt64) -> Step {
        if let late = entries.firstIndex(where: { $0.end <= now }) { return .drop(entries.remove(at: late)) }
        guard let first = entries.min(by: { $0.due < $1.due }) else { return .wait(until: nil) }
        return first.due <= now ? .send(first) : .wait(until: first.due)
    }

    /// Removes an entry.
    mutating func finish(_ entry: Entry) { entries.removeAll { $0.id == entry.id } }

    /// Defers an entry after a failed attempt.
    ///
    /// - Parameter random: Random bits, which spread the attempts over the second half of the pause.
    mutating func retry(_ entry: Entry, now: UInt64, random: UInt64) {
        guard let index = entries.firstIndex(where: { $0.id == entry.id }) else { return }
        let pause = min(Self.pause.first << UInt64(min(entry.attempts, 16)), Self.pause.longest)
        entries[index].attempts += 1
        entries[index].due = now + pause / 2 + random % (pause / 2)
    }
}
