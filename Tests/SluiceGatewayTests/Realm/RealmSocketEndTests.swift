import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceNet
import SluiceRealm
import Testing

@testable import SluiceGateway

@Suite(.timeLimit(.minutes(5))) struct `The end of a socket of Realm's protocol` {
    @Test(
        arguments: [
            (.peer(code: 1000), nil, .client), (.peer(code: nil), nil, .client), (.peer(code: 4001), .unauthorized, .client),
            (.lost("reset"), nil, .lost), (.lost("reset"), .forbidden, .lost), (.silent, nil, .silent), (.late, nil, .late),
            (.oversize, nil, .tooLarge), (.malformed("mask"), nil, .badFrame), (.shutdown, nil, .shutDown),
            (.shutdown, .shutDown, .shutDown), (.local(code: 1009), .tooLarge, .tooLarge),
            (.local(code: 1011), .protocolError, .protocolError), (.local(code: 1011), .overload, .overload),
            (.local(code: 1011), .internalError, .internalError), (.local(code: 1011), .shutDown, .shutDown),
            (.local(code: 1011), .slowClient, .slowClient), (.local(code: 4001), .unauthorized, .unauthorized),
            (.local(code: 4002), .forbidden, .forbidden), (.local(code: 1011), nil, .internalError),
        ] as [(SocketCloseReason, RealmCloseReason?, RealmSocketEnd)])
    func `has one reason`(reason: SocketCloseReason, own: RealmCloseReason?, end: RealmSocketEnd) {
        #expect(RealmSocketEnd(reason, own) == end)
    }

    private static let label = #"sluice_realm_closes_total{reason=""#

    /// The counts of the metric by reason, those of zero left out.
    private static func counts(_ gateway: RunningGateway) async throws -> [String: Int] {
        let lines = try await gateway.text("/metrics").split(separator: "\n").filter { $0.hasPrefix(label) }
        let pairs = lines.map { line in
            let parts = line.dropFirst(label.count).split(separator: "\"} ")
            return (String(parts[0]), Int(parts.last ?? "") ?? -1)
        }
        return Dictionary(pairs) { first, _ in first }.filter { $0.value != 0 }
    }

    /// Waits until one more end is counted, and checks that it is the only one.
    private static func expect(_ ends: inout [String: Int], more reason: String, _ gateway: RunningGateway) async throws {
        ends[reason, default: 0] += 1
        try await gateway.untilMetric("\(label)\(reason)\"}", is: Double(ends[reason] ?? 0))
        #expect(try await counts(gateway) == ends, "\(reason)")
    }

    @Test func `is counted once, whichever side ends it`() async throws {
        try await RunningGateway.with { gateway in
            var ends: [String: Int] = [:]
            let id = try await gateway.createUser("ada@example.com")
            let client = RealmTestClient(try ShopApp.configuration().schema)

            // Refused upgrades.
            await #expect(throws: SluiceError.self) { try await client.connect(gateway.url, app: gateway.app, token: "") }
            try await Self.expect(&ends, more: "refused", gateway)
            let token = try await gateway.token(of: id)
            await #expect(throws: SluiceError.self) {
                try await client.connect(gateway.url, app: gateway.app, token: token, offered: ["com.mongodb.realm-sync#14"])
            }
            try await Self.expect(&ends, more: "refused", gateway)

            // Ends by the gateway.
            try await client.connect(gateway.url, app: gateway.app, token: "abc")
            #expect(try await client.untilEnd().contains("4001"))
            try await Self.expect(&ends, more: "unauthorized", gateway)
            try await client.connect(gateway.url, app: gateway.app, token: token)
            try await client.send(.unbind(session: 9))
            #expect(try await client.untilEnd().contains("session 9, which is not bound"))
            try await Self.expect(&ends, more: "protocol-error", gateway)

            // Ends by the client.
            let path = "/api/client/v2.0/app/\(gateway.app)/realm-sync?baas_at=\(token)"
            for (frame, reason) in [
                ([0x88, 0x80, 0, 0, 0, 0], "client"), ([0x81, 0x80, 0, 0, 0, 0], "bad-frame"),
                ([0x82, 0xFF, 0, 0, 0, 0, 0x7F, 0, 0, 0, 0, 0, 0, 0], "too-large"), ([], "lost"),
            ] as [([UInt8], String)] {
                let socket = try await RawSocket.webSocket(gateway.url, path: path, speaking: "com.mongodb.realm-query-sync#14")
                if !frame.isEmpty {
                    try await socket.send(frame)
                    _ = try await socket.closeCode()
                }
                // Its end is that of the transport, if no frame came before.
                _ = consume socket
                try await Self.expect(&ends, more: reason, gateway)
            }

            // A user who is disabled, and one who already is.
            try await client.connect(gateway.url, app: gateway.app, token: token)
            try await client.receive { $0.reachedMark > 0 }
            _ = try await gateway.request("PUT", "/admin/v1/users/\(id)/disable", admin: true)
            #expect(try await client.untilEnd().contains("4002"))
            try await Self.expect(&ends, more: "forbidden", gateway)
            try await client.connect(gateway.url, app: gateway.app, token: token)
            #expect(try await client.untilEnd().contains("4002"))
            try await Self.expect(&ends, more: "forbidden", gateway)
        }
    }
}
