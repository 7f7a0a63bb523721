import Logging
import SluiceCore
import SluiceEmbeddedLog
import SluicePipeline
import SluicePorts
import SluiceValues
import Synchronization
import TestSupport
import Testing

/// Two sinks on one topic, whose partitions change hands and whose commits fail, against the slow and obvious way: each record
/// read by `JSON.parse` and `ExtendedJSON.row`, and judged alone.
@Suite(.timeLimit(.minutes(5))) struct `Ingest sinks` {
    @Test(arguments: seeds(6)) func `write each object once, or refuse it once, whatever fails and whoever decides`(
        seed: UInt64
    ) async throws {
        var random = SplitMix64(seed: seed)
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let rules: IngestJudge? = random.chance(60) ? IngestJudge() : nil
        let records = (0..<6_000).map { Self.record($0, &random) }
        let log = EmbeddedLog(environment: QuickTime())
        _ = try await log.prepare([TopicSpec(name: Self.topic, partitions: 5)])
        let (changes, changed) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let tables = IngestTables(seed: seed) { _ = changed.yield() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for sink in 0..<2 {
                let sink = IngestSink(
                    topic: IngestSink.Topic(of: "Event", name: Self.topic, partitions: 5), log: log,
                    store: IngestShare(tables: tables, sink: sink), rules: rules ?? IngestJudge(isSilent: true), authority: EventSchema(),
                    environment: QuickTime(), logger: quiet, observer: NobodyWatches())
                group.addTask { await sink.run() }
            }
            var written = 0
            while written < records.count {
                var batch = LogBatch(topics: [Self.topic])
                for (partition, value) in records[written..<min(written + 1 + random.below(900), records.count)] {
                    batch.append(topic: 0, partition: partition, key: [UInt8](), value: value)
                }
                written += batch.entries.count
                _ = try await log.append(batch)
            }
            for await _ in changes where tables.count == records.count { break }
            group.cancelAll()
        }
        let expected = Self.slowly(records, rules)
        let found = tables.contents
        #expect(found.rows == expected.rows, "seed \(seed)")
        #expect(found.refused == expected.refused, "seed \(seed)")
    }

    private static let topic = "shop.ingest.Event"

    /// Some are no JSON, some no objects of the class, some have a key that was there before in their partition.
    private static func record(_ number: Int, _ random: inout SplitMix64) -> (Int32, [UInt8]) {
        let key = random.chance(3) ? max(number - 5, 0) : number
        var members = ["\"_id\": \(key)", "\"name\": \(JSON.string(random.pick(["a", "é\n", "\\", ""])).text)"]
        if random.chance(40) { members.append("\"weight\": \(random.pick(["1", "2.5", "-1e3", "null"]))") }
        if random.chance(20) { members.append("\"extra\": \(random.pick(["[1, {}]", "{\"$oid\": \"65a1b2c3d4e5f60718293a4b\"}", "7"]))") }
        if random.chance(2) { members.append(random.pick(["\"name\": 5", "\"other\": 1", "\"weight\": []"])) }
        var text = Array("{\(members.joined(separator: ", "))}".utf8)
        // Behind the key, so that no two partitions hold one.
        let first = "{\(members[0])".utf8.count
        if random.chance(2) { text[first + random.below(text.count - first)] = UInt8(truncatingIfNeeded: random.next()) }
        return (Int32(key % 5), text)
    }

    private static func slowly(_ records: [(Int32, [UInt8])], _ rules: IngestJudge?) -> IngestTables.Contents {
        var contents = IngestTables.Contents()
        for (_, text) in records {
            do throws(SluiceError) {
                let values = try ExtendedJSON.values(try JSON.parse(text), type: EventSchema.event, schema: EventSchema.schema)
                switch rules?.verdict(values) ?? .accept {
                case .accept: contents.add(values, "Event")
                case .amend(let set): contents.add(values.merging(set) { $1 }, "Event")
                case .transform(let values): contents.add(values, "Event")
                case .route(let type, let values): contents.add(values, type)
                case .split(let parts): for part in parts { contents.add(part.values, part.type) }
                case .drop: break
                case .reject(let reason): contents.refuse(text, .ingestRejected, reason)
                }
            } catch {
                contents.refuse(text, .ingestMalformed, error.message)
            }
        }
        return contents
    }
}

private struct EventSchema: SchemaAuthority {
    static let event = ObjectType(
        name: "Event", kind: .asymmetric,
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string),
            Property(id: 3, name: "weight", type: .double, isOptional: true), Property(id: 4, name: "extra", type: .mixed),
        ])
    static let alarm = ObjectType(
        name: "Alarm", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "text", type: .string, isOptional: true)])
    static let schema = Schema([event, alarm])

    func current() -> AppSchema { AppSchema(version: 1, schema: Self.schema, fields: QueryableFields(), isDevelopment: false) }
    func extend(by client: [ObjectType]) async throws -> AppSchema { current() }
    func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema { current() }
}

/// Decides by the key alone, so that it decides the same of an object that comes again.
private struct IngestJudge: Rules {
    var isSilent = false

