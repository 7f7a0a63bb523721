import Foundation
import GatewayTestSupport
import SluiceCore
import SluicePipeline
import SluiceReplica
import SluiceSync
import SluiceWire
import Testing

/// Gateways that stop syncing for a while, and databases that go back in time.
@Suite(.timeLimit(.minutes(5))) struct `The life of an app` {
    private static func write(_ device: EngineDevice, _ key: String) throws { try write(device.replica, key) }

    private static func write(_ replica: Replica, _ key: String) throws {
        let transaction = try replica.beginWrite()
        try transaction.create(type: 0, key: .string(key), values: ["store": .string("north"), "size": .int(3)])
        try transaction.commit()
    }

    /// As a phone's backup does it, or a folder that is copied back. A file's changesets are known by their numbers, and those that it
    /// makes then have numbers that the gateway has seen: as many as it has, fewer or more.
    @Test(arguments: [1, 2, 4])
    func `Scenario 47: a device whose file was restored from a backup goes on, and loses nothing that it writes then`(
        count: Int
    ) async throws {
        try await RunningGateway.with { gateway in
            let folder = try Phone.Folder()
            let token = try await gateway.anonymousToken()
            let device = try EngineDevice(gateway, token: token, path: folder.replica)
            try device.subscribe()
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            try Self.write(device, "before")
            try await device.engine.wait(for: .upload, milliseconds: 180_000)
            let backup = folder.url.appendingPathComponent("b.replica").path
            await device.stop()
            for part in ["", "-wal"] where FileManager.default.fileExists(atPath: folder.replica + part) {
                try FileManager.default.copyItem(atPath: folder.replica + part, toPath: backup + part)
            }
            var expected: Set = ["before", "since", "since then"]
            let going = try EngineDevice(gateway, token: token, path: folder.replica)
            for key in ["since", "since then"] { try Self.write(going, key) }
            try await going.engine.wait(for: .upload, milliseconds: 180_000)
            await going.stop()

            do {
                let offline = try Replica(path: backup, schema: EngineDevice.schema)
                for number in 0..<count {
                    expected.insert("restored \(number)")
                    try Self.write(offline, "restored \(number)")
                }
            }
            let restored = try EngineDevice(gateway, token: token, path: backup)
            try await restored.engine.wait(for: .upload, milliseconds: 180_000)
            try Self.write(restored, "last")
            expected.insert("last")
            try await restored.engine.wait(for: .upload, milliseconds: 180_000)
            try await restored.engine.wait(for: .download, milliseconds: 180_000)
            #expect(Set(try await gateway.texts("SELECT _id FROM orders")) == expected)
            #expect(Set(try restored.sizes().keys) == expected)
            #expect(restored.reports.filter(\.isReset).isEmpty)
            await restored.stop()
        }
    }

    private static func send(_ device: EngineDevice, _ key: String, store: String = "north") async throws {
        let transaction = try device.replica.beginWrite()
        try transaction.create(type: 1, key: .string(key), values: ["store": .string(store), "value": .double(1)])
        try transaction.commit()
        try await device.engine.wait(for: .upload, milliseconds: 180_000)
    }

    /// The gateway still has the answer to one of the last batches, of which it has refused something; the restored file does not know of
    /// that batch.
    @Test(arguments: [7, 8, 10])
    func `Scenario 47: asymmetric objects of a file that was restored from a backup are taken, and none is mistaken for others`(
        refused: Int
    ) async throws {
        let role = NoteApp.role("north", write: #"{ "store": "north" }"#)
        let rules = #"{ "database": "public", "collection": "readings", "roles": [\#(role)] }"#
        try await RunningGateway.with(files: [ShopApp.table("readings", "rules"): rules]) { gateway in
            let (folder, token) = (try Phone.Folder(), try await gateway.anonymousToken())
            let backup = folder.url.appendingPathComponent("b.replica").path
            var expected: Set<String> = []
            func open(_ path: String) throws -> EngineDevice {
                try EngineDevice(gateway, token: token, path: path, schema: EngineDevice.sending)
            }
            let device = try open(folder.replica)
            for number in 1...3 {
                try await Self.send(device, "before \(number)")
                expected.insert("before \(number)")
            }
            await device.stop()
            for part in ["", "-wal"] where FileManager.default.fileExists(atPath: folder.replica + part) {
                try FileManager.default.copyItem(atPath: folder.replica + part, toPath: backup + part)
            }
            let going = try open(folder.replica)
            for number in 4...10 {
                try await Self.send(going, "since \(number)", store: number == refused ? "south" : "north")
                if number != refused { expected.insert("since \(number)") }
            }
            await going.stop()
            #expect(try await gateway.count("SELECT number FROM sluice.ingest_number") == 10)
            #expect(try await gateway.count("SELECT number FROM sluice.ingest_answer") == Int64(refused))

            let restored = try open(backup)
            for number in 1...4 {
                try await Self.send(restored, "restored \(number)")
                expected.insert("restored \(number)")
            }
            #expect(Set(try await gateway.texts("SELECT _id FROM readings")) == expected)
            #expect(restored.reports.allSatisfy { if case .refused = $0 { false } else { true } }, "\(restored.reports)")
            #expect(try await gateway.count("SELECT number FROM sluice.ingest_number") == 14)
            await restored.stop()
        }
    }

    private static func device(_ gateway: RunningGateway, _ folder: Phone.Folder) async throws -> EngineDevice {
        let path = folder.replica
        let device = try EngineDevice(gateway, token: try await gateway.anonymousToken(), path: path)
        try device.subscribe()
        try await device.engine.wait(for: .download, milliseconds: 180_000)
        return device
    }

    @Test func `Scenario 52: while sync is disabled clients are sent away, and go on without a reset when it is enabled again`()
        async throws
    {
        let sync = try #require(ShopApp.files["sync/config.json"])
        var paused = ShopApp.files
        paused["sync/config.json"] = sync.replacing(#""state": "enabled""#, with: #""state": "disabled""#)
        try #require(paused != ShopApp.files)
        let disabled = paused
        let folder = try Phone.Folder()
        try await RunningGateway.deploy { deployment in
            let (device, port) = try await deployment.run(ShopApp.files) { gateway in
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
                return (try await Self.device(gateway, folder), gateway.port)
            }
            try Self.write(device, "mine")
            try await deployment.run(disabled, port: port) { gateway in
                // Logging in is no session.
                let user = try await gateway.account()
                let error = await #expect(throws: SluiceError.self) { try await gateway.session(token: user.token) }
                #expect(error?.message.contains("503") == true, "\(String(describing: error))")
                let refusal = await #expect(throws: (any Error).self) { try await RawSocket.webSocket(gateway.url) }
                #expect(
                    "\(refusal.map { "\($0)" } ?? "")".contains("\(ErrorCode.sessionDisabled.rawValue)"), "\(String(describing: refusal))")
                #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 0)
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n2', 'north', 2)")
            }
            try await deployment.run(ShopApp.files, port: port) { gateway in
                try await device.engine.wait(for: .upload, milliseconds: 120_000)
                try await device.engine.wait(for: .download, milliseconds: 180_000)
                #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
                #expect(try device.sizes() == ["n1": 1, "n2": 2, "mine": 3])
                #expect(!device.reports.contains { $0.isReset })
                await device.stop()
            }
        }
    }

    @Test func `Scenario 47: a device notices a database that was restored from an older backup, and keeps what it has not uploaded`()
        async throws
    {
        let folder = try Phone.Folder()
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let device = try await Self.device(gateway, folder)
            for key in ["a", "b"] {
                try Self.write(device, key)
                try await device.engine.wait(for: .upload, milliseconds: 180_000)
            }
            device.engine.pause()
            for await report in device.news where report == .connection(.disconnected) { break }
            // What a backup from between the two would say.
            try await gateway.sql(
                """
                DELETE FROM orders WHERE _id = 'b';
                UPDATE sluice.client SET last_changeset = last_changeset - 1 WHERE last_changeset > 0
                """)
            try Self.write(device, "c")
            device.engine.start()
            try await device.engine.wait(for: .upload, milliseconds: 180_000)
            try await device.engine.wait(for: .download, milliseconds: 180_000)
            #expect(try device.sizes() == ["n1": 1, "a": 3, "c": 3])
            #expect(device.reports.count { $0.isReset } == 1)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id IN ('a', 'c')") == 2)
            await device.stop()
        }
    }

    @Test func `Scenario 47: a file that has seen what the database has not is told so`() async throws {
        try await RunningGateway.with { gateway in
            let user = try await gateway.account()
            let first = try await gateway.session(token: user.token)
            try await first.hello()
            let file = try #require(first.welcome)
            first.close()
            for (applied, code) in [(LSN(rawValue: 1), ErrorCode?.none), (LSN(rawValue: 1 << 60), .badClientFile)] {
                let session = try await gateway.session(token: user.token)
                session.goOn(from: TestSession.File(rows: [:], held: nil, applied: applied))
                try await session.sendHello(client: file.client, secret: Array(file.secret))
                if let code {
                    let error = try await session.failure()
                    #expect(error.code == code && error.message.contains("restored from an older backup"), "\(error)")
                } else {
                    try await session.receive { $0.welcome != nil }
                }
                session.close()
            }
        }
    }
}
