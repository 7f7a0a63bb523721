import Foundation
import Synchronization
import TestSupport

#if canImport(Glibc)
    import Glibc
#endif

/// A way to a server that can be cut in one direction or in both. As in a partition, nobody is told: what is sent into a cut waits,
/// and arrives when it is healed, or is lost with its connection where the network has forgotten that meanwhile.
final class FaultyLink: Sendable {
    struct Cut: OptionSet, Sendable {
        let rawValue: Int
        static let toServer = Cut(rawValue: 1)
        static let toClient = Cut(rawValue: 2)
        static let both: Cut = [.toServer, .toClient]
    }

    let port: Int
    private let cut = Mutex<Cut>([])
    private let mustBreak = Mutex(false)
    private let isOver = Mutex(false)
    private let pieces = Mutex(0)

    /// - Parameter servers: ports of 127.0.0.1, asked for at each connection, which goes to one of those that take it.
    init(to servers: @escaping @Sendable () -> [Int]) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = LocalSocket.address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = Self.with(&address) {
            bind(listener, $0, size) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &size) == 0
        }
        guard listener >= 0, isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        port = Int(UInt16(bigEndian: address.sin_port))
        // Its own thread because: it waits for sockets as long as the link lasts.
        Thread.detachNewThread { [self] in run(listener, servers) }
    }

    func set(_ directions: Cut) { cut.withLock { $0 = directions } }
    /// Ends all connections there are; what waits in them is lost.
    func breakConnections() { mustBreak.withLock { $0 = true } }
    /// The number of times that bytes of clients arrived here.
    var piecesToServer: Int { pieces.withLock(\.self) }
    func end() { isOver.withLock { $0 = true } }

    private static func with<R>(_ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> R) -> R {
        withUnsafeMutablePointer(to: &address) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
    }

    /// One direction of a connection.
    private struct Way {
        let from: Int32
        let to: Int32
        let direction: Cut
        /// Read, and not written yet.
        var waiting: ArraySlice<UInt8> = []
    }

    private func run(_ listener: Int32, _ servers: @Sendable () -> [Int]) {
        var ways: [Way] = []
        while !isOver.withLock({ $0 }) {
            let breaks = mustBreak.withLock { mustBreak in
                defer { mustBreak = false }
                return mustBreak
            }
            if breaks {
                for descriptor in Set(ways.map(\.from)) { close(descriptor) }
                ways = []
            }
            let cut = cut.withLock { $0 }
            var waits = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
            for way in ways {
                let isCut = cut.contains(way.direction)
                waits.append(pollfd(fd: isCut || !way.waiting.isEmpty ? -1 : way.from, events: Int16(POLLIN), revents: 0))
                waits.append(pollfd(fd: isCut || way.waiting.isEmpty ? -1 : way.to, events: Int16(POLLOUT), revents: 0))
            }
            guard poll(&waits, nfds_t(waits.count), 20) > 0 else { continue }
            var ended = Set<Int32>()
            for index in ways.indices where waits[2 * index + 1].revents != 0 || waits[2 * index + 2].revents != 0 {
                if !move(&ways[index]) { ended.formUnion([ways[index].from, ways[index].to]) }
            }
            ways.removeAll { ended.contains($0.from) }
            for descriptor in ended { close(descriptor) }
            if waits[0].revents != 0 { ways += accept(listener, servers()) }
        }
        for descriptor in Set(ways.map(\.from)) { close(descriptor) }
        close(listener)
    }

    private func accept(_ listener: Int32, _ servers: [Int]) -> [Way] {
        let client = Glibc.accept(listener, nil, nil)
        guard client >= 0 else { return [] }
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        _ = fcntl(client, F_SETFL, O_NONBLOCK)
        guard let upstream = servers.shuffled().lazy.compactMap(Self.connection).first else {
            close(client)
            return []
        }
        _ = fcntl(upstream, F_SETFL, O_NONBLOCK)
        return [
            Way(from: client, to: upstream, direction: .toServer), Way(from: upstream, to: client, direction: .toClient),
        ]
    }

    /// - Returns: nil when nobody listens.
    private static func connection(to server: Int) -> Int32? {
        let upstream = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = LocalSocket.address(server)
        if with(&address, { connect(upstream, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }) == 0 { return upstream }
        close(upstream)
        return nil
    }

    /// - Returns: false when the connection is over.
    private func move(_ way: inout Way) -> Bool {
        if way.waiting.isEmpty {
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = recv(way.from, &piece, piece.count, 0)
            if count < 0 { return errno == EAGAIN || errno == EINTR }
            if count == 0 { return false }
            way.waiting = piece[..<count]
            if way.direction == .toServer { pieces.withLock { $0 += 1 } }
        }
        let count = way.waiting.withUnsafeBytes { send(way.to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        way.waiting = way.waiting.dropFirst(count)
        return true
    }
}
