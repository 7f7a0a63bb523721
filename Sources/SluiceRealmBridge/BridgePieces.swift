import SluiceCore
import SluiceRealm

extension [[RealmInstruction]] {
    /// Joins the groups of objects into pieces of bounded size. A group is never cut. There is at least one piece.
    func pieces(maximum bytes: Int) -> [[RealmInstruction]] {
        var pieces: [[RealmInstruction]] = [[]]
        var size = 0
        for group in self {
            let cost = group.cost
            if size > 0, size + cost > bytes {
                pieces.append([])
                size = 0
            }
            pieces[pieces.count - 1] += group
            size += cost
        }
        return pieces
    }
}

// Estimates of encoded sizes, which are no less. The names of classes and properties are left out: a changeset has each of them once.
extension [RealmInstruction] {
    /// The bytes of the instructions of one object.
    var cost: Int {
        // A changeset has the text of a key once.
        let text = if case .string(let text)? = first?.object?.key { RealmStep.declaration + text.utf8.count } else { 0 }
        return reduce(text) { $0 + $1.cost }
    }
}

extension RealmInstruction {
    fileprivate var cost: Int {
        switch self {
        case .update(let path, let payload, _), .setInsert(let path, let payload), .setErase(let path, let payload):
            path.cost + payload.cost
        // With the index and the prior size.
        case .arrayInsert(let path, _, let payload, _), .arrayUpdate(let path, _, let payload, _): path.cost + 10 + payload.cost
        case .arrayMove(let path, _, _, _), .arrayErase(let path, _, _): path.cost + 15
        case .addInteger(let path, _), .clear(let path, _): path.cost + 10
        case .createObject(let object), .eraseObject(let object): 6 + object.key.keyCost
        // With both names.
        case .addTable, .eraseTable, .addColumn, .eraseColumn: 160
        }
    }
}

extension RealmPath {
    /// With the tag of the instruction, and the numbers of class and property.
    fileprivate var cost: Int { steps.reduce(12 + object.key.keyCost) { $0 + $1.cost } }
}

extension RealmStep {
    /// The bytes of a text's declaration besides the text.
    fileprivate static let declaration = 10

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
        case .value(.null), .value(.bool): 2
        case .value(.int(let number)): 2 + (64 - number.magnitude.leadingZeroBitCount) / 7
        case .value(.float), .value(.double): 9
        case .value(let value): value.recordBytes
        case .container, .erased: 2
        }
    }
}

extension Value {
    /// The bytes of a primary key in an instruction. A text has a number.
    fileprivate var keyCost: Int { if case .string = self { 6 } else { recordBytes } }
}
