import Foundation
import SluicePostgres
import SluiceWire
import Synchronization

/// Measures a gateway's memory while a year of New York's departures streams through it: PostgreSQL → Kafka → a client that subscribes to
/// all of them.
@MainActor
struct MemoryBenchmark {
    let setup: Setup

    func run(_ report: inout Report) async throws {
        let (conninfo, sql) = try await setup.database("bench_memory")
        let gateway = try await setup.gateway("bench_memory", conninfo, kafka: true)
        let stores = (0..<100).map(String.init).joined(separator: ", ")
        let user = try await SocketLoad.login(gateway, folder: "\(setup.workspace)/memory")
        let hello = try SocketLoad.hello(user, queries: ["store IN {\(stores)}"])
        let load = try await SocketLoad(
            setup, port: gateway.port, path: WireProtocol.path(app: gateway.appID), hellos: [hello], connections: 1)
        // The warm-up load, so that data loaded on first use do not count as growth.
        _ = try await sql.load(1_000, from: 0, perTransaction: 1_000)
        try await load.reach(1_000)
        let rows = setup.scaled(336_776)
        let start = gateway.child.residentMegabytes
        let peak = Peak(gateway.child)
        let begin = seconds()
        var next = 1_000
        var tenths: [Double] = []
        for tenth in 1...10 {
            let end = 1_000 + rows * tenth / 10
            _ = try await sql.load(end - next, from: next, perTransaction: 2_000)
            next = end
            try await load.reach(end)
            tenths.append(gateway.child.residentMegabytes)
        }
        let elapsed = seconds() - begin
        let highest = peak.end()
        let volume = Double(rows * Item.bytes()) / Double(1 << 20)
        say(
            "    after each tenth: \(tenths.map { $0.text() }.joined(separator: " ")) MiB; \((Double(rows) / elapsed).short) rows/s end to end"
        )
        report.add(
            "memory while \(rows.formatted()) rows of \(Item.bytes()) B stream through",
            ours: "start \(start.text()), peak \(highest.text()), end \(tenths.last?.text() ?? "") MiB",
            reference: "the rows have \(volume.text()) MiB; after half of them \(tenths[4].text()) MiB",
            ratio: "end / half \((tenths[9] / tenths[4]).text(2))", target: "1.0: flat")
        load.stop()
        gateway.child.stop()
        await sql.close()
    }

    /// Samples a process's memory 20 times a second, on a thread of its own.
    private final class Peak: Sendable {
        private let state = Mutex((highest: 0.0, isOver: false))

        init(_ child: Child) {
            let child = Unchecked(child)
            Thread.detachNewThread { [weak self] in
                while let self, !self.state.withLock({ $0.isOver }) {
                    let now = child.value.residentMegabytes
                    self.state.withLock { $0.highest = max($0.highest, now) }
                    Thread.sleep(forTimeInterval: 0.05)
                }
            }
        }

        func end() -> Double {
            state.withLock { state in
                state.isOver = true
                return state.highest
            }
        }
    }
}
