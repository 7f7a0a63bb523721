import Foundation
import SluiceCore
import SluiceGateway
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.timeLimit(.minutes(5))) struct `The queue of ingest by HTTP` {
    @Test func `refuses beyond its bound and says when to come again, and takes again when there is room`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let held = HeldRequests(port: gateway.port, token: token)
            try held.open(Limits.ingestRequests)
            let line = Array(#"{"_id": "one", "store": "north", "value": 1}"#.utf8)
            // Of those that came one may have been refused for something else, so more come until it is full.
            let full = try await Self.ingest(line, gateway, token, until: 429) { try held.open(8) }
            #expect(full.headers["retry-after"] == "2", "\(full)")
            #expect(full.json["code"]?.int == Int64(ErrorCode.tooManyRequests.rawValue), "\(full)")
            held.close()
            let taken = try await Self.ingest(line, gateway, token, until: 200) {}
            #expect(taken.accepted == 1 && taken.json["complete"] == true)
        }
    }

    /// Others come and go on their own time, so it is asked until the status is that.
    private static func ingest(
        _ line: [UInt8], _ gateway: RunningGateway, _ token: String, until status: Int, otherwise: () throws -> Void
    ) async throws -> RunningGateway.IngestReply {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            let reply = try await gateway.ingest(line, token: token)
            if reply.status == status { return reply }
            try #require(ContinuousClock.now < deadline, "The last answer was \(reply).")
            try otherwise()
            try await Task.sleep(for: .milliseconds(50))
        }
    }
}

/// Requests whose bodies never come.
private final class HeldRequests: Sendable {
    private let sockets = Mutex<[Int32]>([])
    private let port: Int
    private let head: String

    init(port: Int, token: String) {
        self.port = port
        head =
            "POST /v1/ingest/Reading HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(token)\r\n"
            + "Content-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n"
    }

    deinit { close() }

    /// So many more.
    func open(_ count: Int) throws {
        for _ in 0..<count {
            let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            try #require(socket >= 0, "There is no socket: errno \(errno).")
            sockets.withLock { $0.append(socket) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(port).bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            // To this machine both are done at once.
            let connected = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
            }
            try #require(connected == 0, "Connecting failed: errno \(errno).")
            let sent = Glibc.send(socket, head, head.utf8.count, Int32(MSG_NOSIGNAL))
            try #require(sent == head.utf8.count, "Sending failed: errno \(errno).")
        }
    }

    func close() {
        sockets.withLock { sockets in
            for socket in sockets { Glibc.close(socket) }
            sockets = []
        }
    }
}
