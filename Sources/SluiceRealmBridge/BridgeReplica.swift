import SluiceCore
import SluiceRealm
import SluiceWire

/// The durable state of a file's views: the identity of its replica in the pipeline, and the content of the client at one position.
///
/// It may be older than the file's stream. The changes after its position are then delivered again.
struct BridgeReplica: Hashable {
    /// The replica's identity in `ClientRegistry`.
    var client: UInt64
    var secret: [UInt8]
    /// The encoded view record of the last bootstrap; empty before the first.
    var held: [UInt8] = []
    /// The position of the content, and its anchor.
    var lsn = LSN.zero
    var witness: [UInt8] = []
    /// The version of the file's stream at the position.
    var version: UInt64 = 0
    /// The last changeset of the client that the content has.
    var changeset: UInt64 = 0
    /// The latest time of a write or commit up to the position.
    var writeTime = HybridTime.zero
    /// The hash of the schema that the client received.
    var schema: UInt64 = 0
    /// The subscriptions of the last complete view.
    var query = RealmQuerySet(version: 0, queries: [:])
    /// The objects that the client holds; nil if they are too many.
    var objects: Set<ObjectKey>? = []
    /// Erasures that the client has not confirmed.
    var barriers = RealmBarriers()
    /// The lists whose pending edits the client may have discarded.
    var lists = BridgeLists()
    /// The version of the file's stream at `lists`, if it is newer than `version`; otherwise 0.
    var listed: UInt64 = 0
    /// The versions that the client may be at.
    var steps: [BridgeSteps.Step] = []
    /// The objects to put right.
    var repairs: [ObjectKey: BridgeStream.Repair] = [:]
    /// The stream's version of each compensating write that the pipeline still repeats, by its number.
    var compensations: [UInt64: UInt64] = [:]
    /// The objects in parts of bootstraps that did not end, which the client may hold after the next one; nil if they are too many.
    var parts: Set<ObjectKey>? = []
    /// Objects that the client has made since the position, with the numbers of their changesets.
    var created: [ObjectKey: UInt64] = [:]

    /// The number of objects that are stored. Beyond: the client is reset if the change log no longer reaches back to the position.
    static let mostObjects = 100_000
    private static let form: UInt64 = 1

    /// The fields behind the first fifteen. `BridgeLists.Field` has 20 to 22.
    private enum Field {
        static let partsAreMany: UInt32 = 16
        static let part: UInt32 = 17
        static let step: UInt32 = 18
        static let repair: UInt32 = 19
        static let created: UInt32 = 24
        static let listed: UInt32 = 25
        static let changeset: UInt32 = 26
        static let viewBarrier: UInt32 = 27
    }

    /// The state of a client that has taken a whole view.
    var whole: BridgeReplica {
        var whole = self
        whole.parts = []
        return whole
    }

    init(client: UInt64, secret: [UInt8]) { (self.client, self.secret) = (client, secret) }

    // MARK: Encoding

