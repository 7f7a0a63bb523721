import Foundation
import Logging
import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues

/// Measures calls of a plugin in its own sandboxed process, in turn with the same plugin in this process. Needs no server.
///
/// The plugin is RateLimits with bounds that no call reaches. It answers at once, so the round trip is measured. The calls run on the
/// threads of a gateway's sessions, because hops to the main actor do not occur in a gateway. A second plugin reads three of twelve fields
/// of each write.
struct PluginBenchmark {
    let rounds: Int
    let scale: Double

    private static let schema = Schema([
        ObjectType(
            name: "Item",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "store", type: .int),
                Property(id: 3, name: "note", type: .string, isOptional: true),
            ])
    ])
    /// The sizes of the batches of writes, and the target of each.
    private static let targets = [(1, "≤ 150 µs"), (64, "≤ 30 µs a write")]
    /// Bounds so large that every write is allowed.
    private static let limits: JSON = ["types": ["Item": ["writes_per_minute": 1_000_000]]]

    @concurrent
    func run(_ report: inout Report) async throws {
        let folder = URL(fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
            .deletingLastPathComponent().path
        let apart = try await chain(folder, .process)
        let within = try await chain(folder, .inProcess)
        try await session(apart, within, &report)
        for (batch, target) in Self.targets { try await writes(batch, apart, within, &report) { target } }
        await apart.stop()
        await within.stop()
        let reading = try await chain(folder, .process, "BenchRows", .null)
        let readingWithin = try await chain(folder, .inProcess, "BenchRows", .null)
        for (batch, target) in Self.targets { try await wideWrites(batch, reading, readingWithin, &report) { target } }
        try await functions(reading, readingWithin, &report)
        await reading.stop()
        await readingWithin.stop()
    }

    private func chain(
        _ folder: String, _ mode: PluginSpec.Mode, _ plugin: String = "RateLimits", _ config: JSON = Self.limits
    ) async throws -> PluginChain {
        let chain = PluginChain(
            plugins: [PluginSpec(path: "\(folder)/lib\(plugin).so", config: config, mode: mode)],
            functionPlugins: ["BenchRules"], hostExecutable: "\(folder)/sluice-plugin-host",
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
        try await chain.start()
        try await chain.configure(
            app: AppDescription.json(appID: "bench", directory: [:], schema: Self.schema, queryableFields: QueryableFields()))
        return chain
    }

    private func session(_ apart: PluginChain, _ within: PluginChain, _ report: inout Report) async throws {
        func open(_ chain: PluginChain) async throws {
            _ = try await chain.openSession(user: UserContext(id: "6650f0c2a94e1d0012345678"), types: ["Item"])
        }
        let (ours, theirs) = try await inTurn(times: 20_000, { try await open(apart) }, { try await open(within) })
        let width = 64
        let (many, _) = try await inTurn(times: 400) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<width { group.addTask { try await open(apart) } }
                try await group.waitForAll()
            }
        } _: {
        }
        report.add(
            "plugin host: one session asked after another", ours: "\(ours.text(1)) µs", reference: "in process \(theirs.text(1)) µs",
            ratio: "\((ours / theirs).text(1)) ×", target: "≤ 150 µs")
        report.add(
            "plugin host: sessions asked 64 at a time", ours: "\((1e6 * Double(width) / many).short)/s",
            reference: "one after another \((1e6 / ours).short)/s", ratio: "\((ours * Double(width) / many).text(1)) ×",
            target: "≥ 2,000/s")
    }

    private func writes(
        _ count: Int, _ apart: PluginChain, _ within: PluginChain, _ report: inout Report, target: () -> String
    ) async throws {
        let batch = (0..<count).map { index in
            let values: [String: Value] = ["_id": .int(Int64(index)), "store": .int(1), "note": .string("a note of some length \(index)")]
            return ProposedWrite(type: Self.schema.types[0], operation: .update, before: values, after: values)
        }
        func check(_ chain: PluginChain) async throws {
            let verdicts = await chain.checkWrites(user: UserContext(id: "6650f0c2a94e1d0012345678"), writes: batch, schema: Self.schema)
            guard verdicts.allSatisfy({ $0 == .allow }) else { throw BenchFailure("A write was not allowed: \(verdicts[0]).") }
        }
        let (ours, theirs) = try await inTurn(times: 20_000 / count, { try await check(apart) }, { try await check(within) })
        report.add(
            count == 1 ? "plugin host: one write checked" : "plugin host: writes checked in batches of \(count)",
            ours: "\((ours / Double(count)).text(1)) µs a write", reference: "in process \((theirs / Double(count)).text(1)) µs",
            ratio: "\((ours / theirs).text(1)) ×", target: target())
    }

    private static let order = ObjectType(
        name: "Order",
        properties: [
            Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "owner_id", type: .string),
            Property(id: 3, name: "closed", type: .bool), Property(id: 4, name: "amount", type: .int),
            Property(id: 5, name: "price", type: .decimal), Property(id: 6, name: "weight", type: .double),
            Property(id: 7, name: "placed", type: .timestamp), Property(id: 8, name: "note", type: .string, isOptional: true),
            Property(id: 9, name: "tags", type: .string, collection: .list), Property(id: 10, name: "store", type: .link(to: "Store")),
            Property(id: 11, name: "address", type: .embedded("Address")), Property(id: 12, name: "token", type: .uuid),
        ])

    private func wideWrites(
        _ count: Int, _ apart: PluginChain, _ within: PluginChain, _ report: inout Report, target: () -> String
    ) async throws {
        let batch = (0..<count).map { index in
            let values: [String: Value] = [
                "_id": .objectId(ObjectIdentifierBytes(high: 7, low: UInt32(index))), "owner_id": .string("6650f0c2a94e1d0012345678"),
                "closed": .bool(false), "amount": .int(Int64(index)), "price": .decimal(Decimal128(1_250)), "weight": .double(0.25),
                "placed": .timestamp(Timestamp(seconds: 1_790_000_000)), "note": .string("a note of some length \(index)"),
                "tags": .list([.string("north"), .string("express")]), "store": .int(4),
                "address": .dictionary(["city": .string("Lisboa"), "zip": .string("1100-148")]), "token": .uuid(UUIDBytes(high: 1, low: 2)),
            ]
            return ProposedWrite(type: Self.order, operation: .update, before: values, after: values)
        }
        func check(_ chain: PluginChain) async throws {
            let user = UserContext(id: "6650f0c2a94e1d0012345678", customData: ["team": "north"])
            let verdicts = await chain.checkWrites(user: user, writes: batch, schema: Self.schema)
            guard verdicts.allSatisfy({ $0 == .allow }) else { throw BenchFailure("A write was not allowed: \(verdicts[0]).") }
        }
        let (ours, theirs) = try await inTurn(times: 20_000 / count, { try await check(apart) }, { try await check(within) })
        report.add(
            count == 1 ? "plugin host: one write of twelve fields" : "plugin host: writes of twelve fields, \(count) at a time",
            ours: "\((ours / Double(count)).text(1)) µs a write", reference: "in process \((theirs / Double(count)).text(1)) µs",
            ratio: "\((ours / theirs).text(1)) ×", target: target())
    }

    private func functions(_ apart: PluginChain, _ within: PluginChain, _ report: inout Report) async throws {
        let user = UserContext(id: "6650f0c2a94e1d0012345678", customData: ["team": "north"])
        let function = PluginFunctionCall(
            "BenchRules",
            .function(name: "count", arguments: [["note": "a note of some length"]], user: user, runAs: user.id),
            id: "6650f0c2a94e1d00123456786650f0c2", milliseconds: 30_000, answerBytes: 1 << 20)
        func call(_ chain: PluginChain) async throws {
            let answer = try await chain.call(function)
            guard answer == .result(["$numberLong": "21"]) else { throw BenchFailure("A function answered \(answer).") }
        }
        let (ours, theirs) = try await inTurn(times: 10_000, { try await call(apart) }, { try await call(within) })
        report.add(
            "plugin host: functions called one after another", ours: "\(ours.text(1)) µs", reference: "in process \(theirs.text(1)) µs",
            ratio: "\((ours / theirs).text(1)) ×", target: "≤ 150 µs")
    }

    /// Returns the medians of the durations of one call of each, in microseconds.
    private func inTurn(
        times: Int, _ first: () async throws -> Void, _ second: () async throws -> Void
    ) async throws -> (Double, Double) {
        let times = max(Int(Double(times) * scale), 10)
        var (ours, theirs): ([Double], [Double]) = ([], [])
        for round in 0...rounds {
            let begin = seconds()
            for _ in 0..<times { try await first() }
            let middle = seconds()
            for _ in 0..<times { try await second() }
            guard round > 0 else { continue }
            ours.append((middle - begin) * 1e6 / Double(times))
            theirs.append((seconds() - middle) * 1e6 / Double(times))
        }
        return (ours.median, theirs.median)
    }
}
