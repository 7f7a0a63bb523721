import FoundationEssentials
import SluiceCore
import SluiceValues
import SluiceWire
import SwiftProtobuf
import Testing

@Suite struct RecordTests {
    static let seeds = (0..<20).map { _ in UInt64.random(in: .min ... .max) }

    @Test(arguments: seeds)
    func `a change record is what the generated code would write, and its head reads back with the images in place`(seed: UInt64) throws {
        var samples = Samples(seed: seed)
        let codec = ChangeRecordCodec(Samples.schema)
        for operation in [ChangeOperation.insert, .update, .delete, .truncate] {
            var rows = RowBuffer()
            let before = operation == .insert || operation == .truncate ? nil : samples.row(whole: true)
            let after = operation == .delete || operation == .truncate ? nil : samples.row(whole: true)
            var change = CapturedChange(
                position: Position(lsn: LSN(rawValue: samples.word()), ordinal: UInt32(samples.below(1_000))), type: 1,
                operation: operation, before: before.map { rows.append($0) }, after: after.map { rows.append($0) })
            let times = (0..<samples.below(40)).map { UInt8($0) }
            change.times = UInt32(rows.arena.count)..<UInt32(rows.arena.count + times.count)
            rows.arena += times
            let transaction = CapturedTransaction(
                xid: UInt32(samples.below(1 << 32)), lsn: change.position.lsn, commitTime: Int64(bitPattern: samples.word()),
                origin: samples.chance(50) ? origin(&samples) : nil,
                changes: 0..<1, end: nil)
            let previous = samples.chance(50) ? Position(lsn: LSN(rawValue: samples.word()), ordinal: 3) : nil
            let passage = [Passage.stay, .leave, .enter][samples.below(3)]

            var writer = ByteWriter()
            codec.encode(change, of: transaction, rows: rows, previous: previous, passage: passage, into: &writer)
            let key = (after ?? before)?[0] ?? .null
            let reference = message(change, transaction, previous, passage, before, after, key, times)
            #expect(try generated(reference) == writer.bytes, "seed \(seed)")

            try writer.bytes.withUnsafeBytes { bytes in
                let view = try codec.decode(bytes)
                #expect(view.position == change.position && view.previous == previous && view.type == 1, "seed \(seed)")
                #expect(view.xid == transaction.xid && view.commitTime == transaction.commitTime, "seed \(seed)")
                #expect(view.origin == transaction.origin && view.operation == operation && view.passage == passage, "seed \(seed)")
                #expect(bytes[view.times].elementsEqual(times), "seed \(seed)")
                if operation == .truncate {
                    #expect(view.primaryKey.isEmpty, "seed \(seed)")
                } else {
                    #expect(try codec.primaryKey(view, in: bytes) == key, "seed \(seed)")
                }
                for (range, image) in [(view.before, before), (view.after, after)] {
                    #expect((range == nil) == (image == nil), "seed \(seed)")
                    guard let range, let image else { continue }
                    var read = RowBuffer()
                    let row = try codec.row(range, of: 1, in: bytes, into: &read)
                    #expect(read.withView(row) { Row($0) } == image, "seed \(seed)")
                }
            }
        }
    }

    private func origin(_ samples: inout Samples) -> Origin {
        let client = ClientID(rawValue: samples.word())
        return Origin(client: client, changeset: samples.word(), time: HybridTime(rawValue: samples.word()))
    }

    private func message(
        _ change: CapturedChange, _ transaction: CapturedTransaction, _ previous: Position?, _ passage: Passage, _ before: Row?,
        _ after: Row?, _ key: Value, _ times: [UInt8]
    ) -> PBChangeRecord {
        func position(_ position: Position) -> PBPosition {
            PBPosition.with {
                $0.lsn = position.lsn.rawValue
                $0.ordinal = position.ordinal
            }
        }
        return PBChangeRecord.with {
            $0.position = position(change.position)
            if let previous { $0.previous = position(previous) }
            $0.xid = transaction.xid
            $0.commitTime = transaction.commitTime
            if let origin = transaction.origin {
                $0.origin.client = origin.client.rawValue
                $0.origin.changeset = origin.changeset
                $0.origin.time = origin.time.rawValue
                if origin == Origin(client: .server, changeset: 0) { $0.origin = PBOrigin() }
            }
            $0.times = Data(times)
            $0.type = "Everything"
            if change.operation != .truncate { $0.primaryKey = PBValue(key) }
            $0.operation = PBOperation(rawValue: Int(change.operation.rawValue)) ?? .unspecified
            $0.passage = PBPassage(rawValue: Int(passage.rawValue)) ?? .stay
            if let before { $0.before = PBRow(before, type: Samples.type) }
            if let after { $0.after = PBRow(after, type: Samples.type) }
        }
    }

    @Test func `a record of a type that the reader does not have keeps its name`() throws {
        let writer = ChangeRecordCodec(Schema([Samples.asymmetric]))
        var rows = RowBuffer()
        let row = rows.append(Row([.uuid(UUIDBytes(high: 1, low: 2)), .double(3)]))
        let change = CapturedChange(
            position: Position(lsn: LSN(rawValue: 5), ordinal: 0), type: 0, operation: .insert, before: nil, after: row)
        let transaction = CapturedTransaction(
            xid: 9, lsn: LSN(rawValue: 5), commitTime: 0, origin: nil, changes: 0..<1, end: nil)
        var bytes = ByteWriter()
        writer.encode(change, of: transaction, rows: rows, previous: nil, passage: .stay, into: &bytes)
        let view = try bytes.withUnsafeBytes { bytes throws(SluiceError) in try ChangeRecordCodec(Schema([])).decode(bytes) }
        #expect(view.type == nil)
        #expect(bytes.bytes[view.typeName].elementsEqual("Reading".utf8))
    }

    @Test func `a record without its position, operation or key is refused`() throws {
        for cut in 0..<3 {
            let record = PBChangeRecord.with {
                if cut != 0 { $0.position = PBPosition() }
                if cut != 1 { $0.operation = .insert }
                if cut != 2 { $0.primaryKey = PBValue(.int(1)) }
            }
            let bytes = try generated(record)
            #expect(throws: SluiceError.self) { try bytes.withUnsafeBytes { try ChangeRecordCodec(Samples.schema).decode($0) } }
        }
    }
}
