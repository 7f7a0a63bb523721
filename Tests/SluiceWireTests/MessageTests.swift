import FoundationEssentials
import SluiceCore
import SluiceValues
import SluiceWire
import SwiftProtobuf
import Testing

@Suite struct MessageTests {
    static let seeds = (0..<20).map { _ in UInt64.random(in: .min ... .max) }

    @Test(arguments: seeds)
    func `commits with spliced rows are what the generated code would write`(seed: UInt64) throws {
        var samples = Samples(seed: seed)
        let codec = RowCodec(Samples.type)
        let mask = Samples.type.properties.map { _ in samples.chance(50) }
        var writer = CommitsWriter()
        for _ in 0..<2 {
            var reference = PBCommits()
            for _ in 0..<samples.below(4) {
                var commit = PBCommit.with {
                    $0.lsn = samples.word()
                    $0.commitTime = Int64(bitPattern: samples.word())
                }
                writer.beginCommit(LSN(rawValue: commit.lsn), commitTime: commit.commitTime)
                for event in [ViewEvent.entered, .updated, .deleted, .leftQuery, .lostPermission] where samples.chance(70) {
                    let row = samples.row()
                    var change = PBViewChange()
                    change.type = "Everything"
                    change.event = PBViewEvent(rawValue: Int(event.rawValue)) ?? .unspecified
                    if !event.hasRow {
                        change.primaryKey = PBValue(row[0] ?? .null)
                        writer.addChange("Everything", event, ValueCodec.encode(row[0] ?? .null))
                    } else if samples.chance(50) {
                        change.row = PBRow(row, type: Samples.type)
                        var bytes = ByteWriter()
                        codec.encode(row, into: &bytes)
                        writer.addChange("Everything", event, bytes.bytes)
                    } else {
                        change.row = PBRow(Row(zip(row.values, mask).map { $1 ? $0 : nil }), type: Samples.type)
                        var bytes = ByteWriter()
                        codec.encode(row, into: &bytes)
                        try bytes.bytes.withUnsafeBytes { try writer.addChange(event, $0, codec: codec, mask: mask) }
                    }
                    commit.changes.append(change)
                }
                writer.endCommit()
                reference.commits.append(commit)
            }
            reference.lsn = samples.word()
            reference.more = samples.chance(50)
            let witness = samples.chance(50) ? HistoryAnchor(transaction: 700, commitTime: Int64(bitPattern: samples.word())) : nil
            reference.witness = Data(witness?.bytes ?? [])
            let bytes = writer.finish(LSN(rawValue: reference.lsn), witness: witness, more: reference.more)
            #expect(try generated(PBServerMessage(.commits(reference))) == bytes, "seed \(seed)")
        }
    }

    @Test(arguments: seeds)
    func `bootstrap rows are what the generated code would write`(seed: UInt64) throws {
        var samples = Samples(seed: seed)
        var writer = BootstrapRowsWriter(RowCodec(Samples.type))
        var reference = PBBootstrapRows.with { $0.type = "Everything" }
        for _ in 0..<samples.below(5) {
            let row = samples.row()
            reference.rows.append(PBRow(row, type: Samples.type))
            var rows = RowBuffer()
            let flat = rows.append(row)
            rows.withView(flat) { writer.add($0) }
        }
        for _ in 0..<samples.below(3) {
            let key = samples.any()
            reference.removed.append(PBValue(key))
            writer.addGone(key)
        }
        let count = writer.rowCount
        #expect(count == reference.rows.count + reference.removed.count)
        #expect(try generated(PBServerMessage(.bootstrapRows(reference))) == writer.finish(), "seed \(seed)")
    }

    @Test(arguments: seeds)
    func `changesets come back from their message as they were`(seed: UInt64) throws {
        var samples = Samples(seed: seed)
        var changes: [ObjectChange] = []
        for _ in 0..<samples.below(6) {
            let kind = [ObjectChange.Kind.create, .set, .delete][samples.below(3)]
            var change = ObjectChange(object: ObjectKey(type: "Everything", key: samples.value(9, depth: 0)), kind: kind)
            for property in Samples.type.properties.dropFirst() where kind != .delete && samples.chance(40) {
                // A link leads to a key of the type that its class has.
                if case .link = property.type {
                    change.values[property.name] = samples.value(9, depth: 0)
                } else {
                    change.values[property.name] = samples.value(of: property)
                }
                if samples.chance(30) { change.defaults.insert(property.name) }
                if samples.chance(50) { change.seen[property.name] = ValueHash(rawValue: samples.word()) }
            }
            if kind == .set { change.counters["count"] = Int64(bitPattern: samples.word()) }
            if kind != .delete { change.edits = (0..<samples.below(4)).map { _ in samples.edit() } }
            changes.append(change)
        }
        let changeset = Changeset(
            number: samples.word(), time: HybridTime(rawValue: samples.word()), base: LSN(rawValue: samples.word()), changes: changes)
        let bytes = try WireProtocol.encode(try PBChangeset(changeset, schema: Samples.schema))
        let read = try Changeset(try WireProtocol.decode(from: bytes), schema: Samples.schema)
        #expect(read == changeset, "seed \(seed)")
    }

