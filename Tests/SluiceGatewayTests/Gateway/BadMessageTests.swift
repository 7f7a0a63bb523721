import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceWire
import SwiftProtobuf
import Testing

/// Each test sends one kind of nonsense and then has another session on the same gateway get a change.
@Suite struct `A gateway that is sent bad messages` {
    @Test func `answers bytes that are no message with an error and ends that session alone`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession()
                try await session.send(bytes: [0xFF, 0x13, 0x37, 0, 1, 2])
                #expect(try await session.failure().code == .badSyntax)
            }
        }
    }

    @Test func `answers a message of a kind that it does not know`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession()
                // Field 99, a varint.
                try await session.send(bytes: [0x98, 0x06, 0x01])
                #expect(try await session.failure().code == .unknownMessage)
            }
        }
    }

    @Test func `closes a connection whose frames break the WebSocket protocol with 1002`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let socket = try await RawSocket.webSocket(gateway.url)
                // Opcode 3 is reserved; masked with zeros.
                try await socket.send([0x83, 0x80, 0, 0, 0, 0])
                #expect(try await socket.closeCode() == 1002)
            }
        }
    }

    @Test func `Scenario 59: answers a message over the limit with an error and close 1009`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let socket = try await RawSocket.webSocket(gateway.url)
                let token = try await gateway.anonymousToken()
                try await socket.send(.hello(.with { ($0.protocol, $0.accessToken) = (WireProtocol.version, token) }))
                #expect(try await socket.message() != nil)
                let length = UInt64(Limits.messageBytes + 1)
                try await socket.send([0x82, 0xFF] + withUnsafeBytes(of: length.bigEndian, Array.init) + [0, 0, 0, 0])
                let last = try #require(try await socket.message())
                let message: PBServerMessage = try WireProtocol.decode(from: last)
                #expect(message.error.code == UInt32(ErrorCode.limitsExceeded.rawValue))
                #expect(message.error.message.contains("16777216"))
                #expect(try await socket.closeCode() == 1009)
            }
        }
    }

    @Test func `refuses everything before hello`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.session(token: try await gateway.anonymousToken())
                try await session.sendSubscribe(1, [("Order", "TRUEPREDICATE")])
                #expect(try await session.failure().code == .badMessageOrder)
            }
        }
    }

    @Test func `refuses a second hello`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession()
                try await session.sendHello()
                #expect(try await session.failure().code == .badMessageOrder)
            }
        }
    }

    @Test func `says one error and does nothing more for a session that it has ended`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession()
                try await session.upload(7, [TestSession.order("gap", ["store": .string("north"), "size": .int(1)])])
                // The gateway may have closed the connection by now.
                try? await session.upload(1, [TestSession.order("late", ["store": .string("north"), "size": .int(1)])])
                let error = try await session.failure()
                #expect(error.code == .badClientFile)
                #expect(session.acknowledged == 0)
            }
            let count = try await gateway.count("SELECT count(*) FROM orders WHERE _id IN ('gap', 'late')")
            #expect(count == 0)
        }
    }

    @Test func `refuses a subscription set of a version that no database holds`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession()
                try await session.sendSubscribe(1 << 63, [("Order", "TRUEPREDICATE")])
                #expect(try await session.failure().code == .badSyntax)
            }
        }
    }

    // MARK: Uploads

    @Test func `refuses an upload of a class that it does not know, by name`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession()
                try await session.upload(Self.changeset { $0.type = "Nonsense" })
                let error = try await session.failure()
                #expect(error.code == .unknownType)
                #expect(error.message.contains("Nonsense"))
            }
        }
    }

    @Test func `refuses an upload with a property that it does not know`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession()
                try await session.upload(Self.changeset { $0.values.fields = [PBField(property: 4_711, .int(1))] })
                let error = try await session.failure()
                #expect(error.code == .unknownProperty)
                #expect(error.message.contains("4711"))
            }
        }
    }

    @Test func `refuses an upload with a value of the wrong type, naming the property`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession()
                let size = try #require(session.schema["Order"]?["size"])
                try await session.upload(Self.changeset { $0.values.fields = [PBField(property: size.id, .string("large"))] })
                let error = try await session.failure()
                #expect(error.code == .wrongValueType)
                #expect(error.message.contains("size"))
            }
        }
    }

    /// A changeset that creates an order, changed as the test wants.
    private static func changeset(_ change: (inout PBObjectChange) -> Void) -> PBChangeset {
        .with {
            $0.number = 1
            $0.time = HybridTime(milliseconds: SystemEnvironment().wallMilliseconds()).rawValue
            $0.changes = [
                .with {
                    $0.type = "Order"
                    $0.primaryKey = PBValue(.string("bad"))
                    $0.kind = .create
                    change(&$0)
                }
            ]
        }
    }
}
