import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import SluiceWire
import SwiftProtobuf

/// Measures devices that upload changesets of one new object over their own WebSockets, until the gateway acknowledges them. The gateway
/// merges, checks and commits each in its own transaction, with PostgreSQL's fsync on. The reference inserts the same rows with libpq in
/// pipeline mode. It uses a prepared INSERT and a transaction for each, over as many connections as the gateway.
@MainActor
final class UploadBenchmark {
    private let setup: Setup
    private let devices: Int
    /// The number of rows written so far, also by the reference.
    private var written = 0

    init(setup: Setup) {
        self.setup = setup
        devices = 64
    }

    /// The unacknowledged changesets of one device.
    private static let window = 16
    /// The gateway's connections to PostgreSQL.
    private static let connections = 8

    private struct Sample {
        var perSecond: [Double] = []
        var p50: [Double] = []
        var p99: [Double] = []
        var cpu: [Double] = []
    }

    func run(_ report: inout Report) async throws {
        let (conninfo, sql) = try await setup.database("bench_upload")
        let fsync = try await sql.query("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
        guard fsync[0, 0] == "on", fsync[0, 1] == "on" else { throw BenchFailure("PostgreSQL does not wait for the disk.") }
        let gateway = try await setup.gateway("bench_upload", conninfo, kafka: false)
        let each = setup.scaled(250)
        let rounds = setup.rounds + 1
        let load = try await open(gateway, sql, each * rounds)
        var (ours, theirs) = (Sample(), Sample())
        for round in 0..<rounds {
            let cpu = gateway.child.cpuSeconds
            let (elapsed, p50, p99) = try await load.upload(each, window: Self.window)
            let count = devices * each
            written += count
            guard round > 0 else {
                _ = try await reference(conninfo, count)
                continue
            }
            ours.perSecond.append(Double(count) / elapsed)
            ours.p50.append(p50)
            ours.p99.append(p99)
            ours.cpu.append((gateway.child.cpuSeconds - cpu) / Double(count) * 1e6)
            theirs.perSecond.append(try await reference(conninfo, count))
            say("    \(ours.perSecond.last?.short ?? "")/s, libpq \(theirs.perSecond.last?.short ?? "")/s")
        }
        let stored = try await sql.query("SELECT count(*) FROM items")
        guard stored.int(0, 0) == Int64(written) else { throw BenchFailure("Of \(written) rows \(stored[0, 0] ?? "none") are stored.") }
        report.add(
            "upload of changesets of one object of \(Item.bytes()) B, \(devices) devices, \(Self.window) under way each",
            ours: "\(ours.perSecond.median.short)/s, p50 \((ours.p50.median * 1e3).text()) ms, p99 \((ours.p99.median * 1e3).text()) ms, "
                + "\(ours.cpu.median.text()) µs of CPU each",
            reference: "single-row transactions by libpq on \(Self.connections) connections \(theirs.perSecond.median.short)/s",
            ratio: "\((zip(ours.perSecond, theirs.perSecond).map { $0 / $1 }.median * 100).text()) %", target: "2,000/s")
        load.stop()
        gateway.child.stop()
        await sql.close()
    }

    /// - Returns: Rows per second.
    private func reference(_ conninfo: String, _ count: Int) async throws -> Double {
        let child = try Child(
            setup.program("limit-pginsert"),
            [
                conninfo, "items", "\(1_000_000_000 + written)", "\(count)", "\(Self.connections)", "\(Self.window)",
                "\(Item.noteBytes)",
            ], log: setup.log("limit-pginsert"))
        guard let elapsed = try await child.line().split(separator: " ").last.flatMap({ Double($0) }) else {
            throw BenchFailure("The reference does not say how long it took.")
        }
        written += count
        return Double(count) / elapsed
    }

    /// Opens the devices' sessions, each subscribed to its own store.
    private func open(_ gateway: RunningGateway, _ sql: PostgresConnection, _ each: Int) async throws -> SocketLoad {
        let folder = "\(setup.workspace)/upload"
        let user = try await SocketLoad.login(gateway, folder: folder)
        let hellos = try (0..<devices).map { try SocketLoad.hello(user, queries: ["store == \($0)"]) }
        let schema = try await Self.schema(sql)
        var uploads: [[UInt8]] = []
        uploads.reserveCapacity(each * devices)
        for number in 1...each {
            for device in 0..<devices {
                uploads.append(try Self.frame([Self.changeset(UInt64(number), device, number * devices + device)], schema))
            }
        }
        return try await SocketLoad(
            setup, port: gateway.port, path: WireProtocol.path(app: gateway.appID), hellos: hellos, uploads: uploads,
            connections: devices)
    }

    /// Returns the values of an object, without its key.
    static func values(_ store: Int, _ key: Int) -> [String: Value] {
        [
            "store": .int(Int64(store)), "quantity": .int(Int64(key % 1_000)), "price": .double(Double(key) / 100),
            "name": .string("item " + String(format: "%027d", key)), "note": .string(String(repeating: "n", count: Item.noteBytes)),
            "updated": .timestamp(Timestamp(seconds: 1_700_000_000, nanoseconds: 0)),
        ]
    }

    /// Returns a changeset that creates an object.
    static func changeset(_ number: UInt64, _ store: Int, _ key: Int) -> Changeset {
        let time = UInt64(Date().timeIntervalSince1970 * 1_000) << 16
        return Changeset(
            number: number, time: HybridTime(rawValue: time), base: .zero,
            changes: [ObjectChange(object: ObjectKey(type: "Item", key: .int(Int64(key))), kind: .create, values: values(store, key))])
    }

    /// Returns a client's frame that uploads changesets.
    static func frame(_ changesets: [Changeset], _ schema: Schema) throws -> [UInt8] {
        var message = PBUpload()
        message.changesets = try changesets.map { try PBChangeset($0, schema: schema) }
        return SocketLoad.frame(try WireProtocol.encode(PBClientMessage.with { $0.upload = message }), isClient: true)
    }

    /// Returns the class with the property numbers that the gateway assigned.
    static func schema(_ sql: PostgresConnection) async throws -> Schema {
        let numbers = try await sql.query("SELECT name, id FROM sluice.property WHERE type = 'Item'")
        let types: [String: PropertyType] = ["price": .double, "name": .string, "note": .string, "updated": .timestamp]
        let properties = (0..<numbers.count).map { row in
            let name = numbers[row, 0] ?? ""
            return Property(id: UInt32(numbers.int(row, 1) ?? 0), name: name, type: types[name] ?? .int)
        }
        return Schema([ObjectType(name: "Item", properties: properties)])
    }
}
