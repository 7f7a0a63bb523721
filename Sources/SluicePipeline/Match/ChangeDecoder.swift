import SluiceCore
import SluiceWire

/// A change record decoded for matching. Ranges are offsets into the record's bytes.
struct DecodedChange {
    /// Its index in the decoder, valid until the batch ends.
    var index: Int
    /// The index in `Schema.types`.
    var type: Int
    var operation: ChangeOperation
    /// The commit time, in microseconds since 1970.
    var commitTime: Int64
    /// The client changeset that wrote it; nil for SQL.
    var origin: Origin?
    var primaryKey: Range<Int>
    var before: RowRef?
    var after: RowRef?
    /// Byte range of the new row in the record, as clients receive it.
    var row: Range<Int>?
    /// Byte range of the write times in the record; empty for SQL.
    var times: Range<Int>

    /// The commit time in milliseconds since 1970, rounded as PostgreSQL rounds it where it merges.
    var commitMilliseconds: Int64 { (min(commitTime, .max - 500) + 500) / 1_000 }
}

/// Decodes the records of a batch into flat rows, once each, into buffers reused from batch to batch.
struct ChangeDecoder {
    private let codec: ChangeRecordCodec
    private var rows = RowBuffer()
    private(set) var changes: [DecodedChange] = []

    init(schema: Schema) { codec = ChangeRecordCodec(schema) }

    mutating func removeAll() {
        rows.removeAll()
        changes.removeAll(keepingCapacity: true)
    }

    /// Decodes one record.
    /// - Returns: nil for an unneeded or unknown class and for a malformed record. The feed has reported the latter, and no client
    ///   receives it.
    mutating func decode(_ bytes: ArraySlice<UInt8>, needed: (Int) -> Bool) -> DecodedChange? {
        bytes.withUnsafeBytes { buffer in
            guard let view = try? codec.decode(buffer), let type = view.type, needed(type) else { return nil }
            var change = DecodedChange(
                index: changes.count, type: type, operation: view.operation, commitTime: view.commitTime, origin: view.origin,
                primaryKey: view.primaryKey, row: view.after, times: view.times)
            do {
                if let before = view.before { change.before = try codec.row(before, of: type, in: buffer, into: &rows) }
                if let after = view.after { change.after = try codec.row(after, of: type, in: buffer, into: &rows) }
            } catch {
                return nil
            }
            changes.append(change)
            return change
        }
    }

    func change(_ index: Int) -> DecodedChange { changes[index] }

    func rowCodec(of type: Int) -> RowCodec { codec.types[type] }

    /// Calls `body` with both images for matching.
    func withRows<R>(_ change: DecodedChange, _ body: (_ before: RowView?, _ after: RowView?) -> R) -> R {
        rows.withBase { cells, arena in
            func view(_ row: RowRef) -> RowView { RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena) }
            return body(change.before.map(view), change.after.map(view))
        }
    }

    /// Returns the primary key as an owned value; null for a truncation.
    func key(of change: DecodedChange) -> Value {
        guard let image = change.after ?? change.before, let key = codec.types[change.type].type.primaryKey else { return .null }
        return rows.withView(image) { $0.value(key) } ?? .null
    }

    /// Returns the write times of a change that one session may read; empty for none.
    func times(of change: DecodedChange, in record: ArraySlice<UInt8>, _ view: TypeView) -> [UInt8] {
        guard !change.times.isEmpty else { return [] }
        let start = record.startIndex
        return view.visible(
            Array(record[start + change.times.lowerBound..<start + change.times.upperBound]), codec.types[change.type].type)
    }

    /// Returns the new row encoded for one session; empty for a delete.
    func row(of change: DecodedChange, mask: [Bool]?) -> [UInt8] {
        guard let image = change.after else { return [] }
        var writer = ByteWriter()
        rows.withView(image) { codec.types[change.type].encode($0, mask: mask, into: &writer) }
        return writer.take()
    }
}
