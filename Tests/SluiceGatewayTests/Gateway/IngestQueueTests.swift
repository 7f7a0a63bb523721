import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceValues
import Synchronization
import TestSupport
import Testing

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
        let answered = try await found(every: .milliseconds(50)) {
            let reply = try await gateway.ingest(line, token: token)
            if reply.status == status { return reply }
            try otherwise()
            return nil
        }
        return try #require(answered, "No answer had the status \(status).")
    }
}

/// Requests whose bodies never come.
private final class HeldRequests: Sendable {
    private let sockets = Mutex<[LocalSocket]>([])
    private let port: Int
    private let head: [UInt8]

    init(port: Int, token: String) {
        self.port = port
        head = Array(
            """
            POST /v1/ingest/Reading HTTP/1.1\r
            Host: test\r
            Authorization: Bearer \(token)\r
            Content-Type: application/x-ndjson\r
            Content-Length: 1000\r
            \r\n
            """.utf8)
    }

    /// So many more.
    func open(_ count: Int) throws {
        for _ in 0..<count {
            let socket = try LocalSocket(port: port)
            try socket.write(head)
            sockets.withLock { $0.append(socket) }
        }
    }

    func close() { sockets.withLock { $0 = [] } }
}
