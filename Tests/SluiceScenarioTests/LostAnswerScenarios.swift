import GatewayTestSupport
import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceWire
import Synchronization
import TestSupport
import Testing

/// What was refused of asymmetric objects, when the connection ends between the gateway's note of it and the answer.
@Suite(.timeLimit(.minutes(3))) struct `An acknowledgement of asymmetric objects that is lost` {
    private final class Lost: Sendable {
        private let acknowledgements = Mutex(0)

        /// - Returns: which it is, from 1.
        func next() -> Int {
            acknowledgements.withLock { acknowledgements in
                acknowledgements += 1
                return acknowledgements
            }
        }
    }

    private static let north = """
        {
            "database": "public", "collection": "readings",
            "roles": [
                {
                    "name": "north", "apply_when": {}, "document_filters": { "read": true, "write": { "store": "north" } },
                    "read": true, "write": true, "insert": true, "delete": true
                }
            ]
        }
        """

    private static func send(_ device: EngineDevice, _ keys: [String], store: String) throws {
        let transaction = try device.replica.beginWrite()
        for key in keys {
            try transaction.create(type: 1, key: .string(key), values: ["store": .string(store), "value": .double(1)])
        }
        try transaction.commit()
    }

    private static func refused(_ device: EngineDevice) -> [[String]] {
        device.reports.compactMap { report in
            if case .refused(let writes) = report { writes.map { "\($0.object.key)" } } else { nil }
        }
    }

    @Test func `has the app told once all the same`() async throws {
        let lost = Lost()
        try await RunningGateway.with(files: [ShopApp.table("readings", "rules"): Self.north]) { gateway in
            let (folder, token) = (try Phone.Folder(), try await gateway.anonymousToken())
            let device = try EngineDevice(
                gateway, token: token, path: folder.replica, schema: EngineDevice.sending,
                transport: CutTransport { message in
                    if case .ingestAck? = message.kind { lost.next() <= 2 } else { false }
                })
            try Self.send(device, ["a", "b"], store: "south")
            try await device.engine.wait(for: .upload, milliseconds: 180_000)
            #expect(Self.refused(device) == [["\(Value.string("a"))", "\(Value.string("b"))"]])
            // And not again when the session begins anew, or later ones are acknowledged.
            device.engine.pause()
            device.engine.start()
            for number in 0..<6 {
                try Self.send(device, ["n\(number)"], store: "north")
                try await device.engine.wait(for: .upload, milliseconds: 180_000)
            }
            #expect(Self.refused(device).count == 1 && lost.next() > 3)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 6)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 2)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_answer") == 0)
            await device.stop()
        }
    }

    /// How many objects of a device's file wait to be acknowledged.
    private static func waiting(_ path: String) throws -> Int64? {
        let file = try SQLiteLibrary(reading: path)
        try file.run("PRAGMA busy_timeout = 30000")
        return try file.run("SELECT count(*) FROM _sluice_ingest").first
    }

    @Test func `Scenario 40: has the objects stored once that an app had sent when it ended`() async throws {
        try await RunningGateway.with { gateway in
            let (folder, token) = (try Phone.Folder(), try await gateway.anonymousToken())
            let (acknowledgements, came) = AsyncStream<Void>.makeStream()
            let device = try EngineDevice(
                gateway, token: token, path: folder.replica, schema: EngineDevice.sending,
                transport: CutTransport { message in
                    guard case .ingestAck? = message.kind else { return false }
                    came.yield()
                    return true
                })
            try Self.send(device, (0..<1_500).map { "r\($0)" }, store: "north")
            for await _ in acknowledgements { break }
            await device.stop()
            let first = try #require(try await gateway.count("SELECT count(*) FROM readings"))
            #expect(try first >= 1_000 && Self.waiting(folder.replica) == 1_500)

            let again = try EngineDevice(gateway, token: token, path: folder.replica, schema: EngineDevice.sending)
            try await again.engine.wait(for: .upload, milliseconds: 180_000)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 1_500)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 0)
            #expect(try Self.waiting(folder.replica) == 0)
            let troubles = again.reports.filter { report in
                switch report {
                case .refused, .warning, .interrupted, .stopped, .resetting, .clientReset: true
                default: false
                }
            }
            #expect(troubles.isEmpty, "\(troubles)")
            await again.stop()
        }
    }
}
