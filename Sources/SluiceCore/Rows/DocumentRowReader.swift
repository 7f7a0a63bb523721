package import SluiceValues

/// Reads MongoDB's documents as flat rows of one class, from BSON bytes or from Extended JSON.
///
/// Scalar values of a BSON document become cells without a tree in between and without an allocation. All other values take the way of
/// Extended JSON, so that both forms of a document give one row.
///
/// Fields that the class does not have are dropped and counted, as Device Sync left them out. The rows have a value for each required
/// property; other properties may be absent.
package struct DocumentRowReader: Sendable {
    /// A dropped field and the number of documents that have it.
    package struct Dropped: Hashable, Sendable {
        package var name: [UInt8]
        package var count: Int
    }

    /// The maximum number of dropped fields that are counted by name.
    package static let droppedNames = 64

    private let type: ObjectType
    private let schema: Schema
    private let classes: [String: String]
    private let fields: [DocumentField]
    private let names: [UInt8]
    private let bound = RowBound()
    /// The index + 1 of the field that last followed each field. The documents of a collection have their members in one order.
    private var following: [Int]
    /// The dropped fields in order of appearance, at most `droppedNames`.
    package private(set) var dropped: [Dropped] = []

    /// - Parameter classes: The classes by the names of their collections, for DBRefs in mixed values.
    package init(_ type: ObjectType, in schema: Schema, classes: [String: String] = [:]) {
        self.type = type
        self.schema = schema
        self.classes = classes
        var (fields, names): ([DocumentField], [UInt8]) = ([], [])
        for (index, property) in type.properties.enumerated() where type.index(of: property.name) == index {
            let start = names.count
            names += property.name.utf8
            fields.append(DocumentField(property, index: index, name: start..<names.count, in: schema))
        }
        (self.fields, self.names) = (fields, names)
        following = Array(0...fields.count)
    }

    /// Appends the row of a BSON document.
    ///
    /// - Parameter bytes: The whole document, and nothing else.
    /// - Throws: `DocumentMisfit`, with nothing appended, if the bytes are no document or their values do not fit the class.
    package mutating func read(bson bytes: UnsafeRawBufferPointer, into buffer: inout RowBuffer) throws(DocumentMisfit) -> RowRef {
        let (cells, arena) = (buffer.cells.count, buffer.arena.count)
        let row = buffer.appendAbsent(count: type.properties.count)
        do throws(DocumentMisfit) {
            try elements(bytes, row, &buffer)
            try finish(row, from: arena, buffer)
            return row
        } catch {
            buffer.cells.removeSubrange(cells...)
            buffer.arena.removeSubrange(arena...)
            throw error
        }
    }

    /// Appends the row of a document in Extended JSON, v1 or v2.
    ///
    /// - Throws: `DocumentMisfit`, with nothing appended, if its values do not fit the class.
    package mutating func read(_ json: JSON, into buffer: inout RowBuffer) throws(DocumentMisfit) -> RowRef {
        let (cells, arena) = (buffer.cells.count, buffer.arena.count)
        let row = buffer.appendAbsent(count: type.properties.count)
        do throws(DocumentMisfit) {
            guard case .object(let members) = json else { throw DocumentMisfit("it is no document, but \(ExtendedJSON.excerpt(json))") }
            var last = -1
            for member in members {
                let found = member.key.withBytes { name -> Int? in place(of: UnsafeRawBufferPointer(name), after: last) }
                guard let place = found else { continue }
                last = place
                buffer.cells[Int(row.start) + fields[place].index] = try tree(member.value, fields[place], &buffer)
            }
            try finish(row, from: arena, buffer)
            return row
        } catch {
            buffer.cells.removeSubrange(cells...)
            buffer.arena.removeSubrange(arena...)
            throw error
        }
    }

    // MARK: Elements

    private mutating func elements(
        _ bytes: UnsafeRawBufferPointer, _ row: RowRef, _ buffer: inout RowBuffer
    ) throws(DocumentMisfit) {
        var cursor: BSONCursor
        do throws(BSONError) { cursor = try BSONCursor(bytes) } catch { throw DocumentMisfit(malformed: error) }
        var last = -1
        while true {
            let element: BSONElement?
            do throws(BSONError) { element = try cursor.next() } catch { throw DocumentMisfit(malformed: error) }
            guard let element else { return }
            guard let place = place(of: element.name, after: last) else { continue }
            last = place
            let field = fields[place]
            let cell = Int(row.start) + field.index
            guard buffer.cells[cell].tag == .absent else {
                throw DocumentMisfit("the field '\(type.properties[field.index].name)' is given twice")
            }
            if let value = try field.cell(element, into: &buffer) {
                buffer.cells[cell] = value
            } else {
                let json: JSON
                do throws(BSONError) { json = try element.json() } catch { throw DocumentMisfit(malformed: error) }
                buffer.cells[cell] = try tree(json, field, &buffer)
            }
        }
    }

    private func tree(_ json: JSON, _ field: DocumentField, _ buffer: inout RowBuffer) throws(DocumentMisfit) -> Cell {
        let property = type.properties[field.index]
        var reader = PropertyReader(owner: type.name, property: property, schema: schema)
        reader.isLenient = true
        let value: Value
        do throws(SluiceError) { value = try reader.value(json) } catch { throw DocumentMisfit(error.message) }
        do throws(DocumentMisfit) {
            return buffer.encode(try StorableValue.checked(value, classes: classes))
        } catch {
            throw DocumentMisfit("\(type.name).\(property.name): \(error.reason)")
        }
    }

    /// Checks that required properties have values, and that the row fits the change log.
    private func finish(_ row: RowRef, from arena: Int, _ buffer: RowBuffer) throws(DocumentMisfit) {
        for field in fields where field.isRequired && buffer.cells[Int(row.start) + field.index].tag == .absent {
            let property = type.properties[field.index]
            throw DocumentMisfit("\(type.name).\(property.name) is required and missing; expected \(property.typeText)")
        }
        guard buffer.arena.count - arena > bound.unmeasuredBytes(properties: fields.count) else { return }
        if buffer.isLarger(row, than: bound) {
            throw DocumentMisfit("the object takes more than the \(bound.text) that an object may have in the log")
        }
    }

    // MARK: Names

    /// Returns the field of a name, tried first at the place where it followed the last field before. Counts a name that no field has.
    private mutating func place(of name: UnsafeRawBufferPointer, after last: Int) -> Int? {
        let likely = following[last + 1]
        if likely < fields.count, isName(of: fields[likely], name) { return likely }
        guard let found = fields.firstIndex(where: { isName(of: $0, name) }) else {
            drop(name)
            return nil
        }
        following[last + 1] = found
        return found
    }

    private func isName(of field: DocumentField, _ name: UnsafeRawBufferPointer) -> Bool {
        guard field.name.count == name.count else { return false }
        for index in 0..<name.count where names[field.name.lowerBound + index] != name[index] { return false }
        return true
    }

    private mutating func drop(_ name: UnsafeRawBufferPointer) {
        if let index = dropped.firstIndex(where: { $0.name.elementsEqual(name) }) {
            dropped[index].count += 1
        } else if dropped.count < Self.droppedNames {
            dropped.append(Dropped(name: Array(name), count: 1))
        }
    }
}

extension DocumentMisfit {
    init(malformed error: BSONError) { self.init("the document is malformed at \(error)") }
}
