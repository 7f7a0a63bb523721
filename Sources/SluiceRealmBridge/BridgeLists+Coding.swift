import SluiceCore
import SluiceWire

// The stored form, a part of `BridgeReplica`'s. Changesets under way are left out: the state is stored without them.
extension BridgeLists {
    /// The fields of the state.
    enum Field {
        static let list: UInt32 = 20
        static let base: UInt32 = 21
        static let creation: UInt32 = 22
    }

    func write(to writer: inout ByteWriter) {
        for (object, properties) in lists {
            for (property, list) in properties { write(object, property, list, to: &writer) }
        }
        for (object, creation) in creations { write(object, creation, to: &writer) }
        for base in bases {
            let content = writer.open(Field.base)
            writer.ifNotZero(1, varint: base.version)
            writer.ifNotZero(2, varint: base.changeset)
            writer.close(content)
        }
    }

    private func write(_ object: ObjectKey, _ creation: Creation, to writer: inout ByteWriter) {
        let content = writer.open(Field.creation)
        writer.ifNotEmpty(1, string: object.type)
        ValueCodec.nested(2, object.key, into: &writer)
        writer.ifNotZero(3, varint: creation.changeset)
        writer.ifNotZero(4, varint: creation.base)
        for (property, version) in creation.received {
            let content = writer.open(5)
            writer.ifNotEmpty(1, string: property)
            writer.ifNotZero(2, varint: version)
            writer.close(content)
        }
        writer.close(content)
    }

    private func write(_ object: ObjectKey, _ property: String, _ list: List, to writer: inout ByteWriter) {
        let content = writer.open(Field.list)
        writer.ifNotEmpty(1, string: object.type)
        ValueCodec.nested(2, object.key, into: &writer)
        writer.ifNotEmpty(3, string: property)
        for sent in list.sent {
            let content = writer.open(4)
            writer.ifNotZero(1, varint: sent.version)
            writer.ifNotZero(2, varint: sent.time)
            writer.ifNotZero(3, varint: sent.client)
            writer.ifNotZero(4, varint: sent.settled ?? 0)
            writer.close(content)
        }
        for emptying in list.emptied {
            let content = writer.open(5)
            writer.ifNotZero(1, varint: emptying.changeset)
            writer.ifNotZero(2, varint: emptying.time)
            writer.close(content)
        }
        writer.close(content)
    }

    mutating func readList(_ reader: WireReader) throws(SluiceError) {
        var reader = reader
        var (type, key, property, list) = ("", Value?.none, "", List())
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): type = try reader.string()
            case (2, .lengthDelimited): key = try ValueCodec.decode(reader.slice(try reader.content()))
            case (3, .lengthDelimited): property = try reader.string()
            case (4, .lengthDelimited):
                let numbers = try Self.numbers(reader.nested(try reader.content()))
                let settled = numbers[3] > 0 ? numbers[3] : nil
                list.sent.append(Sent(version: numbers[0], time: numbers[1], client: numbers[2], settled: settled))
            case (5, .lengthDelimited):
                let numbers = try Self.numbers(reader.nested(try reader.content()))
                list.emptied.append(Emptying(changeset: numbers[0], time: numbers[1]))
            default: try reader.skip(tag.type)
            }
        }
        guard let key else { return }
        restore(ObjectKey(type: type, key: key), property, list)
    }

    mutating func readBase(_ reader: WireReader) throws(SluiceError) {
        let numbers = try Self.numbers(reader)
        restore(Base(version: numbers[0], changeset: numbers[1]))
    }

    mutating func readCreation(_ reader: WireReader) throws(SluiceError) {
        var reader = reader
        var (type, key, creation) = ("", Value?.none, Creation(changeset: 0, base: 0))
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): type = try reader.string()
            case (2, .lengthDelimited): key = try ValueCodec.decode(reader.slice(try reader.content()))
            case (3, .varint): creation.changeset = try reader.varint()
            case (4, .varint): creation.base = try reader.varint()
            case (5, .lengthDelimited): try Self.readReceived(reader.nested(try reader.content()), &creation)
            default: try reader.skip(tag.type)
            }
        }
        if let key { restore(ObjectKey(type: type, key: key), creation) }
    }

    private static func readReceived(_ reader: WireReader, _ creation: inout Creation) throws(SluiceError) {
        var reader = reader
        var (property, version) = ("", UInt64(0))
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): property = try reader.string()
            case (2, .varint): version = try reader.varint()
            default: try reader.skip(tag.type)
            }
        }
        creation.received[property] = version
    }

    /// Returns the fields 1 to 4; 0 for a missing one.
    private static func numbers(_ reader: WireReader) throws(SluiceError) -> [UInt64] {
        var reader = reader
        var numbers: [UInt64] = [0, 0, 0, 0]
        while !reader.isAtEnd {
            let tag = try reader.tag()
            if tag.type == .varint, (1...4).contains(tag.field) {
                numbers[Int(tag.field) - 1] = try reader.varint()
            } else {
                try reader.skip(tag.type)
            }
        }
        return numbers
    }
}
