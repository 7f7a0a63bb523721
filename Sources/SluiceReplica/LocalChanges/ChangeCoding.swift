import SluiceCore

/// The encoding of one object's change, and of rows by name, in the blobs of a client replica. The first byte is a version.
enum ChangeCoding {
    private static let version: UInt8 = 1

    static func encode(_ change: ObjectChange) -> [UInt8] {
        var writer = StoredValue.Writer()
        writer.byte(version)
        writer.byte(change.kind.rawValue)
        writer.string(change.object.type)
        writer.value(change.object.key)
        writer.pairs(change.values)
        writer.value(.list(change.defaults.sorted().map { .string($0) }))
        writer.pairs(change.counters.mapValues { .int($0) })
        writer.fixed(UInt32(change.edits.count))
        for edit in change.edits { writer.edit(edit) }
        writer.pairs(change.seen.mapValues { .int(Int64(bitPattern: $0.rawValue)) })
        return writer.bytes
    }

    static func decode(_ bytes: UnsafeRawBufferPointer) throws(SluiceError) -> ObjectChange {
        var reader = StoredValue.Reader(bytes: bytes)
        guard reader.byte() == version, let kind = reader.byte().flatMap(ObjectChange.Kind.init(rawValue:)),
            let type = reader.string(), let key = reader.value(), let values = reader.pairs(),
            case .list(let defaults)? = reader.value(), let counters = reader.pairs(),
            let edits = reader.edits(), let seen = reader.pairs(), reader.isAtEnd
        else { throw SluiceError(.replicaCorrupt, "A pending change in the local file cannot be read.") }
        let names = defaults.compactMap { if case .string(let name) = $0 { name } else { nil } }
        let amounts = counters.compactMapValues { if case .int(let amount) = $0 { amount } else { nil } }
        let hashes = seen.compactMapValues { if case .int(let hash) = $0 { ValueHash(rawValue: UInt64(bitPattern: hash)) } else { nil } }
        return ObjectChange(
            object: ObjectKey(type: type, key: key), kind: kind, values: values, defaults: Set(names), counters: amounts,
            edits: edits, seen: hashes)
    }

    static func encode(row: [String: Value]) -> [UInt8] {
        var writer = StoredValue.Writer()
        writer.byte(version)
        writer.pairs(row)
        return writer.bytes
    }

    static func decodeRow(_ bytes: UnsafeRawBufferPointer) throws(SluiceError) -> [String: Value] {
        var reader = StoredValue.Reader(bytes: bytes)
        guard reader.byte() == version, let row = reader.pairs(), reader.isAtEnd else {
            throw SluiceError(.replicaCorrupt, "A kept server row in the local file cannot be read.")
        }
        return row
    }

    static func encode(_ writes: [CompensatingWrite]) -> [UInt8] {
        StoredValue.encode(
            .list(
                writes.map { write in
                    .list([
                        .string(write.object.type), write.object.key, .int(Int64(write.code)), .string(write.reason),
                        .int(Int64(clamping: write.changeset)), .string(write.cause), .list(write.fields.map { .string($0) }),
                        .dictionary(write.values),
                    ])
                }))
    }

    static func decodeRefusals(_ bytes: UnsafeRawBufferPointer) -> [CompensatingWrite] {
        guard case .list(let writes)? = StoredValue.decode(bytes) else { return [] }
        return writes.compactMap { write in
            guard case .list(let parts) = write, parts.count == 8, case .string(let type) = parts[0],
                case .int(let code) = parts[2], case .string(let reason) = parts[3], case .int(let changeset) = parts[4],
                case .string(let cause) = parts[5], case .list(let fields) = parts[6], case .dictionary(let values) = parts[7]
            else { return nil }
            return CompensatingWrite(
                changeset: UInt64(clamping: changeset), object: ObjectKey(type: type, key: parts[1]), code: UInt16(clamping: code),
                cause: cause, reason: reason, fields: fields.compactMap { if case .string(let name) = $0 { name } else { nil } },
                values: values)
        }
    }
}
