import Foundation
import SluiceCore
import SluiceReplica
import SluiceSync
import Testing

/// Roles that are edited while a device is in the middle of something.
@Suite(.timeLimit(.minutes(5))) struct `Roles that are edited meanwhile` {
    /// The shop in which everybody reads orders up to a size.
    private static func files(upTo size: Int) -> [String: String] {
        var files = ShopApp.files
        // What may be written may be read, so both are bounded.
        let filter = #"{ "size": { "$lte": \#(size) } }"#
        let role = NoteApp.role("everybody", read: filter, write: filter)
        files[ShopApp.table("orders", "rules")] = #"{ "database": "public", "collection": "orders", "roles": [\#(role)] }"#
        return files
    }

    private static func write(_ device: EngineDevice, _ key: String) throws {
        let transaction = try device.replica.beginWrite()
        try transaction.create(type: 0, key: .string(key), values: ["store": .string("north"), "size": .int(3)])
        try transaction.commit()
    }

    @Test func `Scenario 26: in a bootstrap and in a client reset, the device ends with what it may see then`() async throws {
        let (all, few) = (Self.files(upTo: 1_000_000), Self.files(upTo: 500))
        let folder = try Phone.Folder()
        try await RunningGateway.deploy { deployment in
            let (device, port) = try await deployment.run(all) { gateway in
                try await gateway.sql(
                    """
                    INSERT INTO orders (_id, store, title, size)
                    SELECT 'n' || g, 'north', repeat('t', 50), g FROM generate_series(1, 20000) g
                    """)
                let path = folder.url.appendingPathComponent("a.replica").path
                let device = try EngineDevice(gateway, token: try await gateway.anonymousToken(), path: path)
                try device.subscribe()
                await device.untilRowsCome()
                return (device, gateway.port)
            }
            try await deployment.run(few, port: port) { gateway in
                try await device.engine.wait(for: .download, milliseconds: 60_000)
                #expect(Set(try device.sizes().values) == Set(1...500))
                #expect(!device.reports.contains { $0.isReset })
                try await Phone.forgetDevices(gateway)
            }
            try Self.write(device, "mine")
            try await deployment.run(all, port: port) { _ in
                for await report in device.news where report.isReset { break }
                await device.untilRowsCome()
            }
            try await deployment.run(few, port: port) { gateway in
                try await device.engine.wait(for: .upload, milliseconds: 60_000)
                try await device.engine.wait(for: .download, milliseconds: 60_000)
                let sizes = try device.sizes()
                #expect(sizes.count == 501 && sizes["mine"] == 3 && sizes["n500"] == 500 && sizes["n501"] == nil)
                #expect(device.reports.count { $0.isReset } == 1, "the edit brings no reset of its own")
                #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
                try await Self.checkFresh(gateway, folder)
                await device.stop()
            }
        }
    }

    /// A file that is new has nothing that the edit could change.
    private static func checkFresh(_ gateway: RunningGateway, _ folder: Phone.Folder) async throws {
        let path = folder.url.appendingPathComponent("b.replica").path
        let fresh = try EngineDevice(gateway, token: try await gateway.anonymousToken(), path: path)
        try fresh.subscribe()
        try await fresh.engine.wait(for: .download, milliseconds: 60_000)
        #expect(try fresh.sizes().count == 501)
        #expect(!fresh.reports.contains { $0.isInterruption || $0.isReset }, "\(fresh.reports)")
        await fresh.stop()
    }
}
