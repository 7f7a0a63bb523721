import SluiceCore

// Estimates of encoded sizes, which are no less. The names of classes and properties are left out: a changeset has each of them once.
extension [RealmInstruction] {
    /// The bytes of the instructions of one object.
    package var cost: Int { reduce(first?.object?.key.textCost ?? 0) { $0 + $1.cost } }
}

extension RealmInstruction {
    var cost: Int {
        switch self {
        case .update(let path, let payload, _), .setInsert(let path, let payload), .setErase(let path, let payload):
            path.cost + payload.cost
        case .arrayInsert(let path, _, let payload, _), .arrayUpdate(let path, _, let payload, _):
            path.cost + RealmStep.indexAndSize + payload.cost
        case .arrayMove(let path, _, _, _), .arrayErase(let path, _, _): path.cost + 15
        case .addInteger(let path, _), .clear(let path, _): path.cost + 10
        case .createObject(let object), .eraseObject(let object): object.key.objectCost
        // With both names.
        case .addTable, .eraseTable, .addColumn, .eraseColumn: 160
        }
    }
}

extension RealmPath {
    fileprivate var cost: Int { steps.reduce(object.key.placeCost) { $0 + $1.cost } }
}

extension RealmStep {
    /// The bytes of a text's declaration besides the text.
    fileprivate static let declaration = 10
    /// The bytes of an element's index and the prior size of its list.
    static let indexAndSize = 10

    fileprivate var cost: Int {
        switch self {
        case .index: 6
        case .key(let text): 6 + Self.declaration + text.utf8.count
        }
    }
}

extension RealmPayload {
    fileprivate var cost: Int {
        switch self {
        case .value(let value): value.payloadCost
        case .container, .erased: 2
        }
    }
}

extension Value {
    /// The bytes of a payload.
    var payloadCost: Int {
        switch self {
        case .null, .bool: 2
        case .int(let number): 2 + (64 - number.magnitude.leadingZeroBitCount) / 7
        case .float, .double: 9
        default: recordBytes
        }
    }

    /// The bytes of a link's payload, with this key of the target.
    func linkCost(to type: String) -> Int { 28 + type.utf8.count + recordBytes }

    /// The bytes of a primary key in an instruction. A text has a number.
    private var keyCost: Int { if case .string = self { 6 } else { recordBytes } }

    /// The bytes of a key's text, which a changeset has once.
    var textCost: Int { if case .string(let text) = self { RealmStep.declaration + text.utf8.count } else { 0 } }

    /// The bytes of the creation or erasure of an object with this key.
    var objectCost: Int { 6 + keyCost }

    /// The bytes of a property's path, with the tag of the instruction, and the numbers of class and property.
    var placeCost: Int { 12 + keyCost }
}
