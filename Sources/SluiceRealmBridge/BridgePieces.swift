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

/// The content of one entry. It is encoded as it comes, so that nothing else is kept of an object.
struct BridgePiece {
    private var writer = RealmChangesetWriter()
    /// The operations of the changeset, for the check of the client's objects.
    private(set) var operations: [OutgoingOperation] = []
    private(set) var isEmpty = true

    var changeset: [UInt8] { writer.bytes }

    /// Adds operations that the client has done itself, ahead of the instructions.
    mutating func know(_ operations: [OutgoingOperation]) { self.operations += operations }

    /// - Throws: `internalError` for a value that the protocol cannot express. The piece is then unusable.
    mutating func append(_ group: BridgeGroup) throws(SluiceError) {
        switch group {
        case .instructions(let instructions): try append(instructions)
        case .entering(let object): try append(object)
        case .changed(let object):
            if object.isEmpty { return }
            isEmpty = false
            operations += try OutgoingOperation.operations(object)
            try writer.append(object)
        }
    }

    /// - Throws: `internalError` for a value that the protocol cannot express. The piece is then unusable.
    mutating func append(_ instructions: [RealmInstruction]) throws(SluiceError) {
        for instruction in instructions {
            isEmpty = false
            operations.append(try OutgoingOperation(instruction))
            try writer.append(instruction)
        }
    }

    /// - Throws: `internalError` for a value that the protocol cannot express. The piece is then unusable.
    mutating func append(_ object: RealmEnteringObject) throws(SluiceError) {
        isEmpty = false
        operations.append(try OutgoingOperation(object))
        try writer.append(object)
    }
}

/// The content of a view, in pieces of bounded size. The part of an object is never cut.
struct BridgePieces {
    private let maximum: Int
    private var whole: [BridgePiece] = []
    private var last = BridgePiece()
    /// The estimated bytes of the last piece.
    private var size = 0

    /// - Parameter bytes: The bound of a piece.
    init(maximum bytes: Int) { maximum = bytes }

    /// Removes and returns the pieces; at least one.
    mutating func take() -> [BridgePiece] {
        defer { self = BridgePieces(maximum: maximum) }
        return whole + [last]
    }

    /// Adds operations that the client has done itself, ahead of the instructions.
    mutating func know(_ operations: [OutgoingOperation]) { last.know(operations) }

    mutating func append(_ group: BridgeGroup) throws(SluiceError) {
        makeRoom(group.cost)
        try last.append(group)
    }

    mutating func append(_ object: RealmEnteringObject) throws(SluiceError) {
        makeRoom(object.cost)
        try last.append(object)
    }

    private mutating func makeRoom(_ cost: Int) {
        if size > 0, size + cost > maximum {
            whole.append(last)
            (last, size) = (BridgePiece(), 0)
        }
        size += cost
    }
}
