import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceWire
import Testing

/// Batches of asymmetric objects that no message can carry.
@Suite struct IngestStateTests {
    private static func reading(_ key: Int64, bytes: Int = 1) -> ObjectChange {
        ObjectChange(
            object: ObjectKey(type: "Reading", key: .int(key)), kind: .create,
            values: ["level": .string(String(repeating: "x", count: bytes))])
    }

    /// Open with a bound of 1,000 bytes, an upload wait and a read under way.
    private static func opened() -> MachineHarness {
        var harness = MachineHarness()
        harness.open(welcome: MachineHarness.welcome(maximumMessageBytes: 1_000))
        harness.feed(.wait(1, .upload, deadline: nil))
        return harness
    }

    private static func cuts(_ harness: MachineHarness) -> [IngestCut] {
        harness.actions.compactMap { if case .shortenIngest(let cut) = $0 { cut } else { nil } }
    }

    private static func sent(_ harness: MachineHarness) -> [PBIngest] {
        harness.sent.compactMap { if case .ingest(let message) = $0 { message } else { nil } }
    }

    private static func told(_ harness: MachineHarness) -> [PBReportError] {
        harness.sent.compactMap { if case .reportError(let report) = $0 { report } else { nil } }
    }

    @Test func `an object that no message can carry leaves its batch, and the others are sent under the same number`() {
        var harness = Self.opened()
        let (first, large, last) = (Self.reading(1), Self.reading(2, bytes: 2_000), Self.reading(3))
        harness.pending([set(0, [])], ingest: IngestBatch(number: 1, objects: [first, large, last]))
        let cuts = Self.cuts(harness)
        #expect(cuts.map(\.batch) == [1] && cuts.map(\.dropped) == [[1]] && cuts.map(\.returned) == [[]])
        let refused = cuts.flatMap(\.refused)
        #expect(refused.map(\.object) == [large.object] && refused.map(\.values) == [large.values], "\(refused)")
        #expect(refused.map(\.code) == [ErrorCode.ingestTooLarge.rawValue])
        #expect(refused.first?.reason.contains("1000 bytes") == true, "\(refused)")
        // The gateway has it in its log.
        #expect(Self.told(harness).map(\.code) == [UInt32(ErrorCode.ingestTooLarge.rawValue)])
        let writes = Self.told(harness).flatMap(\.writes)
        #expect(writes.map(\.changeset) == [1] && writes.map(\.type) == ["Reading"])
        #expect(writes.map(\.primaryKey) == [PBValue(Value.int(2))])
        #expect(Self.sent(harness).isEmpty && harness.queries.map(\.ingestAfter) == [0])
        harness.pending([set(0, [])], ingest: IngestBatch(number: 1, objects: [first, last]))
        #expect(Self.sent(harness).map(\.number) == [1] && Self.sent(harness).map(\.objects.count) == [2])
        harness.pending([set(0, [])])
        #expect(harness.finished.isEmpty)
        harness.receive(.ingestAck(number: 1, []))
        harness.pending([set(0, [])])
        #expect(harness.finished == [1: nil] && harness.machine.phase == .open)
    }

    @Test func `objects that one message cannot carry together are sent in several`() {
        var harness = Self.opened()
        let objects = (1...3).map { Self.reading($0, bytes: 400) }
        harness.pending([set(0, [])], ingest: IngestBatch(number: 1, objects: objects))
        let cuts = Self.cuts(harness)
        #expect(cuts.map(\.returned) == [[2]] && cuts.map(\.dropped) == [[]] && cuts.flatMap(\.refused).isEmpty, "\(cuts)")
        #expect(Self.told(harness).isEmpty && Self.sent(harness).isEmpty)
        harness.pending([set(0, [])], ingest: IngestBatch(number: 1, objects: Array(objects.prefix(2))))
        harness.pending([set(0, [])], ingest: IngestBatch(number: 2, objects: Array(objects.suffix(1))))
        #expect(Self.sent(harness).map(\.number) == [2] && Self.cuts(harness).isEmpty)
    }

    @Test func `an upload is over when the only object that waits is one that no message can carry`() {
        var harness = Self.opened()
        harness.pending([set(0, [])], ingest: IngestBatch(number: 1, objects: [Self.reading(1, bytes: 2_000)]))
        #expect(Self.cuts(harness).map(\.dropped) == [[0]] && harness.finished.isEmpty)
        harness.pending([set(0, [])])
        #expect(harness.finished == [1: nil] && harness.machine.phase == .open)
    }
}
