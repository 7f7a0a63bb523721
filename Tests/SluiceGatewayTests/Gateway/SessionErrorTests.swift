import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceWire
import SwiftProtobuf
import TestSupport
import Testing

/// Errors that end one session, as its client is told them; another session on the same gateway goes on.
@Suite(.timeLimit(.minutes(5))) struct `A session that cannot go on` {
    @Test func `is of a client that speaks another version, in its first message or when it connects`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.session(token: try await gateway.anonymousToken())
                try await session.send(.hello(.with { $0.protocol = WireProtocol.version + 1 }))
                let error = try await session.failure()
                #expect(error.code == .wrongProtocolVersion && error.message.contains("\(WireProtocol.version + 1)"), "\(error)")
                #expect(session.error?.action == .applicationBug && session.welcome == nil)
                let refusal = await #expect(throws: RawSocket.Failure.self) {
                    try await RawSocket.webSocket(gateway.url, speaking: "sluice.v99")
                }
                let answer = refusal?.what ?? ""
                #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("\(ErrorCode.wrongProtocolVersion.rawValue)"), "\(answer)")
                #expect(answer.contains("sluice.v99") && answer.contains(WireProtocol.name), "\(answer)")
            }
        }
    }

    @Test func `is of an app with classes and properties that the server has not, and names what would be added`() async throws {
        let name = Property(id: 1, name: "_id", type: .string)
        let news = Schema([
            ObjectType(name: "Order", properties: [name, Property(id: 2, name: "weight", type: .double)]),
            ObjectType(name: "Crate", properties: [name, Property(id: 2, name: "size", type: .int)]),
        ])
        let other = Schema([ObjectType(name: "Order", properties: [name, Property(id: 2, name: "size", type: .string)])])
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let missing = try await Self.failure(gateway, news)
                #expect(missing.error.code == .invalidSchemaChange && missing.action == .applicationBug, "\(missing)")
                #expect(missing.message.contains("property Order.weight, class Crate"), "\(missing)")
                let different = try await Self.failure(gateway, other)
                #expect(different.error.code == .invalidSchemaChange, "\(different)")
                #expect(different.message.contains("Order.size") && different.message.contains("string"), "\(different)")
                #expect(different.fix.contains("development adds what is new and changes nothing"), "\(different)")
            }
            // Nothing of it was added.
            #expect(try await gateway.count("SELECT count(*) FROM information_schema.columns WHERE column_name = 'weight'") == 0)
            #expect(try await gateway.count("SELECT count(*) FROM information_schema.tables WHERE lower(table_name) = 'crate'") == 0)
        }
    }

    private static func failure(_ gateway: RunningGateway, _ schema: Schema) async throws -> PBSessionError {
        let (session, token) = (try await gateway.session(token: ""), try await gateway.anonymousToken())
        try await session.send(
            .hello(
                .with {
                    $0.protocol = WireProtocol.version
                    $0.accessToken = token
                    $0.schema = schema.messages
                }))
        _ = try await session.failure()
        return try #require(session.error)
    }

    /// The client has come back before the gateway could see that the connection before is dead.
    @Test func `is the older of two of one client replica, as soon as the newer is open, and no other`() async throws {
        try await RunningGateway.with { gateway in
            let token = try await gateway.anonymousToken()
            let (first, other) = (try await gateway.session(token: token), try await gateway.session(token: token))
            for session in [first, other] {
                try await session.hello(["Order"])
                try await session.subscribe(1, [("Order", "store == 'north'"), ("Order", "store == 'south'")])
            }
            let second = try await gateway.session(token: token)
            second.takeOver(first)
            try await second.hello(["Order"])
            let error = try await first.failure()
            #expect(error.code == .resync && error.message.contains("has begun another session"), "\(error)")
            #expect(first.error?.action == .transient && first.error?.fatal == true)
            try await second.subscribe(1, [("Order", "store == 'north'")])
            #expect(try await eventually(every: .milliseconds(50)) { try await gateway.metric("sluice_subscriptions") == 3 })
            // What the first one gave back when it was over was its own: the second is still the one that is found.
            let third = try await gateway.session(token: token)
            third.takeOver(second)
            try await third.hello(["Order"])
            #expect(try await second.failure().code == .resync)
            try await third.subscribe(1, [("Order", "store == 'north'")])
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('a', 'north', 1)")
            for session in [other, third] { try await session.receive { $0.keys("Order") == ["a"] } }
            for session in [other, third] { session.close() }
        }
    }

    @Test func `is of a device that writes to an object whose clocks are damaged, and comes back when they are not any more`() async throws
    {
        let log = LinesOfLog()
        try await RunningGateway.with(logger: Logger(label: "test") { _ in log }) { gateway in
            try await gateway.besideHealthySession {
                let token = try await gateway.anonymousToken()
                func comeBack(after last: TestSession? = nil) async throws -> TestSession {
                    let session = try await gateway.session(token: token)
                    if let last { session.takeOver(last) }
                    try await session.hello(["Order"])
                    try await session.subscribe(1, [("Order", "store == 'south'")])
                    return session
                }
                let change = [TestSession.order("a", ["size": .int(2)], .set)]
                let session = try await comeBack()
                try await session.upload(1, [TestSession.order("a", ["store": .string("south"), "size": .int(1)])])
                try await session.receive { $0.acknowledged == 1 }
                try await gateway.sql(#"UPDATE sluice.row_clock SET clocks = '\xff'"#)
                try await session.upload(2, change)
                let error = try await session.failure()
                // What is wrong is the operators' to know.
                #expect(error.code == .internalError && error.message == ErrorCode.internalError.meaning, "\(error)")
                await log.wait(for: "A session ends with an error", about: "clocks")
                #expect(session.error?.action == .transient && session.error?.fatal == true)
                #expect(try await gateway.count("SELECT size FROM orders WHERE _id = 'a'") == 1)

                try await gateway.sql("DELETE FROM sluice.row_clock")
                let again = try await comeBack(after: session)
                try await again.upload(2, change)
                try await again.receive { $0.acknowledged == 2 }
                #expect(try await gateway.count("SELECT size FROM orders WHERE _id = 'a'") == 2)
                again.close()
            }
        }
    }

    @Test func `is of a client that does not read, which comes back and has everything`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let token = try await gateway.anonymousToken()
                let socket = try await Self.socket(gateway, token: token)
                try await socket.send(
                    .subscribe(
                        .with {
                            $0.version = 1
                            $0.queries = [
                                .with {
                                    $0.type = "Order"
                                    $0.text = "store == 'south'"
                                }
                            ]
                        }))
                while true {
                    let bytes = try #require(try await socket.message())
                    let message: PBServerMessage = try WireProtocol.decode(from: bytes)
                    if case .bootstrapEnd = message.kind { break }
                }
                // As much as the gateway keeps for it and the kernel between the two takes: what is that, nobody can say beforehand.
                var rows = 0
                while !(try await Self.isDropped(gateway)), rows < 120 {
                    try await gateway.sql(
                        """
                        INSERT INTO orders (_id, store, size, title)
                        SELECT 'big' || i, 'south', 1, repeat('x', 1000000) FROM generate_series(\(rows + 1), \(rows + 4)) i
                        """)
                    rows += 4
                }
                try #require(try await Self.isDropped(gateway), "\(rows) MB wait for a client that does not read")
                withExtendedLifetime(socket) {}
                let again = try await gateway.session(token: token)
                try await again.hello(["Order"])
                try await again.subscribe(1, [("Order", "store == 'south'")])
                #expect(again.keys("Order").count == rows)
                again.close()
            }
        }
    }

    /// What it is answered would fill the gateway's memory: it is asked for no more, and sent away when it does not read on.
    @Test func `is of a client that sends and does not read`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let socket = try await Self.socket(gateway, token: try await gateway.anonymousToken())
                for number in UInt64(1)...UInt64(Limits.subscriptionChanges) {
                    // The answer names the class that does not exist.
                    let query = PBQuery.with {
                        $0.type = "Order\(number)" + String(repeating: "x", count: 120_000)
                        $0.text = "TRUEPREDICATE"
                    }
                    try await socket.send(
                        .subscribe(
                            .with {
                                $0.version = number
                                $0.queries = [query]
                            }))
                }
                #expect(try await eventually(every: .milliseconds(200)) { try await Self.isDropped(gateway) })
                withExtendedLifetime(socket) {}
            }
        }
    }

    /// A client by hand that has said hello, and reads only what it is told to.
    private static func socket(_ gateway: RunningGateway, token: String) async throws -> RawSocket {
        let socket = try await RawSocket.webSocket(gateway.url)
        try await socket.send(
            .hello(
                .with {
                    $0.protocol = WireProtocol.version
                    $0.accessToken = token
                    $0.schema = [.with { $0.name = "Order" }]
                }))
        return socket
    }

    /// Who does not read is told nothing: operators are.
    private static func isDropped(_ gateway: RunningGateway) async throws -> Bool {
        try await gateway.text("/metrics").contains(#"sluice_session_errors_total{code="\#(ErrorCode.slowClient.name)"} 1"#)
    }
}
