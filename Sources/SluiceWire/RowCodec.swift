package import SluiceCore

/// The `Row` message of one object type, read and written in place: no allocation per row.
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

    /// Appends the content of a `Row` message; absent cells are left out.
    /// - Parameter mask: by property index, true where the reader may see the property; nil shows all.
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

    /// Appends those fields of an encoded `Row` that `mask` shows, as they are. Fields of properties that this type does
    /// not know are left out: what is unknown cannot be allowed.
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

    /// Reads the content of a `Row` message to the end of `rows`. Properties with numbers that the type does not have are
    /// skipped; those that are missing are absent.
    /// - Throws: `badSyntax` for malformed bytes, `wrongValueType` for a value that its property does not take; `rows`
    ///   then holds no part of the row.
    package func decode(_ bytes: UnsafeRawBufferPointer, into rows: inout RowBuffer) throws(SluiceError) -> RowRef {
        let row = rows.appendAbsent(count: type.properties.count)
        let arenaStart = rows.arena.count
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

    /// The owning form.
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
                rows.set(row, index, try decoder.cell(reader.nested(value), shape: shapes[index]))
            } catch {
                throw named(error, property: index)
            }
        }
    }

    /// The two parts of a `Field` message.
    private func field(_ reader: WireReader) throws(SluiceError) -> (property: UInt32, value: Range<Int>?) {
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

/// The codecs of all types of a schema, by type index.
package struct SchemaCodec: Sendable {
    package let schema: Schema
    package let rows: [RowCodec]
    /// The names as they lie in messages.
    let names: [[UInt8]]

    package init(_ schema: Schema) {
        self.schema = schema
        rows = schema.types.map { RowCodec($0) }
        names = schema.types.map { Array($0.name.utf8) }
    }

    package subscript(_ type: Int) -> RowCodec { rows[type] }

    /// The index of the type with this name; nil when the schema has none. Schemas are small: the names are compared one
    /// by one, without making a string.
    package func index(ofName name: UnsafeRawBufferPointer) -> Int? {
        names.firstIndex { $0.count == name.count && $0.elementsEqual(name) }
    }
}
