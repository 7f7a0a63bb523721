/// One leaf of a compiled condition and its successors, packed into two words.
///
/// The bits of the first word are:
/// - 0-7: the kind of test, an `Opcode`.
/// - 8-15: the operator. Its bit 6 is `[c]`, and its bit 7 the NaN rule of mixed properties.
/// - 16-31: the property index.
/// - 32-47: the next instruction if the test holds, or `accept` or `reject`.
/// - 48-63: the next instruction if it does not, or `accept` or `reject`.
///
/// The second word is a number to compare with, or the index of the first constant (low half) and their count (high half).
struct Instruction {
    var word: UInt64
    var payload: UInt64

    static let accept: UInt16 = 0xffff
    static let reject: UInt16 = 0xfffe
    /// The maximum number of compiled leaves. A condition with more is evaluated as a tree.
    static let maximumCount = 0xfff0

    init(word: UInt64, payload: UInt64) {
        self.word = word
        self.payload = payload
    }

    init(_ opcode: Opcode, _ test: Test, isMixed: Bool, property: Int, payload: UInt64) {
        let comparison = UInt64(test.comparison.rawValue) | (test.foldsCase ? 0x40 : 0) | (isMixed ? 0x80 : 0)
        word = UInt64(opcode.rawValue) | comparison << 8 | UInt64(UInt16(truncatingIfNeeded: property)) << 16
        self.payload = payload
    }

    func jumping(onTrue: UInt16, onFalse: UInt16) -> Instruction {
        Instruction(word: word & 0xffff_ffff | UInt64(onTrue) << 32 | UInt64(onFalse) << 48, payload: payload)
    }

    var opcode: UInt8 { UInt8(truncatingIfNeeded: word) }
    var comparison: UInt8 { UInt8(truncatingIfNeeded: word >> 8) & 0x3f }
    var foldsCase: Bool { word & 0x4000 != 0 }
    var isMixed: Bool { word & 0x8000 != 0 }
    var property: Int { Int(UInt16(truncatingIfNeeded: word >> 16)) }
    var onTrue: UInt16 { UInt16(truncatingIfNeeded: word >> 32) }
    var onFalse: UInt16 { UInt16(truncatingIfNeeded: word >> 48) }
    var firstConstant: Int { Int(UInt32(truncatingIfNeeded: payload)) }
    var constantCount: Int { Int(payload >> 32) }
}

enum Opcode: UInt8 {
    /// Compares a property with constants.
    case property
    /// Compares a property with the int in the payload.
    case int
    /// Compares a property with null.
    case null
    /// Compares the elements of a list with constants.
    case any, all, none
    /// Compares the length of a list with the int in the payload.
    case count
    /// Compares a property with the property at the index in the payload.
    case pair
    /// Tests a property's embedded object against a shape. The payload is the index of the shape's first number.
    case within
    /// Evaluates a leaf without a flat form as a tree. The payload is its index.
    case tree
}
