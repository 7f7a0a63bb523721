import SluiceCore
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

@Suite struct `Realm changesets` {
    private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex)) }

    // MARK: Vectors

    @Test(arguments: ChangesetVector.all) func `each instruction has its bytes`(vector: ChangesetVector) throws {
        #expect(try RealmChangesetReader.instructions(of: bytes(vector.hex)) == [vector.instruction])
        #expect(Hex.encode(try RealmChangesetWriter.bytes(of: [vector.instruction])) == vector.hex)
    }

    @Test(arguments: [
        (RecordedChangesets.schemaHex, RecordedChangesets.schema), (RecordedChangesets.creationHex, RecordedChangesets.creation),
        (RecordedChangesets.bootstrapHex, RecordedChangesets.bootstrap),
    ])
    func `a recorded changeset has its instructions, wherever its strings stand`(hex: String, instructions: [RealmInstruction]) throws {
        #expect(try RealmChangesetReader.instructions(of: bytes(hex)) == instructions)
        let again = try RealmChangesetWriter.bytes(of: instructions)
        #expect(try RealmChangesetReader.instructions(of: again) == instructions)
    }

    @Test func `a changeset with all strings first is written as it was read`() throws {
        #expect(Hex.encode(try RealmChangesetWriter.bytes(of: RecordedChangesets.bootstrap)) == RecordedChangesets.bootstrapHex)
    }

    @Test func `no instructions are no bytes`() throws {
        #expect(try RealmChangesetWriter.bytes(of: [RealmInstruction]()).isEmpty)
        #expect(try RealmChangesetReader.instructions(of: []).isEmpty)
    }

    @Test(
        arguments: [
            ("05", 5), ("3f", 63), ("c000", 64), ("c0c407", 123_456), ("40", -1), ("41", -2), ("43", -4), ("c040", -65),
            ("ffffffffffffffffff00", .max), ("ffffffffffffffffff40", .min),
        ] as [(String, Int64)])
    func `an integer has its bytes`(hex: String, value: Int64) throws {
        let instruction = RealmInstruction.createObject(ObjectKey(type: "Foo", key: .int(value)))
        #expect(Hex.encode(try RealmChangesetWriter.bytes(of: [instruction])) == "3f0003466f6f020001" + hex)
        #expect(try RealmChangesetReader.instructions(of: bytes("3f0003466f6f020001" + hex)) == [instruction])
    }

    @Test(
        arguments: [
            (.int(123_456), "AcDEBw=="), (.string("text"), "AwR0ZXh0"), (.objectId(ChangesetVector.objectId), "CmW7AAAAAAAAAAAKvA=="),
            (.uuid(ChangesetVector.uuid), "CwARIjNEVWZ3iJmqu8zd7v8="),
        ] as [(Value, String)])
    func `an error message names a primary key by its own form`(key: Value, text: String) throws {
        #expect(try RealmKeyForm.base64(key) == text)
    }

    // MARK: Malformed input

    @Test(
        arguments: [
            ("3e", 0, "there is no instruction 62"), ("40", 0, "there is no instruction -1"),
            ("3f0103466f6f", 1, "the string has the index 1; expected 0"), ("3f0003466f6f3f0103466f6f", 7, "given twice"),
            ("3f0002c328", 2, "not UTF-8"), ("3f0004466f6f", 3, "has 4 bytes, but 3 remain"),
            ("3f0040", 2, "the length of the string is -1"),
            ("3f00ffffffffffffffffff00", 12, "bytes, but 0 remain"), ("02", 1, "ends within an integer"),
            ("0200", 1, "refers to string 0 of 0"), ("3f0003466f6f020040", 8, "has no primary key"),
            ("3f0003466f6f020002", 8, "cannot be of the type 'bool'"), ("3f0003466f6f02000a0102", 9, "has 12 bytes, but 2 remain"),
            ("3f0003466f6f02000180", 10, "ends within an integer"), ("3f0003466f6f020001ffffffffffffffffffff00", 9, "more than 10 bytes"),
            ("3f0003466f6f020001ffffffffffffffffff01", 9, "more than 64 bits"), ("3f0003466f6f000003", 8, "there is no kind 3 of classes"),
            ("3f0003466f6f000000004000", 10, "the class 'Foo' has no primary key"),
        ] as [(String, Int, String)])
    func `a malformed part is named with its place`(hex: String, offset: Int, words: String) throws {
        let bytes = try bytes(hex)
        let error = #expect(throws: SluiceError.self) { try RealmChangesetReader.instructions(of: bytes) }
        #expect(error?.code == .badChangeset)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
        #expect(error?.message.hasPrefix("Byte \(offset) of the changeset: ") == true, "\(error?.message ?? "")")
    }

    /// The bytes are the payload and the flag of an update of a property.
    @Test(arguments: [
        ("0202", "the bool is 2"), ("c04000", "there is no type -65"), ("4000", "cannot be of the type 'globalKey'"),
        ("05014000", "no date of 1 seconds and -1 nanoseconds"), ("050080a8d6b90700", "no date of 0 seconds and 2000000000 nanoseconds"),
        ("084000", "the coefficient of the decimal is negative"), ("0800e0cf0000", "the exponent of the decimal is 10208"),
        ("08808080808080808080808080808080800200", "more than 113 bits"), ("010502", "the flag for a default is 2"),
        ("03ffffff3f", "bytes, but 0 remain"),
    ])
    func `a malformed payload is refused`(hex: String, words: String) throws {
        let bytes = try bytes("3f00045461736b3f010166040001050100" + hex)
        let error = #expect(throws: SluiceError.self) { try RealmChangesetReader.instructions(of: bytes) }
        #expect(error?.code == .badChangeset)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [
        // ArrayErase without steps, and one that ends in a key; a step of -2; more steps than bytes.
        ("0a000105010002", "does not end in an index"), ("0a0001050101400102", "does not end in an index"),
        ("0a00010501014102", "a step of a path is -2"), ("0a00010501e400", "a path has 100 steps"),
        ("0b000105010004", "no kind 4 of collections"), ("060001400000", "cannot be of the type 'globalKey'"),
        ("06000103000201", "the keys of a dictionary cannot be of the type 'int'"),
    ])
    func `a malformed path or property is refused`(hex: String, words: String) throws {
        let bytes = try bytes("3f00045461736b3f010166" + hex)
        let error = #expect(throws: SluiceError.self) { try RealmChangesetReader.instructions(of: bytes) }
        #expect(error?.code == .badChangeset)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func `a path deeper than the limit is refused`() throws {
        let path = RealmPath(ObjectKey(type: "Foo", key: .int(1)), "f", Array(repeating: .key("k"), count: Limits.nestingDepth + 1))
        let bytes = try RealmChangesetWriter.bytes(of: [.update(path, .value(.null))])
        let error = #expect(throws: SluiceError.self) { try RealmChangesetReader.instructions(of: bytes) }
        #expect(error?.message.contains("the limit is \(Limits.nestingDepth)") == true)
    }

    @Test func `an instruction that the protocol cannot express is not written`() {
        let object = ObjectKey(type: "Foo", key: .int(1))
        let wrong: [RealmInstruction] = [
            .update(RealmPath(object, "f", [.index(0)]), .value(.null)), .update(RealmPath(object, "f"), .value(.list([]))),
            .createObject(ObjectKey(type: "Foo", key: .bool(true))), .addTable(RealmTable("Foo", key: nil)),
        ]
        for instruction in wrong {
            let error = #expect(throws: SluiceError.self) { try RealmChangesetWriter.bytes(of: [instruction]) }
            #expect(error?.code == .internalError)
        }
    }

    // MARK: Properties

    @Test(arguments: seeds(20)) func `what is written reads back`(seed: UInt64) throws {
        var random = RandomInstruction(seed: seed)
        for _ in 0..<rounds(100, soak: 2_000) {
            let instructions = random.changeset()
            let bytes = try RealmChangesetWriter.bytes(of: instructions)
            #expect(try RealmChangesetReader.instructions(of: bytes) == instructions, "seed \(seed): \(Hex.encode(bytes))")
        }
    }

    @Test(arguments: seeds(20)) func `damaged bytes are refused by name, or are another changeset`(seed: UInt64) throws {
        var random = RandomInstruction(seed: seed)
        for _ in 0..<rounds(300, soak: 6_000) {
            var bytes = try RealmChangesetWriter.bytes(of: random.changeset())
            damage(&bytes, &random.random)
            do {
                let instructions = try RealmChangesetReader.instructions(of: bytes)
                let again = try RealmChangesetWriter.bytes(of: instructions)
                #expect(try RealmChangesetReader.instructions(of: again) == instructions, "seed \(seed): \(Hex.encode(bytes))")
            } catch {
                #expect(error.code == .badChangeset && !error.message.isEmpty, "seed \(seed): \(Hex.encode(bytes)): \(error)")
            }
        }
    }

    private func damage(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
        for _ in 0...random.below(4) {
            let place = random.below(bytes.count + 1)
            switch random.below(4) {
            case 0 where place < bytes.count: bytes[place] = UInt8(random.below(256))
            case 1 where place < bytes.count: bytes.remove(at: place)
            case 2: bytes.removeLast(bytes.count - place)
            default: bytes.insert(random.pick([0, 0x3F, 0x40, 0x7F, 0x80, 0xFF]), at: place)
            }
        }
    }

    @Test(arguments: seeds(20)) func `a decimal of any encoding reads back bit by bit`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let decimal = Decimal128(high: random.next(), low: random.next())
            let instruction = RealmInstruction.update(
                RealmPath(ObjectKey(type: "Foo", key: .null), "f"), .value(.decimal(decimal)))
            let bytes = try RealmChangesetWriter.bytes(of: [instruction])
            #expect(try RealmChangesetReader.instructions(of: bytes) == [instruction], "seed \(seed): \(decimal)")
        }
    }
}
