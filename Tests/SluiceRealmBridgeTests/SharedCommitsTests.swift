import PortsTestSupport
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceWire
import TestSupport
import Testing

@testable import SluiceRealmBridge

/// The system's environment with a clock that stands.
private struct FixedClock: Environment {
    private let system = SystemEnvironment()

    func wallMilliseconds() -> Int64 { 1_700_000_000_000 }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() }
    func random() -> UInt64 { system.random() }
    func sleep(nanoseconds: UInt64) async throws { try await system.sleep(nanoseconds: nanoseconds) }
}

/// Streams of files with equal and other views, which receive the same messages.
@Suite struct `A commit for many Realm files` {
    /// Returns the stream of a client that has a view of some objects at position 100.
    private static func stream(_ keys: [String], _ schema: BridgeSchema, _ commits: SharedCommits) throws -> BridgeStream {
        let stored = StoredRealmClient(record: RealmClientRecord(file: SessionMessages.file))
        var stream = try BridgeStream(stored, BridgeReplica(client: 1, secret: []), schema, FixedClock(), BridgeBounds(), commits)
        stream.wanted = 1
        let query = RealmQuerySet(version: 1, queries: ["Item": "size > 1"])
        let view = RealmViewRequest(query: query, isFull: true, hasSchema: true, number: 1)
        let version = stream.subscribe(
            BridgeStream.Subscription(query: query, request: BridgeStream.Request(number: 1, view: view), forgets: true))
        _ = try stream.handle(SessionMessages.begin(version))
        _ = try stream.handle(SessionMessages.rows(keys))
        _ = try stream.handle(SessionMessages.end(version, 100))
        let isTaken = stream.settleView(superseded: [:])
        #expect(isTaken)
        return stream
    }

    /// A message with one to three commits of one to three changes.
    private static func message(_ lsn: UInt64, _ random: inout SplitMix64) -> [UInt8] {
        var writer = CommitsWriter()
        for commit in 0...UInt64(random.below(3)) {
            writer.beginCommit(LSN(rawValue: lsn + commit), commitTime: 1_700_000_000_000_000)
            for _ in 0...random.below(3) {
                let key = random.pick(["a", "b", "c"])
                let event = random.pick([ViewEvent.updated, .updated, .updated, .entered, .deleted])
                guard event != .deleted else {
                    writer.addChange("Item", event, ValueCodec.encode(.string(key)))
                    continue
                }
                let tags = (0..<random.below(3)).map { "tag \($0)" }
                let title = random.chance(20) ? nil : "title \(random.below(9))"
                var row = ByteWriter()
                RowCodec(StageDatabase.item)
                    .encode(BridgeStage.item(key, title, size: Int64(random.below(9)), tags: tags), into: &row)
                let changed: [UInt32]? = random.chance(30) ? nil : [UInt32(2), 3, 4].filter { _ in random.chance(60) }
                row.bytes.withUnsafeBytes { writer.addChange("Item", event, $0, changed: event == .updated ? changed : nil) }
            }
            writer.endCommit()
        }
        return writer.finish(LSN(rawValue: lsn + 3))
    }

    @Test(arguments: seeds(60)) func `has the entries that each file would have alone`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let (schema, commits) = (try BridgeSchema(SessionMessages.schema), SharedCommits())
        var one = try Self.stream(["a", "b"], schema, commits)
        var other = try Self.stream(["a", "b"], schema, commits)
        var smaller = try Self.stream(["a"], schema, commits)
        var alone = try Self.stream(["a", "b"], schema, SharedCommits())
        var smallerAlone = try Self.stream(["a"], schema, SharedCommits())
        for step in 0..<60 {
            let message = Self.message(200 + 10 * UInt64(step), &random)
            // Equal bytes in other memory are decoded anew.
            let copy = message.map { $0 }
            let expected = try alone.handle(copy)
            #expect(try one.handle(message) == expected, "seed \(seed), step \(step)")
            #expect(try smaller.handle(message) == (try smallerAlone.handle(copy)), "seed \(seed), step \(step)")
            #expect(try other.handle(message) == expected, "seed \(seed), step \(step)")
        }
        #expect(one.state == alone.state && other.state == alone.state && smaller.state == smallerAlone.state, "seed \(seed)")
    }
}
