package import SluiceCore

/// The codec of the `Row` message of one class. It encodes and decodes in place, without an allocation per row.
package struct RowCodec: Sendable {
    package let type: ObjectType
    /// Property indices and numbers, ascending by number: the order of fields.
    private let order: [(index: Int32, id: UInt32)]
    private let shapes: [ValueShape]

    package init(_ type: ObjectType) {
        self.type = type
        order = type.properties.enumerated().map { (Int32($0), $1.id) }.sorted { $0.id < $1.id }
        shapes = type.properties.map { ValueShape(of: $0) }
    }

    /// Appends the content of a `Row` message. Omits absent cells.
    /// - Parameter mask: `true`, by property index, for each property that the reader may see. `nil` shows all.
    package func encode(_ row: RowView, mask: [Bool]? = nil, into writer: inout ByteWriter) {
        for (index, id) in order {
            let index = Int(index)
            if let mask, !mask[index] { continue }
            let cell = row[index]
            if cell.tag == .absent { continue }
            let field = writer.open(1)
            writer.ifNotZero(1, varint: UInt64(id))
            let value = writer.open(2)
            ValueCodec.encode(cell, of: row, into: &writer)
            writer.close(value)
            writer.close(field)
        }
    }

    /// Appends the content of a `Row` message for an owning row.
    package func encode(_ row: Row, mask: [Bool]? = nil, into writer: inout ByteWriter) {
        for (index, id) in order {
            let index = Int(index)
            if let mask, !mask[index] { continue }
            guard let value = row[index] else { continue }
            let field = writer.open(1)
            writer.ifNotZero(1, varint: UInt64(id))
            ValueCodec.nested(2, value, into: &writer)
            writer.close(field)
        }
    }

    /// Copies the fields of an encoded `Row` that `mask` allows, unchanged. Drops fields of properties that the class does not have: an
    /// unknown property cannot be allowed.
    /// - Throws: `badSyntax`. `writer` then holds a part of the row.
    package func copy(_ bytes: UnsafeRawBufferPointer, mask: [Bool], into writer: inout ByteWriter) throws(SluiceError) {
        var reader = WireReader(bytes)
        while !reader.isAtEnd {
            let start = reader.position
            let tag = try reader.tag()
            guard tag.field == 1, tag.type == .lengthDelimited else {
                try reader.skip(tag.type)
                continue
            }
            let (property, _) = try field(reader.nested(try reader.content()))
            guard let index = type.index(ofID: property), mask[index] else { continue }
            writer.raw(reader.slice(start..<reader.position))
        }
    }

    /// Decodes the content of a `Row` message and appends the row to `rows`. Skips numbers that the class does not have. Properties that
    /// are missing become absent.
    /// - Throws: `badSyntax` for malformed bytes, `wrongValueType` for a value that its property does not accept. `rows` is then
    ///   unchanged.
    package func decode(_ bytes: UnsafeRawBufferPointer, into rows: inout RowBuffer) throws(SluiceError) -> RowRef {
        let row = rows.appendAbsent(count: type.properties.count)
        let arenaStart = rows.arena.count
        // The decoder takes the arena, so that appending copies nothing; `defer` returns it on every path.
        var decoder = CellDecoder(arena: rows.arena)
        rows.arena = []
        defer { rows.arena = decoder.arena }
        do throws(SluiceError) {
            try decode(WireReader(bytes), row, &decoder, &rows)
            return row
        } catch {
            rows.cells.removeSubrange(Int(row.start)...)
            decoder.arena.removeSubrange(arenaStart...)
            throw error
        }
    }

    /// Decodes a row of scalars in place, as cells by property index: those of texts, binaries, UUIDs and decimals refer to `bytes`.
    /// - Returns: `false` for a row with a container or a link. `cells` is then of no use.
    /// - Throws: As `decode`.
    package func scalars(_ bytes: UnsafeRawBufferPointer, into cells: inout [Cell]) throws(SluiceError) -> Bool {
        cells.removeAll(keepingCapacity: true)
        for _ in type.properties.indices { cells.append(.absent) }
        return try fields(WireReader(bytes)) { index, value throws(SluiceError) in
            guard let cell = try CellDecoder.scalar(value, shape: shapes[index]) else { return false }
            cells[index] = cell
            return true
        }
    }

    /// Decodes an owning row.
    package func decode(_ bytes: [UInt8]) throws(SluiceError) -> Row {
        var rows = RowBuffer()
        let row = try bytes.withUnsafeBufferPointer { buffer throws(SluiceError) in
            try decode(UnsafeRawBufferPointer(buffer), into: &rows)
        }
        return rows.withView(row) { Row($0) }
    }

    private func decode(
        _ reader: WireReader, _ row: RowRef, _ decoder: inout CellDecoder, _ rows: inout RowBuffer
    ) throws(SluiceError) {
        _ = try fields(reader) { index, value throws(SluiceError) in
            rows.set(row, index, try decoder.cell(value, shape: shapes[index]))
            return true
        }
    }

    /// Calls the body with the index and the value of each property that the class has, until it returns `false`.
    @inline(__always)
    private func fields(_ reader: WireReader, _ body: (Int, WireReader) throws(SluiceError) -> Bool) throws(SluiceError) -> Bool {
        var reader = reader
        while !reader.isAtEnd {
            let tag = try reader.tag()
            guard tag.field == 1 else {
                try reader.skip(tag.type)
                continue
            }
            try reader.expect(tag, .lengthDelimited)
            let (property, value) = try field(reader.nested(try reader.content()))
            guard let index = type.index(ofID: property) else { continue }
            guard let value else { throw .malformed("property \(property) of \(type.name) has no value") }
            do throws(SluiceError) {
                guard try body(index, reader.nested(value)) else { return false }
            } catch {
                throw named(error, property: index)
            }
        }
        return true
    }

    /// Decodes the two parts of a `Field` message.
    private func field(_ reader: WireReader) throws(SluiceError) -> (property: UInt32, value: Range<Int>?) {
        // The usual form: the two parts in their order, and a small number.
        var usual = reader
        if let property = usual.small(0x08), usual.next(0x12) {
            let value = try usual.content()
            if usual.isAtEnd { return (UInt32(property), value) }
        }
        var reader = reader
        var property: UInt32 = 0
        var value: Range<Int>?
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .varint): property = UInt32(truncatingIfNeeded: try reader.varint())
            case (2, .lengthDelimited): value = try reader.content()
            default: try reader.skip(tag.type)
            }
        }
        return (property, value)
    }

    private func named(_ error: SluiceError, property: Int) -> SluiceError {
        SluiceError(error.code, "\(type.name).\(type.properties[property].name): \(error.message)", fix: error.fix)
    }
}

/// The codecs of all classes of a schema, by type index.
package struct SchemaCodec: Sendable {
    package let schema: Schema
    package let rows: [RowCodec]
    /// The class names, encoded as in messages.
    let names: [[UInt8]]

    package init(_ schema: Schema) {
        self.schema = schema
        rows = schema.types.map { RowCodec($0) }
        names = schema.types.map { Array($0.name.utf8) }
    }

    package subscript(_ type: Int) -> RowCodec { rows[type] }

    /// Returns the index of the class with this name, or `nil`. Compares the names one by one without building a string: O(classes).
    package func index(ofName name: UnsafeRawBufferPointer) -> Int? {
        names.firstIndex { $0.count == name.count && $0.elementsEqual(name) }
    }
}
