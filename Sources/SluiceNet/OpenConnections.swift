import NIOCore
import Synchronization

/// The connections of a server, so that those that do not end by themselves can be ended.
final class OpenConnections: Sendable {
    private let channels = Mutex<[ObjectIdentifier: any Channel]>([:])

    var count: Int { channels.withLock { $0.count } }

    func add(_ channel: any Channel) {
        let key = ObjectIdentifier(channel)
        channels.withLock { $0[key] = channel }
        channel.closeFuture.whenComplete { _ in
            self.channels.withLock { _ = $0.removeValue(forKey: key) }
        }
    }

    /// Closes what is open, without goodbye.
    func closeAll() {
        for channel in channels.withLock({ Array($0.values) }) { channel.close(promise: nil) }
    }

    /// Waits until every connection that is open now has ended. What bounds the wait is `closeAll`.
    func drained(on eventLoop: any EventLoop) async {
        let ends = channels.withLock { $0.values.map(\.closeFuture) }
        // A connection that ended with an error has ended.
        _ = try? await EventLoopFuture.andAllComplete(ends, on: eventLoop).get()
    }
}
