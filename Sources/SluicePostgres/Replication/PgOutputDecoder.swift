package import SluiceCore
package import SluicePorts

/// A decoder of pgoutput messages (protocol version 1, text values) into capture batches. Pure: bytes in, rows out.
///
/// Rows that do not fit their class never become changes; they are reported in `unfit`. An update from a fitting row to an unfit
/// one is a delete for all readers, and the reverse is an insert. An update of the primary key is a delete and an insert, with an
/// ordinal each. Row changes of tables without a class only advance the ordinal.
///
/// The origin of a transaction is the logical message with the prefix `sluice` and the content `client:changeset:time`. It applies
/// to the whole transaction, or from its piece on if the transaction was cut. Write times (prefix `sluice-times`) precede their
/// rows.
///
/// A transaction with only a WAL heartbeat (prefix `sluice-mark`) is reported without changes, because its end is awaited. A schema
/// announcement (prefix `sluice-schema`) is passed on unchanged. A gap of a table with a class (prefix `sluice-gap`) means that
/// changes from before the end of its transaction are missing.
package struct PgOutputDecoder: Sendable {
    private let schema: Schema
    /// Index into `Schema.types`, mapping and forms, by schema and table.
    private let tables: [TableName: (type: Int32, mapping: TableMapping, forms: [ColumnForm])]
    private let bounds: RowBounds
    private let computed: ComputedRelations
    /// Indices into `relations`, by PostgreSQL's identifier of the relation.
    private var slots: [UInt32: Int] = [:]
    private var relations: [RelationMap] = []
    /// The relation of the previous change. Bulk changes arrive table by table.
    private var last: (identifier: UInt32, slot: Int) = (0, -1)
    private var open: OpenTransaction?

    private struct TableName: Hashable, Sendable {
        var schema: String
        var table: String
    }

    private struct OpenTransaction: Sendable {
        var xid: UInt32
        var lsn: LSN
        var commitTime: Int64
        var origin: Origin?
        /// The write times of its rows, by `WriteTimesMessage.name`. Each applies to the first change of its row.
        var times: [String: ArraySlice<UInt8>] = [:]
        /// `true` if the transaction is reported even without changes, because its end is awaited.
        var isMark = false
        /// `true` if changes from before its end are missing.
        var isGap = false
        var ordinal: UInt32 = 0
        /// The index of its first change in the batch being filled.
        var start: Int
        /// `true` if an earlier batch has a piece of it.
        var isContinued = false
    }

    /// Creates a decoder. Mappings of classes that the schema lacks, and of classes without a primary key, are ignored.
    ///
    /// - Parameters:
    ///   - bounds: The bounds of rows. A larger row does not fit its class.
    ///   - computed: Receives the relations of the rows in `CaptureBatch.uncomputed`.
    package init(
        schema: Schema, tables: [TableMapping], bounds: RowBounds = RowBounds(), computed: ComputedRelations = ComputedRelations()
    ) {
        self.schema = schema
        self.bounds = bounds
        self.computed = computed
        var byName: [TableName: (type: Int32, mapping: TableMapping, forms: [ColumnForm])] = [:]
        for mapping in tables {
            guard let index = schema.index(of: mapping.type), schema.types[index].primaryKey != nil else { continue }
            let forms = zip(schema.types[index].properties, mapping.facts).map { ColumnForm($0, in: schema, $1) }
            byName[TableName(schema: mapping.schema, table: mapping.table)] = (Int32(index), mapping, forms)
        }
        self.tables = byName
    }

    /// `true` if the last transaction has not ended.
    package var isInTransaction: Bool { open != nil }

    /// Decodes one message.
    ///
    /// - Throws: `MalformedMessage`. The batch and the decoder cannot be used afterwards.
    @unsafe
    package mutating func decode(_ message: UnsafeBufferPointer<UInt8>, into batch: inout CaptureBatch) throws(MalformedMessage) {
        var reader = unsafe MessageReader(message)
        switch try reader.byte() {
        case UInt8(ascii: "I"): try insert(&reader, &batch)
        case UInt8(ascii: "U"): try update(&reader, &batch)
        case UInt8(ascii: "D"): try delete(&reader, &batch)
        case UInt8(ascii: "B"): try begin(&reader, batch)
        case UInt8(ascii: "C"): try commit(&reader, &batch)
        case UInt8(ascii: "R"): try relation(&reader)
        case UInt8(ascii: "M"): try self.message(&reader, &batch)
        case UInt8(ascii: "T"): try truncate(&reader, &batch)
        case UInt8(ascii: "O"), UInt8(ascii: "Y"): break
        case let kind: throw MalformedMessage(reason: "its kind \(kind) is unknown")
        }
    }

    /// Ends the batch inside a transaction: its changes so far become a piece, and more follow in the next batch.
    package mutating func cut(_ batch: inout CaptureBatch) {
        guard var transaction = open else { return }
        // A transaction without changes so far gives no piece.
        if batch.changes.count > transaction.start {
            batch.transactions.append(piece(transaction, batch, end: nil))
            transaction.isContinued = true
        }
        // The next batch begins empty.
        transaction.start = 0
        open = transaction
    }

    private func piece(_ transaction: OpenTransaction, _ batch: CaptureBatch, end: LSN?) -> CapturedTransaction {
        CapturedTransaction(
            xid: transaction.xid, lsn: transaction.lsn, commitTime: transaction.commitTime, origin: transaction.origin,
            changes: transaction.start..<batch.changes.count, end: end)
    }

    // MARK: Transactions

    /// The microseconds from 1970 to 2000, when PostgreSQL's time begins.
    static let epoch: Int64 = 946_684_800_000_000

    private mutating func begin(_ reader: inout MessageReader, _ batch: CaptureBatch) throws(MalformedMessage) {
        let start = try reader.lsn().rawValue
        let time = Int64(bitPattern: try reader.uint64()).addingReportingOverflow(Self.epoch)
        let xid = try reader.uint32()
        // After back-to-back commits, a commit record begins where the one before it ends. A position inside the record is after
        // the end of the first transaction and before the end of the second.
        if open != nil { throw MalformedMessage(reason: "transaction \(xid) begins inside another") }
        open = OpenTransaction(
            xid: xid, lsn: LSN(rawValue: start &+ 1), commitTime: time.overflow ? .max : time.partialValue, start: batch.changes.count)
    }

    private mutating func commit(_ reader: inout MessageReader, _ batch: inout CaptureBatch) throws(MalformedMessage) {
        _ = try reader.byte()
        _ = try reader.lsn()
        let end = try reader.lsn()
        _ = try reader.uint64()
        guard let transaction = open else { throw MalformedMessage(reason: "a commit without a beginning") }
        // An empty transaction is reported only if its end matters to a client or is awaited.
        if batch.changes.count > transaction.start || transaction.isContinued || transaction.origin != nil || transaction.isMark {
            batch.transactions.append(piece(transaction, batch, end: end))
        }
        if transaction.isGap { batch.gap = max(batch.gap, end) }
        batch.reached = max(batch.reached, end)
        open = nil
    }

    private mutating func message(_ reader: inout MessageReader, _ batch: inout CaptureBatch) throws(MalformedMessage) {
        let isTransactional = try reader.byte() & 1 == 1
        _ = try reader.lsn()
        let prefix = try reader.string()
        let content = unsafe try reader.bytes(Int(try reader.uint32()))
        guard isTransactional, open != nil else { return }
        if prefix == WriteTimesMessage.prefix {
            let times = WriteTimesMessage.decode(unsafe Array(content))
            open?.times.merge(times) { $1 }
            return
        }
        let text = unsafe String(decoding: content, as: UTF8.self)
        switch prefix {
        case PostgresRowTransaction.messagePrefix:
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            // A message of another form is ignored.
            guard parts.count == 3, let client = UInt64(parts[0]), let changeset = UInt64(parts[1]), let time = UInt64(parts[2])
            else { return }
            open?.origin = Origin(client: ClientID(rawValue: client), changeset: changeset, time: HybridTime(rawValue: time))
        case WALHeartbeat.prefix:
            open?.isMark = true
        case SchemaAnnouncement.prefix:
            batch.schemas.append(text)
            open?.isMark = true
        case LogGap.prefix where tables.values.contains { $0.mapping.sqlName == text }:
            open?.isMark = true
            open?.isGap = true
        default: break
        }
    }

    /// Returns the position of the next row change, and advances the ordinal.
    private mutating func nextPosition() throws(MalformedMessage) -> Position {
        guard let transaction = open else { throw MalformedMessage(reason: "a change outside of a transaction") }
        open?.ordinal = transaction.ordinal &+ 1
        return Position(lsn: transaction.lsn, ordinal: transaction.ordinal)
    }

    // MARK: Tables

    private mutating func relation(_ reader: inout MessageReader) throws(MalformedMessage) {
        let identifier = try reader.uint32()
        let schemaName = try reader.string()
        let name = TableName(schema: schemaName.isEmpty ? "pg_catalog" : schemaName, table: try reader.string())
        _ = try reader.byte()
        var columns: [String] = []
        for _ in 0..<(try reader.uint16()) {
            _ = try reader.byte()
            columns.append(try reader.string())
            _ = try reader.uint64()
        }
        var map = RelationMap(unmapped: "\(name.schema).\(name.table)")
        if let table = tables[name] {
            let type = schema.types[Int(table.type)]
            map = RelationMap(
                table.type, type, table.mapping, forms: table.forms, columns: columns, bound: bounds[type.name], computed: computed)
        }
        // PostgreSQL describes a relation again after the table has changed.
        if let slot = slots[identifier] {
            relations[slot] = map
        } else {
            slots[identifier] = relations.count
            relations.append(map)
        }
    }

    /// Returns the index of the relation that a change names. The caller reads its fields in place, without a copy.
    @inline(__always)
    private mutating func slot(_ identifier: UInt32) throws(MalformedMessage) -> Int {
        if last.slot >= 0, last.identifier == identifier { return last.slot }
        guard let slot = slots[identifier] else { throw MalformedMessage(reason: "it names the unknown relation \(identifier)") }
        last = (identifier, slot)
        return slot
    }

    private mutating func truncate(_ reader: inout MessageReader, _ batch: inout CaptureBatch) throws(MalformedMessage) {
        let count = try reader.uint32()
        _ = try reader.byte()
        for _ in 0..<count {
            let slot = try slot(try reader.uint32())
            let position = try nextPosition()
            guard relations[slot].type >= 0 else { continue }
            batch.changes.append(
                CapturedChange(position: position, type: relations[slot].type, operation: .truncate, before: nil, after: nil))
        }
    }

    // MARK: Rows

    private mutating func insert(_ reader: inout MessageReader, _ batch: inout CaptureBatch) throws(MalformedMessage) {
        let slot = try slot(try reader.uint32())
        // Every change takes an ordinal, also that of a table without a class.
        let position = try nextPosition()
        guard relations[slot].type >= 0 else { return }
        try expect("N", try reader.byte())
        let texts = try texts(slot, reader)
        let row = try TupleDecoder.row(relations[slot], &reader, old: nil, into: &batch.rows)
        leave(row, texts, slot, &batch)
        finish(slot, position, old: nil, new: row, &batch)
    }

    private mutating func update(_ reader: inout MessageReader, _ batch: inout CaptureBatch) throws(MalformedMessage) {
        let slot = try slot(try reader.uint32())
        let position = try nextPosition()
        guard relations[slot].type >= 0 else { return }
        // A missing old row means that the table lacks REPLICA IDENTITY FULL.
        guard try reader.byte() == UInt8(ascii: "O") else { return reportIdentity(slot, position, &batch) }
        let oldTexts = try texts(slot, reader)
        let old = try TupleDecoder.row(relations[slot], &reader, old: nil, into: &batch.rows)
        try expect("N", try reader.byte())
        let newTexts = try texts(slot, reader, old: oldTexts)
        let new = try TupleDecoder.row(relations[slot], &reader, old: old, into: &batch.rows)
        leave(old, oldTexts, slot, &batch)
        leave(new, newTexts, slot, &batch)
        finish(slot, position, old: old, new: new, &batch)
    }

    private mutating func delete(_ reader: inout MessageReader, _ batch: inout CaptureBatch) throws(MalformedMessage) {
        let slot = try slot(try reader.uint32())
        let position = try nextPosition()
        guard relations[slot].type >= 0 else { return }
        guard try reader.byte() == UInt8(ascii: "O") else { return reportIdentity(slot, position, &batch) }
        let texts = try texts(slot, reader)
        let old = try TupleDecoder.row(relations[slot], &reader, old: nil, into: &batch.rows)
        leave(old, texts, slot, &batch)
        finish(slot, position, old: old, new: nil, &batch)
    }

    /// Returns the texts that generated columns depend on; nil for a table without any.
    @inline(__always)
    private func texts(_ slot: Int, _ reader: MessageReader, old: [String?]? = nil) throws(MalformedMessage) -> [String?]? {
        guard relations[slot].computed >= 0 else { return nil }
        return try GeneratedColumns.texts(relations[slot], reader, old: old)
    }

    /// Leaves the generated columns of a fitting row to the change source. A row that does not fit is not sent.
    @inline(__always)
    private func leave(_ outcome: TupleDecoder.Outcome, _ texts: [String?]?, _ slot: Int, _ batch: inout CaptureBatch) {
        guard let texts, let row = outcome.ref else { return }
        batch.uncomputed.append(UncomputedRow(row: row, relation: relations[slot].computed, texts: texts))
    }

    private func expect(_ kind: Unicode.Scalar, _ found: UInt8) throws(MalformedMessage) {
        if UInt8(truncatingIfNeeded: kind.value) != found {
            throw MalformedMessage(reason: "a row begins with \(found) instead of \(kind)")
        }
    }

    private func reportIdentity(_ slot: Int, _ position: Position, _ batch: inout CaptureBatch) {
        let reason = "the change has no old row: run ALTER TABLE \(relations[slot].name) REPLICA IDENTITY FULL"
        batch.unfit.append(UnfitRow(position: position, type: relations[slot].type, key: "", reason: reason))
    }

    /// Adds the change between two images.
    private mutating func finish(
        _ slot: Int, _ position: Position, old: TupleDecoder.Outcome?, new: TupleDecoder.Outcome?, _ batch: inout CaptureBatch
    ) {
        let type = relations[slot].type
        // The old row did not fit. Its report ends here, unless the new row takes it over under the same key.
        if let old, !old.faults.isEmpty, old.key != new?.key {
            batch.unfit.append(UnfitRow(position: position, type: type, key: old.key ?? "", reason: nil))
        }
        if let new, let fault = new.faults.first {
            batch.unfit.append(UnfitRow(position: position, type: type, key: new.key ?? "", reason: fault.misfit.reason))
        }
        // Cells without a reference are removed if no others follow them.
        if let new, new.ref == nil { batch.rows.cells.removeSubrange(Int(new.image.start)...) }
        if let old, old.ref == nil, new?.ref == nil { batch.rows.cells.removeSubrange(Int(old.image.start)...) }
        switch (old?.ref, new?.ref) {
        case (nil, nil): break
        case (nil, let after?):
            let times = times(of: after, slot, &batch)
            batch.changes.append(
                CapturedChange(position: position, type: type, operation: .insert, before: nil, after: after, times: times))
        case (let before?, nil):
            let times = times(of: before, slot, &batch)
            batch.changes.append(
                CapturedChange(position: position, type: type, operation: .delete, before: before, after: nil, times: times))
        case (let before?, let after?):
            if TupleDecoder.isSame(relations[slot].keyProperty, before, after, batch.rows) {
                let times = times(of: after, slot, &batch)
                batch.changes.append(
                    CapturedChange(position: position, type: type, operation: .update, before: before, after: after, times: times))
                return
            }
            // A changed key gives two changes, with an ordinal each.
            batch.changes.append(CapturedChange(position: position, type: type, operation: .delete, before: before, after: nil))
            guard let next = try? nextPosition() else { return }
            batch.changes.append(CapturedChange(position: next, type: type, operation: .insert, before: nil, after: after))
        }
    }

    /// Moves the write times of a row into the batch, and returns their range in the arena.
    ///
    /// A further change of the row in the same transaction has none: it was made by SQL, such as a trigger's.
    private mutating func times(of row: RowRef, _ slot: Int, _ batch: inout CaptureBatch) -> Range<UInt32> {
        guard let isEmpty = open?.times.isEmpty, !isEmpty else { return 0..<0 }
        let relation = relations[slot]
        guard let key = batch.rows.withView(row, { $0.value(relation.keyProperty) }) else { return 0..<0 }
        let name = WriteTimesMessage.name(schema.types[Int(relation.type)].name, key)
        guard let times = open?.times.removeValue(forKey: name) else { return 0..<0 }
        let start = UInt32(batch.rows.arena.count)
        batch.rows.arena.append(contentsOf: times)
        return start..<UInt32(batch.rows.arena.count)
    }
}
