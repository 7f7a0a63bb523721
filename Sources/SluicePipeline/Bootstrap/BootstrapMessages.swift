import SluiceCore
import SluiceWire
import SwiftProtobuf

/// The messages of a bootstrap, as bytes.
enum BootstrapMessages {
    /// - Parameter checkpoint: what it goes on from.
    static func begin(version: UInt64, rows: UInt64, checkpoint: PBCheckpoint = PBCheckpoint()) -> [UInt8] {
        encode {
            $0.bootstrapBegin = .with {
                $0.version = version
                $0.rows = rows
                if !checkpoint.types.isEmpty { $0.checkpoint = checkpoint }
            }
        }
    }

    /// - Parameter types: those of the view, in whole; nil: the client had the view and went on from the log.
    static func end(version: UInt64, lsn: LSN, rows: UInt64, types: [String]?, held: PBHeld, taken: UInt64) -> [UInt8] {
        encode {
            $0.bootstrapEnd = .with {
                $0.version = version
                $0.lsn = lsn.rawValue
                $0.rows = rows
                $0.types = types ?? []
                $0.resumed = types == nil
                $0.held = held
                $0.changeset = taken
            }
        }
    }

    /// What passed while the snapshot was read: rows that replace, keys that go.
    /// - Parameter pending: the objects whose write times the client wants.
    static func late(
        _ changes: [StagedChanges.Change], schema: Schema, _ pending: PendingObjects = PendingObjects()
    ) -> [(bytes: [UInt8], rows: UInt64)] {
        var messages: [(bytes: [UInt8], rows: UInt64)] = []
        for type in Set(changes.map(\.type)).sorted() {
            let ofType = changes.filter { $0.type == type }
            for start in stride(from: 0, to: ofType.count, by: Limits.bootstrapRows) {
                let piece = ofType[start..<min(start + Limits.bootstrapRows, ofType.count)]
                var writer = BootstrapRowsWriter(RowCodec(schema.types[type]))
                for change in piece where change.row != nil { change.row?.withUnsafeBytes { writer.add($0) } }
                for change in piece where change.row == nil { writer.addGone(change.key, change.leaving) }
                for change in piece where change.row != nil && pending.contains(change.key, of: schema.types[type].name) {
                    writer.addTimes(change.key, change.times, commitTime: change.commitTime)
                }
                messages.append((bytes: writer.finish(), rows: UInt64(piece.count)))
            }
        }
        return messages
    }

    private static func encode(_ fill: (inout PBServerMessage) -> Void) -> [UInt8] { SessionMessages.encode(fill) }
}
