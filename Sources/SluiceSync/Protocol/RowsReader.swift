import SluiceCore
import SluiceReplica
import SluiceWire

/// Decodes the two messages that carry rows. Skips types that the client replica does not have.
enum RowsReader {
    static func bootstrapRows(_ reader: WireReader, _ schema: ServerSchema) throws(SluiceError) -> StagedRows? {
        var reader = reader
        var staged: StagedRows?
        var parts = ServerMessageParts()
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited):
                let name = reader.slice(try reader.text())
                staged = schema.codec.index(ofName: name).map { StagedRows(type: $0, numbers: schema.numbers[$0]) }
            case (2, .lengthDelimited):
                try parts.add()
                let row = reader.slice(try reader.content())
                // A class that the replica does not have: skip its rows.
                guard let type = staged?.type else { continue }
                if let ref = try staged?.buffer.decode(row, schema.codec[type]) { staged?.rows.append(ref) }
                try ServerMessageParts.check(decoded: staged?.buffer.byteCount ?? 0)
            case (3, .lengthDelimited):
                try parts.add()
                let key = try ValueCodec.decode(reader.slice(try reader.content()))
                staged?.removed.append(key)
            case (4, .lengthDelimited):
                try parts.add()
                let key = try ValueCodec.decode(reader.slice(try reader.content()))
                staged?.kept.append(key)
            case (5, .varint): staged?.reasons.append(LeftObject.Reason(event: try reader.varint()))
            case (5, .lengthDelimited):
                var numbers = reader.nested(try reader.content())
                while !numbers.isAtEnd { staged?.reasons.append(LeftObject.Reason(event: try numbers.varint())) }
            case (7, .lengthDelimited):
                try parts.add()
                let times = try times(reader.nested(try reader.content()))
                staged?.times.append(times)
            case (6, .lengthDelimited): staged?.checkpoint = Array(reader.slice(try reader.content()))
            default: try reader.skip(tag.type)
            }
        }
        return staged
    }

    private static func times(_ reader: WireReader) throws(SluiceError) -> StagedTimes {
        var reader = reader
        var times = StagedTimes(key: .null, times: [], commitTime: 0)
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): times.key = try ValueCodec.decode(reader.slice(try reader.content()))
            case (2, .lengthDelimited): times.times = Array(reader.slice(try reader.content()))
            case (3, .varint): times.commitTime = try reader.zigzag()
            default: try reader.skip(tag.type)
            }
        }
        return times
    }

    static func commits(_ reader: WireReader, _ schema: ServerSchema) throws(SluiceError) -> ServerMessage {
        var reader = reader
        var batch = ReplicaBatch()
        batch.numbers = schema.numbers
        var more = false
        var parts = ServerMessageParts()
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): try commit(reader.nested(try reader.content()), schema, &parts, into: &batch)
            case (2, .fixed64): batch.lsn = LSN(rawValue: try reader.fixed64())
            case (3, .varint): more = try reader.varint() != 0
            case (4, .lengthDelimited): batch.witness = Array(reader.slice(try reader.content()))
            default: try reader.skip(tag.type)
            }
        }
        return .commits(batch, more: more)
    }

    private static func commit(
        _ reader: WireReader, _ schema: ServerSchema, _ parts: inout ServerMessageParts, into batch: inout ReplicaBatch
    ) throws(SluiceError) {
        try parts.add()
        var reader = reader
        var lsn = LSN.zero
        var time: Int64 = 0
        var changeset: UInt64 = 0
        var written = HybridTime.zero
        let first = batch.changes.count
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .fixed64): lsn = LSN(rawValue: try reader.fixed64())
            case (2, .varint): time = try reader.zigzag()
            case (3, .lengthDelimited):
                try parts.add()
                if let change = try change(reader.nested(try reader.content()), schema, into: &batch.rows) {
                    batch.changes.append(change)
                }
                try ServerMessageParts.check(decoded: batch.rows.byteCount)
            case (4, .varint): changeset = try reader.varint()
            case (5, .fixed64): written = HybridTime(rawValue: try reader.fixed64())
            default: try reader.skip(tag.type)
            }
        }
        batch.commits.append(
            ReplicaCommit(lsn: lsn, changes: first..<batch.changes.count, time: time, changeset: changeset, writeTime: written))
    }

    private static func change(
        _ reader: WireReader, _ schema: ServerSchema, into rows: inout RowBuffer
    ) throws(SluiceError) -> ReplicaRowChange? {
        var reader = reader
        var type: Int?
        var event: ViewEvent?
        var row: Range<Int>?
        var key: Range<Int>?
        var times: Range<Int>?
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): type = schema.codec.index(ofName: reader.slice(try reader.text()))
            case (2, .varint): event = ViewEvent(rawValue: UInt8(truncatingIfNeeded: try reader.varint()))
            case (3, .lengthDelimited): row = try reader.content()
            case (4, .lengthDelimited): key = try reader.content()
            case (5, .lengthDelimited): times = try reader.content()
            default: try reader.skip(tag.type)
            }
        }
        guard let event else { throw .malformed("a change of the view has no event") }
        guard let type else { return nil }
        var change = ReplicaRowChange(type: type, event: event.replicaEvent)
        if event.hasRow {
            guard let row else { throw .malformed("a change that enters the view has no row") }
            change.row = try rows.decode(reader.slice(row), schema.codec[type])
        } else {
            guard let key else { throw .malformed("a change that leaves the view has no key") }
            change.key = try ValueCodec.decode(reader.slice(key))
        }
        if let times {
            let start = UInt32(rows.arena.count)
            rows.arena.append(contentsOf: reader.slice(times))
            change.times = start..<UInt32(rows.arena.count)
        }
        return change
    }
}

