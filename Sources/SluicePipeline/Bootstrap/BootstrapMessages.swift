import SluiceCore
import SluiceWire
import SwiftProtobuf

/// The content of a bootstrap's last message.
struct BootstrapEnd {
    /// The number of rows sent.
    var rows: UInt64
    /// The classes of the view, which the bootstrap replaced; nil if the client had the view and resumed from the log.
    var types: [String]?
    var held: PBHeld
    /// The number up to which the rows contain the client's changesets.
    var taken: UInt64
}

/// Encodes the messages of a bootstrap.
enum BootstrapMessages {
    /// Encodes the begin.
    /// - Parameter checkpoint: The staged state that the bootstrap continues from.
    static func begin(version: UInt64, rows: UInt64, checkpoint: PBCheckpoint = PBCheckpoint()) -> [UInt8] {
        encode {
            $0.bootstrapBegin = .with {
                $0.version = version
                $0.rows = rows
                if !checkpoint.types.isEmpty { $0.checkpoint = checkpoint }
            }
        }
    }

    /// Encodes the end.
    /// - Parameter writeTime: The latest time of a client's write up to `lsn`.
    static func end(_ end: BootstrapEnd, version: UInt64, lsn: LSN, writeTime: HybridTime) -> [UInt8] {
        encode {
            $0.bootstrapEnd = .with {
                $0.version = version
                $0.lsn = lsn.rawValue
                $0.rows = end.rows
                $0.types = end.types ?? []
                $0.resumed = end.types == nil
                $0.held = end.held
                $0.changeset = end.taken
                $0.writeTime = writeTime.rawValue
            }
        }
    }

    /// Encodes the changes committed while the snapshot was read: replacing rows and removed keys.
    /// - Parameter pending: The objects whose write times the client requested.
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
                    writer.addTimes(change.key, change.times, commitTime: change.transaction.commitTime)
                }
                messages.append((bytes: writer.finish(), rows: UInt64(piece.count)))
            }
        }
        return messages
    }

    private static func encode(_ fill: (inout PBServerMessage) -> Void) -> [UInt8] { SessionMessages.encode(fill) }
}
