import SluiceCore
import SluiceRealm

/// The part of an entry that changes one object, or declares classes.
enum BridgeGroup {
    case instructions([RealmInstruction])
    case entering(RealmEnteringObject)
    case changed(RealmChangedObject)

    static let none = BridgeGroup.instructions([])

    /// An estimate of the encoded bytes, which is no less.
    var cost: Int {
        switch self {
        case .instructions(let instructions): instructions.cost
        case .entering(let object): object.cost
        case .changed(let object): object.cost
        }
    }

    var isEmpty: Bool {
        switch self {
        case .instructions(let instructions): instructions.isEmpty
        case .entering: false
        case .changed(let object): object.isEmpty
        }
    }
}

/// The content of one entry.
struct BridgePiece {
    private(set) var groups: [BridgeGroup] = []

    init(_ instructions: [RealmInstruction] = []) { append(.instructions(instructions)) }

    var isEmpty: Bool { groups.isEmpty }

    mutating func append(_ group: BridgeGroup) { if !group.isEmpty { groups.append(group) } }

    /// Returns the changeset, and its operations for the check of the client's objects.
    /// - Throws: `internalError` for a value that the protocol cannot express.
    func encoded() throws(SluiceError) -> (changeset: [UInt8], operations: [OutgoingOperation]) {
        var writer = RealmChangesetWriter()
        var operations: [OutgoingOperation] = []
        operations.reserveCapacity(groups.count)
        for group in groups {
            switch group {
            case .instructions(let instructions):
                for instruction in instructions {
                    operations.append(try OutgoingOperation(instruction))
                    try writer.append(instruction)
                }
            case .entering(let object):
                operations.append(try OutgoingOperation(object))
                try writer.append(object)
            case .changed(let object):
                operations += try OutgoingOperation.operations(object)
                try writer.append(object)
            }
        }
        return (writer.bytes, operations)
    }
}

extension [BridgeGroup] {
    /// Joins the groups of objects into pieces of bounded size. A group is never cut. There is at least one piece.
    func pieces(maximum bytes: Int) -> [BridgePiece] {
        var pieces: [BridgePiece] = []
        var (piece, size) = (BridgePiece(), 0)
        for group in self {
            let cost = group.cost
            if size > 0, size + cost > bytes {
                pieces.append(piece)
                (piece, size) = (BridgePiece(), 0)
            }
            piece.append(group)
            size += cost
        }
        return pieces + [piece]
    }
}
