import NIOCore
import NIOEmbedded
import SluiceSync
import Testing

/// The race of a host's addresses, each of which has a channel.
@Suite struct ConnectionAttemptTests {
    private static let deadline = NIODeadline.uptimeNanoseconds(1_000_000)

    private func connected() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        return channel
    }

    @Test func `the deadline closes the winner, also when another address was tried after it`() throws {
        let attempt = ConnectionAttempt()
        let winner = try connected()
        let loser = try connected()
        attempt.add(winner, until: Self.deadline)
        attempt.add(loser, until: Self.deadline)
        loser.close(promise: nil)
        loser.embeddedEventLoop.run()
        #expect(winner.isActive && !attempt.isLate)
        winner.embeddedEventLoop.advanceTime(to: Self.deadline)
        #expect(!winner.isActive && attempt.isLate)
    }

    @Test func `a cancellation closes every channel, and those that come after it`() throws {
        let attempt = ConnectionAttempt()
        let channels = [try connected(), try connected()]
        for channel in channels { attempt.add(channel, until: Self.deadline) }
        attempt.close()
        let another = try connected()
        attempt.add(another, until: Self.deadline)
        for channel in channels + [another] {
            channel.embeddedEventLoop.run()
            #expect(!channel.isActive)
        }
        #expect(!attempt.isLate)
    }

    @Test func `a connection whose timer has ended stays past the deadline`() throws {
        let attempt = ConnectionAttempt()
        let channel = try connected()
        attempt.add(channel, until: Self.deadline).cancel()
        channel.embeddedEventLoop.advanceTime(to: Self.deadline)
        #expect(channel.isActive && !attempt.isLate)
        attempt.close()
        channel.embeddedEventLoop.run()
        #expect(!channel.isActive)
    }
}
