import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceSDK
import SluiceWire
import Synchronization
import TestSupport
import Testing

/// A backup of PostgreSQL is put back: system identifier, timeline, replication slot and sequences are as they were, and log positions
/// and transaction numbers of the lost time are given out anew.
@Suite(.serialized, .timeLimit(.minutes(10))) struct `A restored backup` {
    private static let rows = "INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 4) i"
    fileprivate static let north = "store == 'north'"

    /// How often an app heard of a reset.
    private final class Heard: Sendable {
        private let counts = Mutex((before: 0, after: 0))
        var all: [Int] { counts.withLock { [$0.before, $0.after] } }
        @Sendable func before(_ realm: Realm) { counts.withLock { $0.before += 1 } }
        @Sendable func after(_ before: Realm, _ after: Realm) { counts.withLock { $0.after += 1 } }
    }

    private struct Device {
        var phone: Phone
        var heard: Heard
    }

    @MainActor
    private static func device(_ gateway: RunningGateway, _ name: String) async throws -> Device {
        let heard = Heard()
        let mode: ClientResetMode =
            switch name {
            case "discarding": .discardUnsyncedChanges(beforeReset: heard.before, afterReset: heard.after)
            case "either": .recoverOrDiscardUnsyncedChanges(beforeReset: heard.before, afterReset: heard.after)
            case "manual": .manual()
            default: .recoverUnsyncedChanges(beforeReset: heard.before, afterReset: heard.after)
            }
        return Device(phone: try await Phone.open(gateway, orders: [north], mode: mode), heard: heard)
    }

    @MainActor
    @Test func `Scenario 47: devices that have seen the lost time are reset by their modes, others go on`() async throws {
        try await RestorableServer.with { server in
            var devices: [String: Device] = [:]
            try await server.run { gateway in
                try await gateway.sql(Self.rows)
                for name in ["recovering", "discarding", "either", "manual", "idle", "away"] {
                    devices[name] = try await Self.device(gateway, name)
                }
            }
            devices["away"]?.phone.session.suspend()
            try await server.backUp()
            var place = try await server.place()
            try await server.run { gateway in
                try await gateway.sql(
                    """
                    INSERT INTO orders (_id, store, size) VALUES ('lost', 'north', 100); UPDATE orders SET size = 100 WHERE _id = 'n1';
                    DELETE FROM orders WHERE _id = 'n2'
                    """)
                try devices["recovering"]?.phone.add("uploaded, and lost")
                try await devices["recovering"]?.phone.session.wait(for: .upload)
                let lost: Set = ["n1", "n3", "n4", "lost", "uploaded, and lost"]
                for (name, device) in devices where name != "away" {
                    try await device.phone.wait { Set($0.map(\._id)) == lost }
                    device.phone.session.suspend()
                }
                place = try await server.place()
            }
            for (name, device) in devices where name != "idle" { try device.phone.add(name) }
            try await server.restore()
            try await server.sql("UPDATE orders SET size = 5 WHERE _id = 'n1'; DELETE FROM orders WHERE _id = 'n3'")
            try await server.write(beyond: place)
            try await server.sql("INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 6)")
            try await server.run { gateway in
                for device in devices.values { device.phone.session.resume() }
                let manual = try #require(devices["manual"])
                devices["manual"] = nil
                await manual.phone.said.wait { $0.hasReset }
                #expect(manual.phone.session.state == .inactive)
                for device in devices.values { try await device.phone.session.wait(for: .upload) }
                let keys = Set(try await gateway.texts("SELECT _id FROM orders"))
                #expect(keys == ["n1", "n2", "n4", "new", "recovering", "either", "away"])
                for (name, device) in devices {
                    try await device.phone.settles(gateway)
                    #expect(device.heard.all == (name == "away" ? [0, 0] : [1, 1]), "\(name)")
                    #expect(!device.phone.said.hasReset, "\(name) could not do it by itself")
                }
            }
        }
    }

    /// What comes instead has positions and numbers that the device takes for those of what it has. The gateway's own marks in the log
    /// may show that they are not, and then the device has to begin anew: nobody knows what else it has seen.
    @MainActor
    @Test func `Scenario 47: a device that was there in the lost time, and saw nothing happen, does not take what came instead for known`()
        async throws
    {
        try await RestorableServer.with { server in
            var device: Visitor?
            try await server.run { gateway in
                try await gateway.sql(Self.rows)
                device = try await Visitor(gateway)
            }
            try await server.backUp()
            try await server.run { gateway in
                // Each visit is a write of the gateway's own.
                for _ in 0..<20 {
                    let error = try await device?.visit(gateway)
                    #expect(error == nil)
                }
            }
            let place = try await server.place()
            try await server.restore()
            try await server.sql("UPDATE orders SET size = 5 WHERE _id = 'n1'; DELETE FROM orders WHERE _id = 'n3'")
            try await server.sql("INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 6)")
            #expect(try await server.place().transaction < place.transaction)
            try await server.write(beyond: place)
            try await server.run { gateway in
                let error = try await device?.visit(gateway)
                #expect(
                    error == .badClientFile || device?.orders == ["n1 5", "n2 2", "n4 4", "new 6"], "\(String(describing: device?.orders))")
            }
        }
    }

    /// A device that comes and goes, and never writes.
    @MainActor
    private struct Visitor {
        private var file: TestSession.File
        private let token: String

        init(_ gateway: RunningGateway) async throws {
            token = try await gateway.anonymousToken()
            let session = try await gateway.session(token: token)
            try await session.hello()
            try await session.subscribe(1, [("Order", `A restored backup`.north)])
            file = session.file
            session.close()
        }

        /// - Returns: why the gateway does not know the file.
        mutating func visit(_ gateway: RunningGateway) async throws -> ErrorCode? {
            let session = try await gateway.session(token: token)
            session.goOn(from: file)
            try await session.sendHello()
            try await session.receive { $0.welcome != nil || $0.error != nil }
            if let error = session.error { return error.error.code }
            try await session.subscribe(1, [("Order", `A restored backup`.north)])
            file = session.file
            session.close()
            return nil
        }

        var orders: Set<String> {
            Set(
                (file.rows["Order"] ?? [:]).map { key, values in
                    guard case .string(let key) = key, case .int(let size)? = values["size"] else { return "" }
                    return "\(key) \(size)"
                })
        }
    }

    @MainActor
    @Test func `a gateway whose log was not put back with its database ends, and says what to do, which is enough`() async throws {
        let log = try AppLog()
        try await RestorableServer.with { server in
            var before: Device?
            var during: Device?
            try await server.run(log.files, kafka: log.broker) { gateway in
                before = try await Self.device(gateway, "recovering")
                before?.phone.session.suspend()
                during = try await Self.device(gateway, "recovering")
            }
            try await server.backUp()
            var place = try await server.place()
            try await server.run(log.files, kafka: log.broker) { gateway in
                try await gateway.sql(Self.rows)
                try await during?.phone.wait { $0.count == 4 }
                place = try await server.place()
            }
            try await server.restore()
            try await server.sql("INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 6)")
            try await server.write(beyond: place)
            let error = await #expect(throws: SluiceError.self) {
                try await server.run(log.files, kafka: log.broker) { _ in try await untilCancelled() }
            }
            #expect(error?.code == .logAhead)
            try await log.deleteTopics()
            try before?.phone.add("of before")
            try during?.phone.add("of during")
            try await server.run(log.files, kafka: log.broker) { gateway in
                before?.phone.session.resume()
                for device in [before, during] { try await device?.phone.session.wait(for: .upload) }
                for device in [before, during] { try await device?.phone.settles(gateway) }
                #expect(before?.phone.keys == ["new", "of before", "of during"])
                #expect(before?.heard.all == [0, 0] && during?.heard.all == [1, 1])
                try await gateway.sql("DELETE FROM orders WHERE _id = 'new'")
                for device in [before, during] {
                    try await device?.phone.settles(gateway)
                    #expect(device?.phone.said.hasReset == false)
                }
            }
            try await log.deleteTopics(withIngest: true)
        }
    }

    @MainActor
    @Test func `a gateway under which the database is put back ends, too`() async throws {
        try await RestorableServer.with { server in
            try await server.run { gateway in _ = try await Visitor(gateway) }
            try await server.backUp()
            let error = await #expect(throws: SluiceError.self) {
                try await server.run { gateway in
                    var device = try await Visitor(gateway)
                    try await gateway.sql(Self.rows)
                    _ = try await device.visit(gateway)
                    #expect(device.orders.count == 4)
                    try await server.restore()
                    // The gateway's end cancels it.
                    try await untilCancelled()
                }
            }
            #expect(error?.code == .logAhead)
        }
    }
}

extension Phone.Said.Errors {
    /// `true` if the app was told that its file is to be reset.
    fileprivate var hasReset: Bool { sync.contains { $0.code == .clientResetError } }
}

extension Phone.Said {
    fileprivate var hasReset: Bool { Errors(all: all).hasReset }
}
