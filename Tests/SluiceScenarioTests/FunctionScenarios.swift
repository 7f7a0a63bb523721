import Foundation
import GatewayTestSupport
import NIOCore
import NetTestSupport
import SluiceCore
import SluiceSDK
import SluiceValues
import TestSupport
import Testing

/// Functions of an app, from the SDK through a gateway to a service of the app's own.
@Suite(.timeLimit(.minutes(2))) struct `Functions of an app` {
    /// Answers with the sum of the arguments, and fails without any.
    private static func service() async throws -> RawPeer {
        try await RawPeer { request, channel in
            let body = request.split(separator: "\r\n\r\n", maxSplits: 1).last.flatMap { try? JSON.parse(Array($0.utf8)) }
            let numbers = (body?["arguments"]?.array ?? []).compactMap { $0["$numberLong"]?.string.flatMap { Int($0) } }
            let answer: JSON =
                numbers.isEmpty
                ? ["error": ["message": "There is nothing to add."]]
                : ["result": ["sum": ["$numberLong": .string("\(numbers.reduce(0, +))")], "user": body?["user"]?["id"] ?? .null]]
            channel.writeAndFlush(RawPeer.text("200 OK", answer.text), promise: nil)
        }
    }

    private static func files(_ service: RawPeer) -> [String: String] {
        [
            "functions/config.json": #"[{ "name": "add" }, { "name": "secret", "private": true }, { "name": "nowhere" }]"#,
            "secrets.json": #"{ "hook": "a key of the service" }"#,
            "sluice.json": """
            {
                "functions": {
                    "*": { "url": "http://127.0.0.1:\(service.port)/", "secret": "hook", "allow_private_addresses": true },
                    "nowhere": { "url": "https://127.0.0.1:\(service.port)/", "secret": "hook" }
                }
            }
            """,
        ]
    }

    @Test func `are called through the SDK, for the user who is logged in`() async throws {
        let service = try await Self.service()
        try await RunningGateway.with(files: Self.files(service)) { gateway in
            let user = try await Phone.user(gateway, Phone.Said(), try Phone.Folder())
            let result = try await user.functions.add(1, 2, .int64(39))
            #expect(result == ["sum": .int64(42), "user": .string(user.id)])
            let request = try #require(await service.next())
            #expect(request.hasPrefix("POST / HTTP/1.1\r\n"))
            #expect(request.contains("Sluice-Signature: t="))
            let failed = await #expect(throws: AppError.self) { try await user.functions.add([]) }
            #expect(failed?.code == .functionExecutionError && failed?.message == "There is nothing to add.")
            let absent = await #expect(throws: AppError.self) { try await user.functions.secret([]) }
            #expect(absent?.code == .functionNotFound)
            // The service is in the gateway's own network, and its entry does not allow that.
            let refused = await #expect(throws: AppError.self) { try await user.functions.nowhere(1) }
            #expect(refused?.code == .functionExecutionError && refused?.message.contains("127.0.0.1") == false)
            let metrics = try await gateway.text("/metrics")
            #expect(metrics.contains(#"sluice_function_calls_total{function="add"} 2"#), "\(metrics)")
            #expect(metrics.contains(#"sluice_function_failures_total{function="nowhere"} 1"#))
        }
        await service.close()
    }

    /// Answers with `true` for Ann, and not at all while it is away.
    private static func judge(_ isAway: Watched<Bool>) async throws -> RawPeer {
        try await RawPeer { request, channel in
            let body = request.split(separator: "\r\n\r\n", maxSplits: 1).last.flatMap { try? JSON.parse(Array($0.utf8)) }
            let isAnn = body?["arguments"]?.array?.first == "ann@example.com"
            let answer =
                isAway.value
                ? RawPeer.text("503 Busy") : RawPeer.text("200 OK", isAnn ? #"{"result": true}"# : #"{"result": false}"#)
            channel.writeAndFlush(answer, promise: nil)
        }
    }

    private static let roles = """
        {
            "database": "public", "collection": "orders",
            "roles": [
                {
                    "name": "chief", "apply_when": { "%%true": { "%function": { "name": "isChief", "arguments": ["%%user.data.email"] } } },
                    "document_filters": { "read": true, "write": true }, "read": true, "write": true, "insert": true, "delete": true
                },
                {
                    "name": "north", "apply_when": {},
                    "document_filters": { "read": { "store": "north" }, "write": { "store": "north" } },
                    "read": true, "write": true, "insert": true, "delete": true
                }
            ]
        }
        """

    @MainActor
    @Test func `decide on the role of a session, and no one loses objects while the service is away`() async throws {
        let isAway = Watched(true)
        let service = try await Self.judge(isAway)
        var files = Self.files(service)
        files["functions/config.json"] = #"[{ "name": "isChief", "private": true }]"#
        files["sluice.json"] = files["sluice.json"]?.replacing(/,\s*"nowhere": \{[^}]*\}/, with: "")
        files[ShopApp.table("orders", "rules")] = Self.roles
        try await RunningGateway.with(files: files) { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store) VALUES ('n', 'north'), ('s', 'south')")
            _ = try await gateway.createUser("ann@example.com")
            _ = try await gateway.createUser("bob@example.com")
            // The session waits for the service, and opens once it is back.
            async let opening = Phone.open(gateway, orders: ["store IN {'north', 'south'}"], name: "ann@example.com")
            let first = try #require(await service.next())
            #expect(first.contains(#""function":"isChief""#) && first.contains("ann@example.com"))
            isAway.change { $0 = false }
            let ann = try await opening
            #expect(ann.keys == ["n", "s"])
            let bob = try await Phone.open(gateway, orders: ["store IN {'north', 'south'}"], name: "bob@example.com")
            #expect(bob.keys == ["n"])
            // Writes are checked by the role of the session.
            try ann.add("s2", store: "south")
            try bob.add("s3", store: "south")
            try await bob.wait { Set($0.map(\._id)) == ["n"] }
            #expect(try await gateway.eventually("SELECT count(*) FROM orders WHERE store = 'south'", is: 2))
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 's3'") == 0)
        }
        await service.close()
    }
}