extension RowBuffer {
    mutating func decode(_ bytes: UnsafeRawBufferPointer, _ codec: RowCodec) throws(SluiceError) -> RowRef {
        try codec.decode(bytes, into: &self)
    }
}

extension LeftObject.Reason {
    /// - Parameter event: the number of a `ViewEvent`. Numbers that give no reason become `leftView`.
    init(event: UInt64) {
        switch ViewEvent(rawValue: UInt8(truncatingIfNeeded: event)) {
        case .deleted: self = .deleted
        case .leftQuery: self = .leftQuery
        case .lostPermission: self = .lostPermission
        case .entered, .updated, nil: self = .leftView
        }
    }
}

extension ViewEvent {
    var replicaEvent: ReplicaRowChange.Event {
        switch self {
        case .entered: .entered
        case .updated: .updated
        case .deleted: .deleted
        case .leftQuery: .leftQuery
        case .lostPermission: .lostPermission
        }
    }
}

extension ReplicaBatch {
    /// Appends a later piece of the same run. Copies its rows and shifts its ranges.
    mutating func append(_ later: ReplicaBatch) {
        let offset = changes.count
        for change in later.changes {
            var moved = change
            if let row = change.row { moved.row = later.rows.withView(row) { rows.append($0) } }
            if !change.times.isEmpty {
                let start = UInt32(rows.arena.count)
                rows.arena.append(contentsOf: later.rows.arena[Int(change.times.lowerBound)..<Int(change.times.upperBound)])
                moved.times = start..<UInt32(rows.arena.count)
            }
            changes.append(moved)
        }
        for commit in later.commits {
            let range = commit.changes.lowerBound + offset..<commit.changes.upperBound + offset
            var moved = commit
            moved.changes = range
            commits.append(moved)
        }
        lsn = max(lsn, later.lsn)
        witness = later.witness
    }

    /// The approximate size in bytes, the measure for the bound of an unfinished run.
    var byteCount: Int { rows.byteCount + changes.count * MemoryLayout<ReplicaRowChange>.stride }
}
