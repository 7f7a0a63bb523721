import SluiceCore
import SluiceIdentity
import SluicePorts
import SluiceValues
import SluiceWire

/// Reads the records of a class's topic as change events.
struct ChangeEventReader {
    struct Record {
        var place: TriggerWindow.Place
        /// The text of the primary key.
        var key: String
        /// nil for a truncation, and for the first record of a row that changes its partition, whose second record has the event.
        var event: ChangeEvent?
        /// `true` if the change is known and its rows are not: the log did not take them, or they do not fit the schema.
        var isIncomplete = false
    }

    /// The version of the schema that the reader knows.
    let version: UInt64
    private let codec: ChangeRecordCodec
    private let type: Int

    /// - Returns: nil if the schema has no such class.
    init?(_ schema: AppSchema, type name: String) {
        guard let type = schema.schema.index(of: name) else { return nil }
        self.type = type
        version = schema.version
        codec = ChangeRecordCodec(schema.schema)
    }

    /// Returns a record; nil if it is malformed.
    func read(_ bytes: ArraySlice<UInt8>, offset: Int64) -> Record? {
        bytes.withUnsafeBytes { buffer in
            guard let view = try? codec.decode(buffer) else { return nil }
            var place = TriggerWindow.Place(
                offset: offset, position: view.position, previous: view.previous, isArrival: view.passage == .enter)
            // The stand-in of a rejected record links to no position.
            if place.previous?.lsn == .max { place.previous = nil }
            guard view.operation != .truncate else { return Record(place: place, key: "") }
            guard let value = try? codec.primaryKey(view, in: buffer) else { return nil }
            let key = ExtendedJSON.json(value)
            var record = Record(place: place, key: key.text)
            if view.passage == .leave { return record }
            record.event = event(view, key, in: buffer)
            record.isIncomplete = record.event == nil
            return record
        }
    }

    /// Returns the event; nil if an image is missing or does not fit.
    private func event(_ view: ChangeRecordView, _ key: JSON, in buffer: UnsafeRawBufferPointer) -> ChangeEvent? {
        let operation: ChangeEvent.Operation
        switch view.operation {
        case .insert: operation = .insert
        case .update: operation = .update
        case .delete: operation = .delete
        case .truncate: return nil
        }
        let (before, after) = (members(view.before, view, in: buffer), members(view.after, view, in: buffer))
        guard operation == .insert || before != nil, operation == .delete || after != nil else { return nil }
        return ChangeEvent(
            operation, at: view.position, microseconds: view.commitTime, key: key, before: operation == .insert ? nil : before,
            after: operation == .delete ? nil : after)
    }

    /// Returns the members of an image, one for each property.
    private func members(_ image: Range<Int>?, _ view: ChangeRecordView, in buffer: UnsafeRawBufferPointer) -> [JSON.Member]? {
        guard let image, view.type == type else { return nil }
        var rows = RowBuffer()
        guard let row = try? codec.row(image, of: type, in: buffer, into: &rows) else { return nil }
        return rows.withView(row) { row in
            codec.types[type].type.properties.enumerated().map { index, property in
                JSON.Member(property.name, row.value(index).map { ExtendedJSON.json($0) } ?? .null)
            }
        }
    }
}
