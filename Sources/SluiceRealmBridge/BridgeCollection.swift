import SluiceCore
import SluiceRealm
import SluiceWire

/// The rows of a bootstrap until its end.
struct BridgeCollection {
    /// The bytes of rows that are collected. Beyond, the view is refused.
    static let mostBytes = 64 << 20

    /// The version of the hidden subscription set.
    let version: UInt64
    private var rows: [ObjectKey: Row] = [:]
    private(set) var kept: Set<ObjectKey> = []
    private var removed: Set<ObjectKey> = []
    private var bytes = 0
    /// `true` if the bootstrap exceeds the bound. Its rows are dropped.
    private(set) var isTooLarge = false

    init(version: UInt64) { self.version = version }

    mutating func add(_ message: BridgeRows, of type: ObjectType) {
        guard !isTooLarge, let key = type.primaryKey else { return }
        bytes += message.bytes + 64 * (message.rows.count + message.removed.count + message.kept.count)
        guard bytes <= Self.mostBytes else {
            self = BridgeCollection(version: version)
            isTooLarge = true
            return
        }
        for row in message.rows {
            guard let key = row[key] else { continue }
            let object = ObjectKey(type: type.name, key: key)
            rows[object] = row
            removed.remove(object)
        }
        for key in message.removed {
            let object = ObjectKey(type: type.name, key: key)
            rows[object] = nil
            removed.insert(object)
        }
        for key in message.kept { kept.insert(ObjectKey(type: type.name, key: key)) }
    }

    /// The way in which the rows reach the client.
    enum Form {
        /// Everything that the client may hold is erased, and every row enters.
        case full
        /// The difference to the content. Unnamed objects leave.
        case difference
        /// The changes since the content's position. Unnamed objects stay.
        case changes
        /// The same, to a content that is older than the client's. The client may hold the objects or not, so every row enters.
        case restoration
    }

    /// Returns the instructions of each object, in an order that is the same for equal rows, and updates the content.
    func instructions(
        _ form: Form, _ content: inout BridgeContent, _ place: BridgeContent.Place
    ) throws(SluiceError) -> [[RealmInstruction]] {
        var groups: [[RealmInstruction]] = []
        for object in Self.sorted(leaving(form, content)) { groups.append(content.leave(object, place)) }
        for object in Self.sorted(Set(rows.keys)) {
            guard let row = rows[object] else { continue }
            switch form {
            case .full, .restoration: groups.append(try content.enter(object, row, place))
            case .difference, .changes: groups.append(try content.replace(object, row, nil, place))
            }
        }
        return groups
    }

    private func leaving(_ form: Form, _ content: BridgeContent) -> Set<ObjectKey> {
        switch form {
        case .full: return content.memory.held.subtracting(rows.keys)
        case .difference: return content.memory.view.subtracting(rows.keys).subtracting(kept.subtracting(removed)).union(removed)
        // The client may hold an object that the content lacks, if its position is older than the stream.
        case .changes, .restoration: return removed
        }
    }

    private static func sorted(_ objects: Set<ObjectKey>) -> [ObjectKey] {
        objects.map { (object: $0, bytes: Array($0.type.utf8) + [0] + ValueCodec.encode($0.key)) }
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }.map(\.object)
    }
}

extension [[RealmInstruction]] {
    /// Joins groups into pieces of bounded size. A group is never cut. There is at least one piece.
    func pieces(maximum bytes: Int) -> [[RealmInstruction]] {
        var pieces: [[RealmInstruction]] = [[]]
        var size = 0
        for group in self {
            let cost = group.reduce(0) { $0 + $1.cost }
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

extension RealmInstruction {
    /// An estimate of the encoded size.
    fileprivate var cost: Int {
        switch self {
        case .update(let path, let payload, _), .setInsert(let path, let payload), .setErase(let path, let payload),
            .arrayInsert(let path, _, let payload, _), .arrayUpdate(let path, _, let payload, _):
            path.cost + payload.cost
        case .createObject(let object), .eraseObject(let object): 8 + object.key.recordBytes
        case .addInteger(let path, _), .clear(let path, _), .arrayMove(let path, _, _, _), .arrayErase(let path, _, _): path.cost
        case .addTable, .eraseTable, .addColumn, .eraseColumn: 64
        }
    }
}

extension RealmPath {
    fileprivate var cost: Int { 16 + object.key.recordBytes + 8 * steps.count }
}

extension RealmPayload {
    fileprivate var cost: Int { if case .value(let value) = self { 4 + value.recordBytes } else { 4 } }
}