    /// The encoded state. Objects and barriers are in no defined order.
    var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 1_024)
        writer.ifNotZero(1, varint: Self.form)
        writer.ifNotZero(2, fixed64: client)
        writer.field(3, bytes: secret)
        writer.field(4, bytes: held)
        writer.ifNotZero(5, fixed64: lsn.rawValue)
        writer.field(6, bytes: witness)
        writer.ifNotZero(7, varint: version)
        writer.ifNotZero(8, fixed64: writeTime.rawValue)
        writer.ifNotZero(9, fixed64: schema)
        writer.ifNotZero(10, varint: query.version)
        for (type, text) in query.queries {
            let content = writer.open(11)
            writer.ifNotEmpty(1, string: type)
            writer.ifNotEmpty(2, string: text)
            writer.close(content)
        }
        if let objects, objects.count <= Self.mostObjects {
            writer.ifNotZero(12, varint: 1)
            write(objects, 13, to: &writer)
        }
        if let parts { write(parts, Field.part, to: &writer) } else { writer.ifNotZero(Field.partsAreMany, varint: 1) }
        write(barriers, to: &writer)
        for (number, version) in compensations {
            let content = writer.open(15)
            writer.ifNotZero(1, varint: number)
            writer.ifNotZero(2, varint: version)
            writer.close(content)
        }
        lists.write(to: &writer)
        for (object, repair) in repairs {
            let content = writer.open(Field.repair)
            writer.ifNotEmpty(1, string: object.type)
            ValueCodec.nested(2, object.key, into: &writer)
            if let names = repair.names {
                for name in names { writer.ifNotEmpty(3, string: name) }
                writer.ifNotZero(4, varint: 1)
            }
            writer.close(content)
        }
        for step in steps {
            let content = writer.open(Field.step)
            writer.ifNotZero(1, varint: step.version)
            writer.ifNotZero(2, varint: step.lsn.rawValue)
            writer.ifNotZero(3, varint: step.time.rawValue)
            writer.close(content)
        }
        writer.ifNotZero(Field.listed, varint: listed)
        writer.ifNotZero(Field.changeset, varint: changeset)
        for (object, number) in created {
            let content = writer.open(Field.created)
            writer.ifNotEmpty(1, string: object.type)
            ValueCodec.nested(2, object.key, into: &writer)
            writer.ifNotZero(3, varint: number)
            writer.close(content)
        }
        return writer.take()
    }

    private func write(_ objects: Set<ObjectKey>, _ field: UInt32, to writer: inout ByteWriter) {
        var (parts, indices) = ([ByteWriter](), [String: Int]())
        // Most objects follow one of their class.
        var last: (type: String, index: Int)?
        for object in objects {
            if last?.type != object.type {
                let index = indices[object.type] ?? parts.count
                if index == parts.count {
                    indices[object.type] = index
                    parts.append(ByteWriter())
                    parts[index].ifNotEmpty(1, string: object.type)
                }
                last = (object.type, index)
            }
            ValueCodec.nested(2, object.key, into: &parts[last?.index ?? 0])
        }
        for part in parts { part.withUnsafeBytes { writer.field(field, bytes: $0) } }
    }

    private func write(_ barriers: RealmBarriers, to writer: inout ByteWriter) {
        let stored = objects.flatMap { $0.count <= Self.mostObjects ? $0 : nil }
        let common = stored.flatMap { barriers.common(of: $0) }
        if let common { write(common, of: nil, Field.viewBarrier, to: &writer) }
        for (object, list) in barriers.lists(except: common == nil ? nil : stored) {
            for barrier in list.all { write(barrier, of: object, 14, to: &writer) }
        }
    }

    private func write(_ barrier: RealmBarriers.Barrier, of object: ObjectKey?, _ field: UInt32, to writer: inout ByteWriter) {
        let content = writer.open(field)
        if let object {
            writer.ifNotEmpty(1, string: object.type)
            ValueCodec.nested(2, object.key, into: &writer)
        }
        writer.ifNotZero(3, varint: barrier.version)
        writer.ifNotZero(4, varint: barrier.stamp.time)
        writer.ifNotZero(5, varint: barrier.stamp.file)
        writer.close(content)
    }

    // MARK: Decoding

    /// Decodes a stored state; nil if it is empty or of another form.
    init?(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return nil }
        self.init(client: 0, secret: [])
        objects = nil
        var (form, read) = (UInt64(0), ReadBarriers())
        do throws(SluiceError) {
            try bytes.withUnsafeBufferPointer { buffer throws(SluiceError) in
                var reader = WireReader(UnsafeRawBufferPointer(buffer))
                while !reader.isAtEnd {
                    let tag = try reader.tag()
                    if tag.field == 1 { form = try reader.varint() } else { try self.read(tag, &reader, &read) }
                }
            }
        } catch {
            return nil
        }
        guard form == Self.form, client > 0 else { return nil }
        if let common = read.viewBarrier { barriers.setWhole(common, objects ?? []) }
        for (object, list) in read.barriers { barriers[object] = RealmBarriers.List(list) }
    }

    /// The bytes of a state that suffice for `client(inHead:)`.
    static let headBytes = 11

    /// Decodes the client from the first bytes of a stored state; nil if they have none.
    static func client(inHead bytes: [UInt8]) -> UInt64? {
        // The rest of the state may be missing. The client is the second field.
        guard bytes.count >= headBytes else { return nil }
        return BridgeReplica(Array(bytes.prefix(headBytes)))?.client
    }

    /// The barriers as they are stored, one by one.
    private struct ReadBarriers {
        var barriers: [ObjectKey: [RealmBarriers.Barrier]] = [:]
        var viewBarrier: RealmBarriers.Barrier?
    }

    private mutating func read(_ tag: WireReader.Tag, _ reader: inout WireReader, _ read: inout ReadBarriers) throws(SluiceError) {
        switch (tag.field, tag.type) {
        case (2, .fixed64): client = try reader.fixed64()
        case (3, .lengthDelimited): secret = Array(reader.slice(try reader.content()))
        case (4, .lengthDelimited): held = Array(reader.slice(try reader.content()))
        case (5, .fixed64): lsn = LSN(rawValue: try reader.fixed64())
        case (6, .lengthDelimited): witness = Array(reader.slice(try reader.content()))
        case (7, .varint): version = try reader.varint()
        case (8, .fixed64): writeTime = HybridTime(rawValue: try reader.fixed64())
        case (9, .fixed64): schema = try reader.fixed64()
        case (10, .varint): query.version = try reader.varint()
        case (11, .lengthDelimited):
            let part = try Part(reader.nested(try reader.content()))
            query.queries[part.name] = part.text
        case (12, .varint): if try reader.varint() == 1 { objects = objects ?? [] }
        case (13, .lengthDelimited):
            let part = try Part(reader.nested(try reader.content()))
            for key in part.keys { objects?.insert(ObjectKey(type: part.name, key: key)) }
        case (14, .lengthDelimited):
            let part = try Part(reader.nested(try reader.content()))
            if let key = part.keys.first { read.barriers[ObjectKey(type: part.name, key: key), default: []].append(part.barrier) }
        case (Field.viewBarrier, .lengthDelimited): read.viewBarrier = try Part(reader.nested(try reader.content())).barrier
        case (15, .lengthDelimited):
            let part = try Part(reader.nested(try reader.content()))
            compensations[part.numbers[1] ?? 0] = part.numbers[2] ?? 0
        case (Field.partsAreMany, .varint): if try reader.varint() == 1 { parts = nil }
        case (Field.part, .lengthDelimited):
            let part = try Part(reader.nested(try reader.content()))
            for key in part.keys { parts?.insert(ObjectKey(type: part.name, key: key)) }
        case (Field.repair, .lengthDelimited):
            let part = try Part(reader.nested(try reader.content()))
            let repair: BridgeStream.Repair = part.numbers[4] == nil ? .whole : .properties(part.names)
            if let key = part.keys.first { repairs[ObjectKey(type: part.name, key: key)] = repair }
        case (Field.step, .lengthDelimited):
            let part = try Part(reader.nested(try reader.content()))
            let lsn = LSN(rawValue: part.numbers[2] ?? 0)
            steps.append(BridgeSteps.Step(version: part.numbers[1] ?? 0, lsn: lsn, time: HybridTime(rawValue: part.numbers[3] ?? 0)))
        case (BridgeLists.Field.list, .lengthDelimited): try lists.readList(reader.nested(try reader.content()))
        case (BridgeLists.Field.creation, .lengthDelimited): try lists.readCreation(reader.nested(try reader.content()))
        case (BridgeLists.Field.base, .lengthDelimited): try lists.readBase(reader.nested(try reader.content()))
        case (Field.created, .lengthDelimited):
            let part = try Part(reader.nested(try reader.content()))
            if let key = part.keys.first { created[ObjectKey(type: part.name, key: key)] = part.numbers[3] ?? 0 }
        case (Field.listed, .varint): listed = try reader.varint()
        case (Field.changeset, .varint): changeset = try reader.varint()
        default: try reader.skip(tag.type)
        }
    }

    /// The fields of a nested message.
    private struct Part {
        var name = ""
        /// Field 2 as a text, and as keys.
        var text = ""
        var keys: [Value] = []
        var names: Set<String> = []
        var numbers: [UInt32: UInt64] = [:]

        var barrier: RealmBarriers.Barrier {
            RealmBarriers.Barrier(version: numbers[3] ?? 0, stamp: RealmStamp(numbers[4] ?? 0, numbers[5] ?? 0))
        }

        init(_ reader: WireReader) throws(SluiceError) {
            var reader = reader
            while !reader.isAtEnd {
                let tag = try reader.tag()
                switch (tag.field, tag.type) {
                case (1, .lengthDelimited): name = try reader.string()
                case (2, .lengthDelimited):
                    let content = reader.slice(try reader.content())
                    text = String(decoding: content, as: UTF8.self)
                    if let key = try? ValueCodec.decode(content) { keys.append(key) }
                case (3, .lengthDelimited): names.insert(try reader.string())
                case (_, .varint): numbers[tag.field] = try reader.varint()
                default: try reader.skip(tag.type)
                }
            }
        }
    }
}
