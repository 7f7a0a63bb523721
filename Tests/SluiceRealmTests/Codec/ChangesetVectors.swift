import SluiceCore
import SluiceRealm
import SluiceValues
import Testing

/// One instruction and its bytes, as an independent codec writes them.
struct ChangesetVector: Sendable, CustomTestStringConvertible {
    let hex: String
    let instruction: RealmInstruction

    init(_ hex: String, _ instruction: RealmInstruction) {
        self.hex = hex
        self.instruction = instruction
    }

    var testDescription: String { "\(instruction)" }
}

extension ChangesetVector {
    static let objectId = ObjectIdentifierBytes(high: 0x65BB_0000_0000_0000, low: 0x0000_0ABC)
    static let uuid = UUIDBytes(high: 0x0011_2233_4455_6677, low: 0x8899_AABB_CCDD_EEFF)
    private static let task = ObjectKey(type: "Task", key: .int(5))
    private static func path(_ steps: RealmStep...) -> RealmPath { RealmPath(task, "f", steps) }
    private static func foo(_ key: Value) -> ObjectKey { ObjectKey(type: "Foo", key: key) }

    static let declarations = [
        ChangesetVector("3f00045461736b3f01035f6964000000010a00", .addTable(RealmTable("Task", key: RealmTable.Key("_id", .objectId)))),
        ChangesetVector(
            "3f00034c6f673f01026964000002010301",
            .addTable(RealmTable("Log", .asymmetric, key: RealmTable.Key("id", .string, isNullable: true)))),
        ChangesetVector("3f0005506c616365000001", .addTable(RealmTable("Place", .embedded, key: nil))),
        ChangesetVector("3f00045461736b0100", .eraseTable("Task")),
        ChangesetVector("3f00045461736b3f01057469746c65060001030000", .addColumn(RealmColumn("Task", "title", .string))),
        ChangesetVector("3f00045461736b3f0103616e79060001000101", .addColumn(RealmColumn("Task", "any", .mixed, isNullable: true, .list))),
        ChangesetVector(
            "3f00045461736b3f01056f776e65723f0206506572736f6e06000109010002",
            .addColumn(RealmColumn("Task", "owner", .link(to: "Person"), isNullable: true))),
        ChangesetVector(
            "3f00045461736b3f010262793f0206506572736f6e0600010901020203",
            .addColumn(RealmColumn("Task", "by", .link(to: "Person"), isNullable: true, .dictionary))),
        ChangesetVector(
            "3f00045461736b3f01056d61726b73060001080103", .addColumn(RealmColumn("Task", "marks", .decimal, isNullable: true, .set))),
        ChangesetVector("3f00045461736b3f01057469746c65070001", .eraseColumn(table: "Task", name: "title")),
    ]

    static let objects = [
        ChangesetVector("3f0003466f6f02000105", .createObject(foo(.int(5)))),
        ChangesetVector("3f0003466f6f3f01016b02000301", .createObject(foo(.string("k")))),
        ChangesetVector("3f0003466f6f020000", .createObject(foo(.null))),
        ChangesetVector("3f0003466f6f03000b00112233445566778899aabbccddeeff", .eraseObject(foo(.uuid(uuid)))),
        ChangesetVector("3f0003466f6f03000a65bb00000000000000000abc", .eraseObject(foo(.objectId(objectId)))),
    ]

    static let payloads = [
        ("00", .value(.null)), ("01c040", .value(.int(-65))), ("01ffffffffffffffffff00", .value(.int(.max))),
        ("01ffffffffffffffffff40", .value(.int(.min))), ("0201", .value(.bool(true))), ("0302c3a9", .value(.string("é"))),
        ("040200ff", .value(.binary([0, 255]))), ("054044", .value(.timestamp(Timestamp(seconds: -1, nanoseconds: -5)))),
        ("060000c03f", .value(.float(1.5))), ("079a9999999999b9bf", .value(.double(-0.1))),
        ("080f4001", .value(.decimal(decimal("-1.5")))), ("0800e0cb0000", .value(.decimal(.nan))),
        ("0800e0c70001", .value(.decimal(.negativeInfinity))),
        (
            "08ffffffffbfcce3c6b7809feceab7c2f601df2f00",
            .value(.decimal(decimal("9.999999999999999999999999999999999E+6144")))
        ),
        ("0a65bb00000000000000000abc", .value(.objectId(objectId))), ("0b00112233445566778899aabbccddeeff", .value(.uuid(uuid))),
        ("41", .container(.object)), ("44", .container(.list)), ("45", .container(.set)), ("42", .container(.dictionary)),
        ("43", .erased),
    ].map { (hex: String, payload: RealmPayload) in
        ChangesetVector("3f00045461736b3f010166040001050100" + hex + "00", .update(path(), payload))
    }

    static let links = [
        ChangesetVector(
            "3f00045461736b3f0101663f0203466f6f3f03016b0400010501000902030300",
            .update(path(), .value(.link(type: "Foo", key: .string("k"))))),
        ChangesetVector(
            "3f00045461736b3f0101663f0203466f6f04000105010009020a65bb00000000000000000abc00",
            .update(path(), .value(.link(type: "Foo", key: .objectId(objectId))))),
    ]

