import SluiceCore

/// A decoder of the rows in pgoutput's change messages.
enum TupleDecoder {
    struct Outcome {
        /// The row; if it does not fit, the part of it that does.
        var image: RowRef
        /// The faults of the row, in the order of the columns.
        var faults: [Fault] = []
        /// The primary key as PostgreSQL's text; nil if the row fits.
        var key: String?

        /// The row; nil if it does not fit.
        var ref: RowRef? { faults.isEmpty ? image : nil }
    }

    struct Fault {
        /// The index of the property; -1 for the row as a whole.
        var property: Int
        var misfit: Misfit
    }

    /// Decodes one row into the buffer.
    ///
    /// - Parameter old: The previous row, fitting or not. Columns that were not sent (unchanged large values) are copied from it.
    @inline(__always)
    static func row(
        _ relation: borrowing RelationMap, _ reader: inout MessageReader, old: Outcome?, into rows: inout RowBuffer
    ) throws(MalformedMessage) -> Outcome {
        let count = Int(try reader.uint16())
        guard count == relation.properties.count else {
            throw MalformedMessage(reason: "a row of \(relation.name) has \(count) columns instead of \(relation.properties.count)")
        }
        // Columns are written in place. A cell without a column stays absent.
        let row = rows.appendAbsent(count: relation.propertyCount)
        for (property, tag) in relation.missing { rows.set(row, Int(property), Cell(tag: tag)) }
        var faults: [Fault] = []
        var key: String?
        let start = rows.arena.count
        var unsent = 0
        for column in 0..<count {
            let property = Int(relation.properties[column])
            switch try reader.byte() {
            case UInt8(ascii: "t"):
                let bytes = unsafe try reader.bytes(Int(try reader.uint32()))
                if property < 0 { continue }
                if let cell = unsafe ColumnForm.quick(relation.codes[column], bytes, into: &rows) {
                    rows.set(row, property, cell)
                } else {
                    unsafe slow(relation, property, bytes, row, &rows, &faults)
                }
                if !faults.isEmpty, key == nil, column == relation.keyColumn { key = unsafe String(decoding: bytes, as: UTF8.self) }
            case UInt8(ascii: "n"):
                if property >= 0 { unsafe slow(relation, property, nil, row, &rows, &faults) }
            case UInt8(ascii: "u"):
                guard property >= 0, let old else { continue }
                // The value was not sent. The new cell refers to the old row's bytes in the arena.
                let cell = rows.cells[Int(old.image.start) + property]
                rows.set(row, property, cell)
                if cell.tag.isInArena { unsent += Int(cell.length) }
                guard let fault = old.faults.first(where: { $0.property == property }) else { continue }
                faults.append(fault)
                if column == relation.keyColumn { key = old.key }
            case let kind: throw MalformedMessage(reason: "a column of \(relation.name) has the kind \(kind)")
            }
        }
        let bound = relation.bound.current
        // The row is measured only if its bytes may exceed the bound.
        if rows.arena.count - start + unsent > bound.unmeasuredBytes(properties: relation.propertyCount),
            rows.isLarger(row, than: bound)
        {
            faults.append(Fault(property: -1, misfit: .tooLarge(bound)))
        }
        if faults.isEmpty { return Outcome(image: row) }
        return Outcome(image: row, faults: faults, key: key ?? text(ofKey: relation, row, rows))
    }

    /// Decodes a value that is not on the fast path, or records why it does not fit.
    private static func slow(
        _ relation: borrowing RelationMap, _ property: Int, _ bytes: UnsafeBufferPointer<UInt8>?, _ row: RowRef,
        _ rows: inout RowBuffer, _ faults: inout [Fault]
    ) {
        do {
            rows.set(row, property, unsafe try relation.forms[property].decode(bytes, into: &rows))
        } catch {
            faults.append(Fault(property: property, misfit: error))
        }
    }

    /// Returns the primary key for a report, if it was decoded before the column that does not fit.
    private static func text(ofKey relation: borrowing RelationMap, _ row: RowRef, _ rows: RowBuffer) -> String {
        let value = rows.withView(row) { $0.value(relation.keyProperty) } ?? .null
        return relation.forms[relation.keyProperty].text(value) ?? "NULL"
    }

    /// Returns `true` if two rows of one buffer have the same value of a property.
    @inline(__always)
    static func isSame(_ property: Int, _ left: RowRef, _ right: RowRef, _ rows: RowBuffer) -> Bool {
        let l = rows.cells[Int(left.start) + property]
        let r = rows.cells[Int(right.start) + property]
        guard l.tag == r.tag, l.length == r.length else { return false }
        // A value that was not sent shares the old row's bytes, so equal offsets need no comparison.
        if !l.tag.isInArena || l.bits == r.bits { return l.bits == r.bits }
        let count = Int(l.length)
        return rows.arena[Int(l.bits)..<Int(l.bits) + count] == rows.arena[Int(r.bits)..<Int(r.bits) + count]
    }
}
