import SluiceCore
import SluicePorts
import Synchronization

/// The relations with generated columns that a stream has described, by number.
///
/// The stream's thread adds them, and the change source computes the columns of their rows. So both read a row by the description that
/// preceded it in the WAL, whatever has become of the table since.
package final class ComputedRelations: Sendable {
    private let all = Mutex<[ComputedRelation]>([])

    package init() {}

    /// Returns the number of a relation. Each description is stored once.
    func number(_ relation: ComputedRelation) -> Int {
        all.withLock { all in
            // PostgreSQL describes a relation again after every change of its table.
            if let known = all.firstIndex(where: { $0.type == relation.type && $0.columns == relation.columns }) { return known }
            all.append(relation)
            return all.count - 1
        }
    }

    subscript(number: Int) -> ComputedRelation? { all.withLock { $0.indices.contains(number) ? $0[number] : nil } }
}

/// A relation whose generated columns are computed.
struct ComputedRelation: Sendable {
    /// The index of the class in the schema.
    let type: Int32
    let keyProperty: Int
    /// The forms of all properties of the class.
    let forms: [ColumnForm]
    let columns: GeneratedColumns
    let bound: SharedRowBound

    /// Computes the columns of rows and writes them into the buffer.
    ///
    /// If PostgreSQL cannot compute the columns of some rows, the rows are halved repeatedly, so that only those are left out. A statement
    /// outside of a transaction fails alone.
    /// - Returns: The rows that do not fit their class.
    func complete(
        _ rows: ArraySlice<UncomputedRow>, _ buffer: inout RowBuffer, _ session: PostgresSession
    ) throws -> [RowRef: WithdrawnRow] {
        let values: PostgresResult
        do {
            values = try columns.values(rows, session)
        } catch let failure as PostgresError where failure.isRefusedValue || failure.isRaised {
            guard rows.count > 1 else {
                let names = columns.properties.map { forms[$0].property.name }.joined(separator: ", ")
                return withdrawn(rows.map { ($0.row, "\(names): PostgreSQL cannot compute the value: \(failure.message)") }, buffer)
            }
            let middle = rows.startIndex + rows.count / 2
            let first = try complete(rows[..<middle], &buffer, session)
            return first.merging(try complete(rows[middle...], &buffer, session)) { $1 }
        }
        var faults: [(row: RowRef, reason: String)] = []
        var number = rows.startIndex
        values.forEach { lent in
            let row = rows[number].row
            number += 1
            do throws(Misfit) {
                for (place, property) in columns.properties.enumerated() {
                    buffer.set(row, property, unsafe try forms[property].decode(lent.bytes(place), into: &buffer))
                }
                if isTooLarge(row, buffer) { throw Misfit.tooLarge(bound.current) }
            } catch {
                faults.append((row, error.reason))
            }
        }
        return withdrawn(faults, buffer)
    }

    /// Returns `true` if a row with its computed columns exceeds the bound. The decoder has measured the others.
    private func isTooLarge(_ row: RowRef, _ buffer: RowBuffer) -> Bool {
        let bytes = buffer.cells[Int(row.start)..<Int(row.start + row.count)].reduce(0) { $0 + ($1.tag.isInArena ? Int($1.length) : 0) }
        return bytes > bound.current.unmeasuredBytes(properties: forms.count) && buffer.isLarger(row, than: bound.current)
    }

    private func withdrawn(_ rows: [(row: RowRef, reason: String)], _ buffer: RowBuffer) -> [RowRef: WithdrawnRow] {
        Dictionary(
            rows.map { row, reason in
                let key = buffer.withView(row) { $0.value(keyProperty) } ?? .null
                return (row, WithdrawnRow(key: forms[keyProperty].text(key) ?? "NULL", reason: reason))
            }, uniquingKeysWith: { $1 })
    }
}

/// A row that was found not to fit its class after its decoding.
struct WithdrawnRow: Hashable, Sendable {
    /// The primary key, as PostgreSQL's text.
    var key: String
    var reason: String
}

extension CaptureBatch {
    /// Removes rows from the changes and reports them, as the decoder does with rows that do not fit.
    mutating func withdraw(_ rows: [RowRef: WithdrawnRow]) {
        guard !rows.isEmpty else { return }
        var kept: [CapturedChange] = []
        kept.reserveCapacity(changes.count)
        for index in transactions.indices {
            let start = kept.count
            for change in changes[transactions[index].changes] {
                if let change = withdraw(rows, from: change) { kept.append(change) }
            }
            transactions[index].changes = start..<kept.count
        }
        changes = kept
        // A transaction without changes so far gives no piece.
        transactions.removeAll { $0.end == nil && $0.changes.isEmpty }
        // The last report about a row counts.
        unfit.sort { $0.position < $1.position }
    }

    /// Returns the change between the images that are left; nil if there is none.
    private mutating func withdraw(_ rows: [RowRef: WithdrawnRow], from change: CapturedChange) -> CapturedChange? {
        let (old, new) = (change.before.flatMap { rows[$0] }, change.after.flatMap { rows[$0] })
        if old == nil, new == nil { return change }
        if let old, old.key != new?.key {
            unfit.append(UnfitRow(position: change.position, type: change.type, key: old.key, reason: nil))
        }
        if let new { unfit.append(UnfitRow(position: change.position, type: change.type, key: new.key, reason: new.reason)) }
        var change = change
        if old != nil { change.before = nil }
        if new != nil { change.after = nil }
        switch (change.before, change.after) {
        case (nil, nil): return nil
        case (nil, .some): change.operation = .insert
        case (.some, nil): change.operation = .delete
        case (.some, .some): break
        }
        return change
    }
}
