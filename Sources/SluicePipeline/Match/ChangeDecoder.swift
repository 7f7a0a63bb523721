import SluiceCore
import SluiceWire

/// A change record decoded for matching. Ranges are offsets into the record's bytes.
struct DecodedChange {
    /// Its place in the decoder, for as long as the batch lasts.
    var index: Int
    /// Index in `Schema.types`.
    var type: Int
    var operation: ChangeOperation
    var commitTime: Int64
    /// The client's changeset that it is of; nil for SQL.
    var origin: Origin?
    var primaryKey: Range<Int>
    var before: RowRef?
    var after: RowRef?
    /// Where the new row's bytes lie in the record: what clients receive.
    var row: Range<Int>?
    /// Where the write times lie in the record; empty for SQL.
    var times: Range<Int>

    /// The commit's time in milliseconds since 1970, rounded as PostgreSQL does where it merges.
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

    /// Nil for a type that the schema does not have or nobody needs, and for a malformed record: what cannot be read
    /// reaches nobody, and the feed has reported it.
    mutating func decode(_ bytes: ArraySlice<UInt8>, needed: (Int) -> Bool) -> DecodedChange? {
        bytes.withUnsafeBytes { buffer in
            guard let view = try? codec.decode(buffer), let type = view.type, needed(type) else { return nil }
            var change = DecodedChange(
                index: changes.count, type: type, operation: view.operation, commitTime: view.commitTime, origin: view.origin,
                primaryKey: view.primaryKey, before: nil, after: nil, row: view.after, times: view.times)
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

    /// Lends both images for matching.
    func withRows<R>(_ change: DecodedChange, _ body: (_ before: RowView?, _ after: RowView?) -> R) -> R {
        rows.withBase { cells, arena in
            func view(_ row: RowRef) -> RowView { RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena) }
            return body(change.before.map(view), change.after.map(view))
        }
    }

    /// The primary key in owning form.
    func key(of change: DecodedChange) -> Value {
        guard let image = change.after ?? change.before, let key = codec.types[change.type].type.primaryKey else { return .null }
        return rows.withView(image) { $0.value(key) } ?? .null
    }

    /// The write times of a change for one session; empty for none.
    func times(of change: DecodedChange, in record: ArraySlice<UInt8>, _ view: TypeView) -> [UInt8] {
        guard !change.times.isEmpty else { return [] }
        let start = record.startIndex
        return view.visible(
            Array(record[start + change.times.lowerBound..<start + change.times.upperBound]), codec.types[change.type].type)
    }

    /// The new row encoded for one session.
    func row(of change: DecodedChange, mask: [Bool]?) -> [UInt8] {
        guard let image = change.after else { return [] }
        var writer = ByteWriter()
        rows.withView(image) { codec.types[change.type].encode($0, mask: mask, into: &writer) }
        return writer.take()
    }
}
