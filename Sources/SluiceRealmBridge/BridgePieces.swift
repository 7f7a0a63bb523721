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
    private var writer: RealmChangesetWriter
    private var earlier: [OutgoingOperation] = []
    /// The last objects that entered, behind `earlier`.
    private var entered: [OutgoingOperation.Entered] = []
    private(set) var isEmpty = true

    /// - Parameter bytes: The expected bytes. Room for them is made at once.
    init(expecting bytes: Int = 0) { writer = bytes > 0 ? RealmChangesetWriter(expecting: bytes) : RealmChangesetWriter() }

    var changeset: [UInt8] { writer.bytes }
    /// The bytes of the changeset.
    var count: Int { writer.count }
    /// The operations of the changeset, for the check of the client's objects.
    var operations: [OutgoingOperation] { entered.isEmpty ? earlier : earlier + [.enter(entered)] }

    /// Adds instructions ahead of the others, and ahead of them operations that the client has done itself.
    /// - Throws: `internalError` for a value that the protocol cannot express. The piece is then unusable.
    mutating func open(with instructions: [RealmInstruction], known: [OutgoingOperation]) throws(SluiceError) {
        var operations = known
        for instruction in instructions {
            isEmpty = false
            operations.append(try OutgoingOperation(instruction))
            try writer.open(with: instruction)
        }
        earlier = operations + earlier
    }

    /// - Throws: `internalError` for a value that the protocol cannot express. The piece is then unusable.
    mutating func append(_ group: BridgeGroup) throws(SluiceError) {
        switch group {
        case .instructions(let instructions): try append(instructions)
        case .entering(let object): try append(object)
        case .changed(let object):
            if object.isEmpty { return }
            isEmpty = false
            settle()
            earlier += try OutgoingOperation.operations(object)
            try writer.append(object)
        }
    }

    /// - Throws: `internalError` for a value that the protocol cannot express. The piece is then unusable.
    mutating func append(_ instructions: [RealmInstruction]) throws(SluiceError) {
        for instruction in instructions {
            isEmpty = false
            append(try OutgoingOperation(instruction))
            try writer.append(instruction)
        }
    }

    /// - Throws: `internalError` for a value that the protocol cannot express. The piece is then unusable.
    mutating func append(_ object: RealmEnteringObject) throws(SluiceError) {
        isEmpty = false
        append(try OutgoingOperation(object))
        try writer.append(object)
    }

    /// Adds an object that enters, unless the piece would then have more bytes than a bound and has others.
    /// - Returns: `false` if it was not added.
    /// - Throws: `internalError` for a value that the protocol cannot express. The piece is then unusable.
    mutating func append(
        _ object: ObjectKey, _ row: RowView, _ objects: RealmObjectWriter, within bytes: Int
    ) throws(SluiceError) -> Bool {
        let end = writer.end
        let operation = try writer.append(object, row, objects)
        guard isEmpty || writer.count <= bytes else {
            writer.revert(to: end)
            return false
        }
        isEmpty = false
        entered.append(operation)
        return true
    }

    private mutating func append(_ operation: OutgoingOperation) {
        settle()
        earlier.append(operation)
    }

    private mutating func settle() {
        if entered.isEmpty { return }
        earlier.append(.enter(entered))
        entered = []
    }
}

/// The content of a view, in pieces of bounded size. The part of an object is never cut.
struct BridgePieces {
    private let maximum: Int
    private var whole: [BridgePiece] = []
    private var last: BridgePiece
    /// The estimated bytes of the last piece, which has no more.
    private var size = 0

    /// - Parameters:
    ///   - bytes: The bound of a piece.
    ///   - expected: The bytes that are expected in all.
    init(maximum bytes: Int, expecting expected: Int = 0) {
        maximum = bytes
        last = BridgePiece(expecting: min(bytes, expected))
    }

    /// `true` if the pieces have as many bytes as one may have.
    var isFull: Bool { !whole.isEmpty || size > maximum - maximum / 16 }

    /// Removes and returns the pieces; at least one.
    mutating func take() -> [BridgePiece] {
        defer { self = BridgePieces(maximum: maximum) }
        return whole + [last]
    }

    /// Adds instructions ahead of the others, and ahead of them operations that the client has done itself.
    mutating func open(with instructions: [RealmInstruction], known: [OutgoingOperation]) throws(SluiceError) {
        guard whole.isEmpty else { return try whole[0].open(with: instructions, known: known) }
        try last.open(with: instructions, known: known)
        size += instructions.cost
    }

    mutating func append(_ group: BridgeGroup) throws(SluiceError) {
        makeRoom(group.cost)
        try last.append(group)
    }

    mutating func append(_ object: RealmEnteringObject) throws(SluiceError) {
        makeRoom(object.cost)
        try last.append(object)
    }

    /// Adds an object that enters.
    mutating func append(_ object: ObjectKey, _ row: RowView, _ objects: RealmObjectWriter) throws(SluiceError) {
        // Estimates of earlier groups may be more than their bytes.
        let before = last.count
        if try last.append(object, row, objects, within: maximum - max(0, size - before)) {
            size += last.count - before
        } else {
            whole.append(last)
            last = BridgePiece()
            _ = try last.append(object, row, objects, within: maximum)
            size = last.count
        }
    }

    private mutating func makeRoom(_ cost: Int) {
        if size > 0, size + cost > maximum {
            whole.append(last)
            (last, size) = (BridgePiece(), 0)
        }
        size += cost
    }
}
