import Foundation
import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceValues
import SluiceWire

/// Measures how fast a device catches up. The sync engine receives messages of commits, in the gateway's form, and applies them to a
/// replica. Half of the changes insert rows and half update them. The reference stores the same rows by a prepared upsert in C, with a
/// transaction for each message's rows.
@MainActor
struct ApplyBenchmark {
    let rounds: Int
    let scale: Double

    private static let perCommit = 10

    func run(_ report: inout Report) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-bench.\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let changes = max(Int(400_000 * scale) / Self.perCommit, 2) * Self.perCommit
        let (messages, last) = Self.messages(changes)
        var (ours, theirs): ([Double], [Double]) = ([], [])
        for round in 0...rounds {
            let seconds = try await apply(messages, to: last, rows: changes / 2, file: "\(folder)/\(round).replica")
            let reference = try await reference(changes, changes / messages.count, file: "\(folder)/\(round).sqlite")
            guard round > 0 else { continue }
            ours.append(Double(changes) / seconds)
            theirs.append(Double(changes) / reference)
            say("    \(ours.last?.short ?? "") rows/s, SQLite alone \(theirs.last?.short ?? "")")
        }
        report.add(
            "\(changes.formatted()) streamed changes of \(Item.bytes()) B applied to a replica, half of them updates",
            ours: "\(ours.median.short) rows/s", reference: "prepared upserts in C \(theirs.median.short) rows/s",
            ratio: "\((zip(ours, theirs).map { $0 / $1 }.median * 100).text()) %", target: "100 k rows/s")
    }

    /// - Returns: Seconds from the first message that the engine receives until the replica reaches the position of the last.
    private func apply(_ messages: [[UInt8]], to last: LSN, rows: Int, file: String) async throws -> Double {
        let replica = try Replica(path: file, schema: Self.schema)
        let now = Timestamp(seconds: 1_700_000_000, nanoseconds: 0)
        _ = try replica.addSubscriptionSet([
            StoredSubscription(id: 1, name: nil, type: "Item", query: "TRUEPREDICATE", created: now, updated: now)
        ])
        let gateway = ScriptedGateway(schema: Self.schema)
        let engine = SyncEngine(
            configuration: SyncConfiguration(url: "ws://127.0.0.1", app: "bench"), replica: replica, transport: gateway,
            refresh: { "token" }, onReport: { _ in true })
        let running = Task { await engine.run() }  // Unstructured because: it is cancelled below, when the last message has been applied.
        defer { running.cancel() }
        engine.start(token: "token")
        while try await replica.appliedPosition().version == 0 { try await Task.sleep(for: .milliseconds(1)) }
        let begin = seconds()
        for message in messages { gateway.say(message) }
        // The replica's queue answers in turn, so polling costs little.
        while try await replica.appliedPosition().lsn < last { try await Task.sleep(for: .milliseconds(1)) }
        let elapsed = seconds() - begin
        let stored = try replica.makeReader().store.count(type: 0)
        guard stored == rows else { throw BenchFailure("The replica has \(stored) rows of \(rows).") }
        return elapsed
    }

    private func reference(_ changes: Int, _ perTransaction: Int, file: String) async throws -> Double {
        let child = try Child(
            Setup.sibling("limit-sqlite"), [file, "\(changes)", "\(Item.noteBytes)", "\(perTransaction)"], log: .standardError)
        guard let seconds = Double(try await child.line()) else { throw BenchFailure("The reference does not say how long it took.") }
        return seconds
    }

    static let schema = Schema([
        ObjectType(
            name: "Item",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "store", type: .int),
                Property(id: 3, name: "quantity", type: .int), Property(id: 4, name: "price", type: .double),
                Property(id: 5, name: "name", type: .string), Property(id: 6, name: "note", type: .string),
                Property(id: 7, name: "updated", type: .timestamp),
            ])
    ])

    /// Returns commits of ten changes each, in messages of the size that the gateway sends.
    private static func messages(_ changes: Int) -> (messages: [[UInt8]], last: LSN) {
        let codec = RowCodec(schema.types[0])
        var writer = CommitsWriter()
        var messages: [[UInt8]] = []
        var lsn = LSN(rawValue: 1_000)
        for number in 0..<changes {
            if number % perCommit == 0 {
                lsn = LSN(rawValue: lsn.rawValue + 1)
                writer.beginCommit(lsn, commitTime: 1_700_000_000_000_000)
            }
            let isNew = number < changes / 2
            var bytes = ByteWriter()
            codec.encode(row(number, key: isNew ? number : number - changes / 2), into: &bytes)
            writer.addChange("Item", isNew ? .entered : .updated, bytes.take())
            guard number % perCommit == perCommit - 1 else { continue }
            writer.endCommit()
            if writer.byteCount > 4 * Limits.bootstrapBytes || number == changes - 1 { messages.append(writer.finish(lsn)) }
        }
        return (messages, lsn)
    }

    private static func row(_ number: Int, key: Int) -> Row {
        Row([
            .int(Int64(key)), .int(Int64(number % 100)), .int(Int64(number % 1_000)), .double(Double(number) / 100),
            .string("item " + String(format: "%027d", number)), .string(String(repeating: "n", count: Item.noteBytes)),
            .timestamp(Timestamp(seconds: 1_700_000_000 + Int64(number), nanoseconds: 0)),
        ])
    }
}

/// A gateway that answers Hello and the first subscription set, and then sends the given messages.
private final class ScriptedGateway: SyncTransport, SyncConnection {
    private let schema: Schema
    private let inbound: AsyncStream<[UInt8]>
    private let outgoing: AsyncStream<[UInt8]>.Continuation

    init(schema: Schema) {
        self.schema = schema
        (inbound, outgoing) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    func connect(_ request: SyncRequest) async throws(SluiceError) -> any SyncConnection { self }

    func send(_ message: [UInt8]) async throws(SluiceError) {
        switch try WireProtocol.decode(PBClientMessage.self, from: message).kind {
        case .hello:
            try answer {
                $0.welcome.protocol = WireProtocol.version
                $0.welcome.client = 1
                $0.welcome.schema = schema.messages
                $0.welcome.maxMessageBytes = UInt32(Limits.messageBytes)
            }
        case .subscribe(let set):
            try answer { $0.bootstrapBegin.version = set.version }
            try answer {
                $0.bootstrapEnd.version = set.version
                $0.bootstrapEnd.lsn = 1_000
            }
        default: break
        }
    }

    private func answer(_ fill: (inout PBServerMessage) -> Void) throws(SluiceError) {
        var message = PBServerMessage()
        fill(&message)
        outgoing.yield(try WireProtocol.encode(message))
    }

    /// Sends a message to the engine.
    func say(_ message: [UInt8]) { outgoing.yield(message) }
    func ping() {}
    func next() async throws(SluiceError) -> SyncInbound? {
        for await message in inbound { return .message(message) }
        return nil
    }
    func close() { outgoing.finish() }
}