    static let places = [
        ChangesetVector(
            "3f00045461736b3f0101663f0201613f03016b0400010501034002034003010101",
            .update(path(.key("a"), .index(3), .key("k")), .value(.int(1)), isDefault: true)),
        ChangesetVector(
            "3f00045461736b3f0101663f0201610400010501024002030101c600", .arrayUpdate(path(.key("a")), at: 3, .value(.int(1)), priorSize: 70)
        ),
        ChangesetVector("3f00045461736b3f0101663f020161050001050101400241", .addInteger(path(.key("a")), -2)),
        ChangesetVector("3f00045461736b3f01016608000105010102010102", .arrayInsert(path(), at: 2, .value(.int(1)), priorSize: 2)),
        ChangesetVector("3f00045461736b3f010166090001050101000102", .arrayMove(path(), from: 0, to: 1, priorSize: 2)),
        ChangesetVector("3f00045461736b3f0101663f0201610a000105010240020102", .arrayErase(path(.key("a")), at: 1, priorSize: 2)),
        ChangesetVector("3f00045461736b3f0101660b000105010002", .clear(path(), .dictionary)),
        ChangesetVector("3f00045461736b3f0101663f0201610b0001050101400200", .clear(path(.key("a")), .none)),
        ChangesetVector("3f00045461736b3f0101660c0001050100030178", .setInsert(path(), .value(.string("x")))),
        ChangesetVector("3f00045461736b3f0101660d0001050100030178", .setErase(path(), .value(.string("x")))),
    ]

    static let all = declarations + objects + payloads + links + places

    private static func decimal(_ text: String) -> Decimal128 { Decimal128(text) ?? .zero }
}

/// Whole changesets of an unmodified client and of a server, from one recorded exchange.
enum RecordedChangesets {
    private static let created = ObjectKey(type: "Task", key: .objectId(ChangesetVector.objectId))
    private static let served = ObjectKey(
        type: "Task", key: .objectId(ObjectIdentifierBytes(high: 0x65BB_0000_0000_0000, low: 0x0000_0001)))

    /// The client's schema. Strings and instructions alternate.
    static let schemaHex =
        "3f0006506572736f6e3f01035f6964000000010a003f02045461736b000200010a003f03046e616d653f04000600030300003f05057469746c650602"
        + "050300003f0604646f6e650602060200003f07087072696f726974790602070100003f0804746167730602080300013f09056f776e65720602090901"
        + "0000"
    static let schema: [RealmInstruction] = [
        .addTable(RealmTable("Person", key: RealmTable.Key("_id", .objectId))),
        .addTable(RealmTable("Task", key: RealmTable.Key("_id", .objectId))),
        .addColumn(RealmColumn("Person", "name", .string)), .addColumn(RealmColumn("Task", "title", .string)),
        .addColumn(RealmColumn("Task", "done", .bool)), .addColumn(RealmColumn("Task", "priority", .int)),
        .addColumn(RealmColumn("Task", "tags", .string, .list)),
        .addColumn(RealmColumn("Task", "owner", .link(to: "Person"), isNullable: true)),
    ]

    /// A client's new object.
    static let creationHex =
        "3f00045461736b02000a65bb00000000000000000abc3f0104646f6e6504000a65bb00000000000000000abc01000200003f02087072696f72697479"
        + "04000a65bb00000000000000000abc02000107003f03047461677308000a65bb00000000000000000abc0301000301780008000a65bb000000000000"
        + "00000abc030101030179013f04057469746c6504000a65bb00000000000000000abc040003126d6164652062792074686520636c69656e7400"
    static let creation: [RealmInstruction] = [
        .createObject(created), .update(RealmPath(created, "done"), .value(.bool(false))),
        .update(RealmPath(created, "priority"), .value(.int(7))),
        .arrayInsert(RealmPath(created, "tags"), at: 0, .value(.string("x")), priorSize: 0),
        .arrayInsert(RealmPath(created, "tags"), at: 1, .value(.string("y")), priorSize: 1),
        .update(RealmPath(created, "title"), .value(.string("made by the client"))),
    ]

    /// A server's bootstrap, with all strings first.
    static let bootstrapHex =
        "3f00045461736b3f01057469746c653f0204646f6e653f03087072696f726974793f04047461677303000a65bb0000000000000000000102000a65bb"
        + "0000000000000000000104000a65bb000000000000000000010100030f66726f6d20746865207374756220310004000a65bb00000000000000000001"
        + "020002010004000a65bb00000000000000000001030001c0c4070008000a65bb0000000000000000000104010003037265640008000a65bb00000000"
        + "0000000000010401010304626c756501"
    static let bootstrap: [RealmInstruction] = [
        .eraseObject(served), .createObject(served), .update(RealmPath(served, "title"), .value(.string("from the stub 1"))),
        .update(RealmPath(served, "done"), .value(.bool(true))), .update(RealmPath(served, "priority"), .value(.int(123_456))),
        .arrayInsert(RealmPath(served, "tags"), at: 0, .value(.string("red")), priorSize: 0),
        .arrayInsert(RealmPath(served, "tags"), at: 1, .value(.string("blue")), priorSize: 1),
    ]
}