    func verdict(_ values: [String: Value]) -> IngestVerdict {
        guard case .int(let key)? = values["_id"] else { return .accept }
        switch key % 11 {
        case 1: return .drop(reason: "old")
        case 2: return .reject(reason: "bad \(key)")
        case 3: return .transform(values.merging(["name": .string("mended")]) { $1 })
        case 4: return .route(type: "Alarm", values: ["_id": .int(key), "text": values["name"] ?? .null])
        case 5:
            return .split([IngestPart(type: "Alarm", values: ["_id": .int(key)]), IngestPart(type: "Event", values: values)])
        case 6: return .amend(["name": .string("amended")])
        default: return .accept
        }
    }

    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]? {
        isSilent ? nil : objects.rows.indices.map { verdict(objects.values($0)) }
    }
    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan { SessionPlan(types: [:]) }
    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] { [] }
    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] { [] }
}

/// The tables that the sinks share; commits fail now and then, with and without having taken effect.
private final class IngestTables: Sendable {
    struct Contents: Equatable {
        /// By class and key; of equal keys the first.
        var rows: [String: [Value: Row]] = [:]
        var refused: [String: Int] = [:]

        mutating func add(_ values: [String: Value], _ name: String) {
            guard let type = EventSchema.schema[name], let key = values["_id"] else { return }
            let row = Row(type.properties.map { values[$0.name] ?? .null })
            if rows[name]?[key] == nil { rows[name, default: [:]][key] = row }
        }

        mutating func refuse(_ text: [UInt8], _ code: ErrorCode, _ reason: String) {
            refused["\(code) \(reason) \(text)", default: 0] += 1
        }
    }

    struct State {
        var offsets: [Int32: Int64] = [:]
        var owners: [Int32: Int] = [:]
        var contents = Contents()
        var random: SplitMix64
    }

    private let state: Mutex<State>
    private let changed: @Sendable () -> Void

    init(seed: UInt64, changed: @escaping @Sendable () -> Void) {
        state = Mutex(State(random: SplitMix64(seed: seed)))
        self.changed = changed
    }

    var contents: Contents { state.withLock(\.contents) }
    /// How many records are done with.
    var count: Int { state.withLock { Int($0.offsets.values.reduce(0, +)) } }

    func offset(_ partition: Int32) -> Int64 { state.withLock { $0.offsets[partition] ?? 0 } }

    func commit(_ outcome: IngestOutcome) throws -> IngestTally {
        defer { changed() }
        return try state.withLock { state in
            guard outcome.offsets.allSatisfy({ state.offsets[$0.key] ?? 0 == $0.value.lowerBound }) else {
                throw SluiceError(.badMessageOrder, "Somebody else has been here.")
            }
            if state.random.chance(10) { throw SluiceError(.postgresUnreachable, "It does not answer.") }
            for (partition, offsets) in outcome.offsets { state.offsets[partition] = offsets.upperBound }
            for objects in outcome.accepted {
                for row in objects.rows {
                    var values: [String: Value] = [:]
                    objects.buffer.withView(row) { view in
                        for (index, property) in objects.type.properties.enumerated() { values[property.name] = view.value(index) }
                    }
                    state.contents.add(values, objects.type.name)
                }
            }
            for object in outcome.refused { state.contents.refuse(Array(object.record.bytes), object.code, object.reason) }
            if state.random.chance(10) { throw SluiceError(.postgresUnreachable, "Its answer is lost.") }
            return IngestTally()
        }
    }

    /// Gives a sink partitions that are free, and takes one away now and then.
    func claim(_ sink: Int, of partitions: Int32) -> Set<Int32> {
        state.withLock { state in
            for partition in 0..<partitions {
                if state.owners[partition] == nil, state.random.chance(50) { state.owners[partition] = sink }
                if state.owners[partition] == sink, state.random.chance(10) { state.owners[partition] = nil }
            }
            return Set(state.owners.filter { $0.value == sink }.keys)
        }
    }

    func release(_ sink: Int) { state.withLock { $0.owners = $0.owners.filter { $0.value != sink } } }
}

/// The tables as one of the sinks has them.
private struct IngestShare: IngestStore {
    let tables: IngestTables
    let sink: Int

    func offsets(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] {
        Dictionary(uniqueKeysWithValues: partitions.map { ($0, tables.offset($0.partition)) })
    }
    func commit(_ outcome: IngestOutcome) async throws -> IngestTally {
        await Task.yield()
        return try tables.commit(outcome)
    }
    func rewind(_ partition: LogPartition, from offset: Int64) async throws {}
    func commit(accepted: [AcceptedObjects], refused: [RejectedObject]) async throws -> IngestTally { IngestTally() }
    func claim(topic: String, partitions: Int32) async throws -> Set<Int32> { tables.claim(sink, of: partitions) }
    func release(topic: String) async { tables.release(sink) }
}

private struct NobodyWatches: IngestObserver {
    func took(_ type: String, _ tally: IngestTally) {}
    func lags(_ type: String, records: Int64) {}
}

/// A second is a hundredth of one.
private struct QuickTime: Environment {
    private let system = SystemEnvironment()

    func wallMilliseconds() -> Int64 { system.wallMilliseconds() }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() &* 100 }
    func random() -> UInt64 { 4 }
    func sleep(nanoseconds: UInt64) async throws { try await Task.sleep(nanoseconds: nanoseconds / 100) }
}