    @Test func `a changeset that contradicts the schema is refused with a name for what is wrong`() throws {
        func code(_ edit: (inout PBObjectChange) -> Void) throws -> ErrorCode? {
            var change = PBObjectChange.with {
                $0.type = "Everything"
                $0.kind = .set
                $0.primaryKey = PBValue(.objectId(ObjectIdentifierBytes(high: 1, low: 2)))
            }
            edit(&change)
            do {
                _ = try ObjectChange(change, schema: Samples.schema)
                return nil
            } catch { return error.code }
        }
        #expect(try code { _ in } == nil)
        #expect(try code { $0.type = "Nothing" } == .unknownType)
        #expect(try code { $0.type = "Address" } == .badChangeset)
        #expect(try code { $0.kind = .unspecified } == .badChangeset)
        #expect(try code { $0.primaryKey = PBValue(.int(1)) } == .wrongValueType)
        #expect(try code { $0.primaryKey = PBValue(.null) } == .badChangeset)
        #expect(try code { $0.clearPrimaryKey() } == .badSyntax)
        #expect(try code { $0.values.fields = [PBField(property: 999, .int(1))] } == .unknownProperty)
        #expect(try code { $0.values.fields = [PBField(property: 5, .int(1))] } == .wrongValueType)
        #expect(try code { $0.defaults = [999] } == .unknownProperty)
        #expect(try code { $0.counters = [PBCounterChange.with { $0.property = 5 }] } == .badChangeset)
        func edit(_ property: UInt32, _ path: [PBPathStep], _ action: PBEdit.OneOf_Action?) throws -> ErrorCode? {
            try code {
                $0.edits = [
                    PBEdit.with {
                        $0.property = property
                        $0.path = path
                        $0.action = action
                    }
                ]
            }
        }
        let key = PBPathStep.with { $0.key = "street" }
        let first = PBPathStep.with { $0.element.listed = 0 }
        #expect(try edit(13, [first], .set(PBValue(.string("x")))) == nil)
        #expect(try edit(13, [first], .set(PBValue(.int(1)))) == .wrongValueType)
        #expect(try edit(13, [], .insert(PBListInsert.with { $0.value = PBValue(.int(1)) })) == .wrongValueType)
        #expect(try edit(13, [key], .remove(true)) == .badChangeset)
        #expect(try edit(12, [key], .set(PBValue(.string("x")))) == nil)
        #expect(try edit(12, [key], .set(PBValue(.int(1)))) == .wrongValueType)
        #expect(try edit(12, [PBPathStep.with { $0.key = "nothing" }], .remove(true)) == .unknownProperty)
        #expect(try edit(999, [], .remove(true)) == .unknownProperty)
        #expect(try edit(13, [], nil) == .badChangeset)
        #expect(try edit(13, [PBPathStep()], .remove(true)) == .badSyntax)
        #expect(try edit(13, [], .clear(.unspecified)) == .badSyntax)
        #expect(try edit(5, [], .add(1)) == .badChangeset)
    }

    @Test func `a schema comes back from its messages as it was`() throws {
        #expect(try Schema(messages: Samples.schema.messages) == Samples.schema)
    }

    @Test func `a schema with a number out of range, a repeated name or an unknown kind is refused`() {
        func refused(_ edit: (inout [PBObjectSchema]) -> Void) -> Bool {
            var messages = Samples.schema.messages
            edit(&messages)
            do {
                _ = try Schema(messages: messages)
                return false
            } catch { return error.code == .invalidSchemaChange }
        }
        #expect(!refused { _ in })
        #expect(refused { $0[1].properties[0].id = .max })
        #expect(refused { $0[1].properties[0].name = "flag" })
        #expect(refused { $0[0].name = "Everything" })
        #expect(refused { $0[0].kind = .UNRECOGNIZED(9) })
        #expect(refused { $0[1].properties[0].kind = .unspecified })
        #expect(refused { $0[1].properties[0].collection = .UNRECOGNIZED(7) })
    }

    @Test func `errors keep code, message, fix and action on their way`() {
        let error = SluiceError(.queryUnknownProperty, "no such field: titel", fix: "title?")
        let message = PBSessionError(error, action: .warning, fatal: false, backoffMilliseconds: 5)
        #expect(message.error == error)
        #expect(message.sessionAction == .warning)
        var newer = message
        newer.code = 65_000
        newer.name = "brand-new"
        newer.action = .UNRECOGNIZED(44)
        #expect(newer.error.code == .internalError && newer.error.message.contains("brand-new"))
        #expect(newer.sessionAction == .transient)
    }

    @Test func `a rejected write keeps cause and fields on its way`() throws {
        for cause in RejectionCause.allCases + [nil] {
            let report = RejectedWriteReport(
                changeset: 4, object: ObjectKey(type: "Everything", key: .objectId(ObjectIdentifierBytes(high: 3, low: 4))),
                error: SluiceError(.compensatingWrite, "not allowed"), cause: cause, fields: ["flag", "title"],
                values: ["title": .string("as wanted"), "flag": .null, "at": .timestamp(Timestamp(seconds: 5))])
            #expect(try RejectedWriteReport(PBRejectedWrite(report)) == report)
        }
        let long = RejectedWriteReport(
            changeset: 4, object: ObjectKey(type: "Everything", key: .int(1)), error: SluiceError(.compensatingWrite, "not allowed"),
            values: ["title": .string(String(repeating: "x", count: 1 << 20))])
        #expect(PBRejectedWrite(long).values.isEmpty)
    }

    @Test func `bytes that are no message, or too many of them, are refused by name`() {
        let garbage = #expect(throws: SluiceError.self) { try WireProtocol.decode(PBClientMessage.self, from: [0xff, 0xff, 0xff]) }
        #expect(garbage?.code == .badSyntax)
        let large = [UInt8](repeating: 0, count: Limits.messageBytes + 1)
        let tooLarge = #expect(throws: SluiceError.self) { try WireProtocol.decode(PBClientMessage.self, from: large) }
        #expect(tooLarge?.code == .limitsExceeded)
    }
}
