import Foundation
import SluicePostgres
import SluiceWire

/// Measures deliveries of one repeated change to 1,000 sessions over real WebSockets on loopback. The reference is a C program that only
/// writes prepared frames to its sockets. The same load generator reads both.
///
/// It runs in two modes. In the first all sessions must receive a change before the next is written. In the second changes come in bursts,
/// and the gateway joins pending ones into one message. The reference then joins as many frames into one write as the gateway did.
@MainActor
final class FanoutBenchmark {
    private let setup: Setup
    /// The number of changes written so far.
    private var written = 0
    /// The number of changes that the reference has sent so far.
    private var repeated = 0

    init(setup: Setup) { self.setup = setup }

    private static let connections = 1_000
    /// The bytes of the note that make a row of 300 bytes.
    private static let note = 228

    private struct Sample {
        var perSecond: [Double] = []
        var cpu: [Double] = []
        /// The number of changes in a message.
        var joined: [Double] = []

        mutating func add(_ deliveries: Int, _ messages: Int, _ elapsed: Double, _ cpuSeconds: Double) {
            perSecond.append(Double(deliveries) / elapsed)
            cpu.append(cpuSeconds / Double(deliveries) * 1e6)
            joined.append(Double(deliveries) / Double(max(messages, 1)))
        }

        static func += (all: inout Sample, one: Sample) {
            all.perSecond += one.perSecond
            all.cpu += one.cpu
            all.joined += one.joined
        }
    }

    func run(_ report: inout Report) async throws {
        let (conninfo, sql) = try await setup.database("bench_fanout")
        try await sql.script(Item.insert(10, from: 0, note: Self.note))
        let gateway = try await setup.gateway("bench_fanout", conninfo, kafka: false)
        let user = try await SocketLoad.login(gateway, folder: "\(setup.workspace)/fanout")
        let hello = try SocketLoad.hello(user, queries: ["store == 1"])
        let load = try await SocketLoad(
            setup, port: gateway.port, path: WireProtocol.path(app: gateway.appID), hellos: [hello], connections: Self.connections)
        let frame = try await firstFrame(load, sql)
        let (server, bare) = try await reference(frame)
        var (single, bareSingle, burst, bareBurst) = (Sample(), Sample(), Sample(), Sample())
        for round in 0...setup.rounds {
            var samples = (Sample(), Sample(), Sample(), Sample())
            let (few, many) = (setup.scaled(200), setup.scaled(2_000))
            try await ours(gateway.child, load, &samples.0) {
                for _ in 0..<few {
                    try await write(sql)
                    try await load.reach(written)
                }
            }
            try await theirs(server, bare, &samples.1, changes: few, joined: 1)
            try await ours(gateway.child, load, &samples.2) {
                for _ in 0..<many { try await write(sql) }
            }
            let joined = max(Int(samples.2.joined[0].rounded()), 1)
            try await theirs(server, bare, &samples.3, changes: many / joined * joined, joined: joined)
            say(
                "    \([samples.0, samples.1, samples.2, samples.3].map { "\($0.perSecond[0].short)/s \($0.cpu[0].text(2)) µs" }.joined(separator: ", "))"
            )
            guard round > 0 else { continue }
            single += samples.0
            bareSingle += samples.1
            burst += samples.2
            bareBurst += samples.3
        }
        add(&report, "one at a time", single, bareSingle)
        add(&report, "in bursts, \(burst.joined.median.text()) joined", burst, bareBurst)
        load.stop()
        bare.stop()
        server.stop()
        gateway.child.stop()
        await sql.close()
    }

    /// Runs `writes`, and measures until everything has arrived.
    private func ours(_ gateway: Child, _ load: SocketLoad, _ sample: inout Sample, _ writes: () async throws -> Void) async throws {
        let (changes, messages, begin, cpu) = (load.changes, load.messages, seconds(), gateway.cpuSeconds)
        try await writes()
        try await load.reach(written)
        sample.add(load.changes - changes, load.messages - messages, seconds() - begin, gateway.cpuSeconds - cpu)
    }

    private func write(_ sql: PostgresConnection) async throws {
        written += 1
        try await sql.execute("UPDATE items SET quantity = $1 WHERE \"_id\" = 1", [.int(written)], cached: true)
    }

    private func theirs(_ server: Child, _ load: SocketLoad, _ sample: inout Sample, changes: Int, joined: Int) async throws {
        let (before, begin, cpu) = (load.changes, seconds(), server.cpuSeconds)
        for _ in 0..<changes / joined {
            server.write("\(joined)\n")
            repeated += joined
            try await load.reach(repeated)
        }
        sample.add(load.changes - before, (load.changes - before) / joined, seconds() - begin, server.cpuSeconds - cpu)
    }

    private func add(_ report: inout Report, _ how: String, _ ours: Sample, _ theirs: Sample) {
        report.add(
            "deliveries to \(Self.connections.formatted()) connections, rows of \(Item.bytes(note: Self.note)) B, \(how)",
            ours: "\(ours.perSecond.median.short)/s, \(ours.cpu.median.text(2)) µs of CPU each",
            reference: "C epoll loop \(theirs.perSecond.median.short)/s, \(theirs.cpu.median.text(2)) µs",
            ratio: "\((zip(ours.perSecond, theirs.perSecond).map { $0 / $1 }.median * 100).text()) %, "
                + "CPU \((ours.cpu.median / theirs.cpu.median).text(2)) ×", target: "none")
    }

    /// Delivers one change to measure the length of a message.
    /// - Returns: A frame of the same length, for the reference.
    private func firstFrame(_ load: SocketLoad, _ sql: PostgresConnection) async throws -> [UInt8] {
        let before = load.bytes
        try await write(sql)
        try await load.reach(written)
        let size = max((load.bytes - before) / Self.connections, 64)
        // A ServerMessage with Commits and a Commit with one ViewChange. The rest is padding inside that.
        var payload: [UInt8] = [3 << 3 | 2] + Self.varint(size - 16)
        payload += [UInt8](repeating: 0, count: size - 16)
        payload = [1 << 3 | 2] + Self.varint(payload.count) + payload
        payload = [5 << 3 | 2] + Self.varint(payload.count) + payload
        return SocketLoad.frame(payload, isClient: false)
    }

    private static func varint(_ value: Int) -> [UInt8] {
        value < 128 ? [UInt8(value)] : [UInt8(value & 127) | 128] + varint(value >> 7)
    }

    private func reference(_ frame: [UInt8]) async throws -> (Child, SocketLoad) {
        let file = "\(setup.workspace)/frame"
        try Data(frame).write(to: URL(fileURLWithPath: file))
        let server = try Child(setup.program("limit-wsrv"), ["\(Self.connections)", file], log: setup.log("limit-wsrv"))
        guard let port = try await server.line().split(separator: " ").last.flatMap({ Int($0) }) else {
            throw BenchFailure("The reference server does not say its port.")
        }
        return (
            server, try await SocketLoad(setup, port: port, path: "/", hellos: [[0x82, 0x80, 0, 0, 0, 0]], connections: Self.connections)
        )
    }
}
