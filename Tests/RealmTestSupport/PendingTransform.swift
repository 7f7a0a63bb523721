import SluiceCore
package import SluiceRealm

/// One instruction of a changeset with its changeset's stamp, as the transform of a Realm client orders it.
package struct StampedInstruction: Sendable {
    package var instruction: RealmInstruction
    package var stamp: RealmStamp

    package init(instruction: RealmInstruction, stamp: RealmStamp) {
        (self.instruction, self.stamp) = (instruction, stamp)
    }
}

/// The transform of a Realm client: an incoming changeset over pending ones. Both sides change, and either may lose an instruction.
///
/// Of a move and an insertion at one target, the later one comes first, as in real clients. Their wrong order of a move and an edit inside
/// the moved element is not modelled: the integration refuses edits inside elements and sends none.
package enum PendingTransform {
    package typealias Pair = (RealmInstruction?, RealmInstruction?)

    package static func rebase(_ incoming: [StampedInstruction], over pending: inout [StampedInstruction]) -> [RealmInstruction] {
        var result: [RealmInstruction] = []
        for instruction in incoming {
            var current: RealmInstruction? = instruction.instruction
            var rest: [StampedInstruction] = []
            for own in pending {
                guard let left = current else {
                    rest.append(own)
                    continue
                }
                let (left2, right) = pair(left, own.instruction, isLater: instruction.stamp > own.stamp)
                current = left2
                if let right { rest.append(StampedInstruction(instruction: right, stamp: own.stamp)) }
            }
            pending = rest
            if let current { result.append(current) }
        }
        return result
    }

    /// - Parameter isLater: `true` if the first instruction has the later stamp.
    package static func pair(_ a: RealmInstruction, _ b: RealmInstruction, isLater: Bool) -> Pair {
        guard object(a) == object(b) else { return (a, b) }
        switch (a, b) {
        case (.eraseObject, .eraseObject): return later(a, b, isLater)
        case (.eraseObject, _): return (a, nil)
        case (_, .eraseObject): return (nil, b)
        case (.createObject, _), (_, .createObject): return (a, b)
        default: break
        }
        guard let left = path(a), let right = path(b), left.field == right.field else { return (a, b) }
        return left.steps == right.steps ? same(a, b, isLater) : nested(a, b)
    }

    private static func nested(_ a: RealmInstruction, _ b: RealmInstruction) -> Pair {
        // Of the nested pairs, the play has a Clear and an update of a dictionary's key alone.
        switch (a, b) {
        case (.clear, _): (a, nil)
        case (_, .clear): (nil, b)
        default: (a, b)
        }
    }

    private static func same(_ a: RealmInstruction, _ b: RealmInstruction, _ isLater: Bool) -> Pair {
        switch (a, b) {
        case (.update(_, _, let left), .update(_, _, let right)):
            return later(a, b, left == right ? isLater : right)
        case (.addInteger(_, let amount), .update(let path, let payload, let isDefault)):
            guard isLater || isDefault else { return (nil, b) }
            guard case .value(.int(let number)) = payload else { return (nil, b) }
            return (a, .update(path, .value(.int(number &+ amount)), isDefault: isDefault))
        case (.clear, .clear): return later(a, b, isLater)
        case (.clear, _): return (a, nil)
        case (.setInsert(_, let left), .setInsert(_, let right)), (.setErase(_, let left), .setErase(_, let right)),
            (.setInsert(_, let left), .setErase(_, let right)), (.setErase(_, let left), .setInsert(_, let right)):
            return left == right ? later(a, b, isLater) : (a, b)
        case (.addInteger, .addInteger): return (a, b)
        case (.update, .addInteger), (_, .clear): return swapped(a, b, isLater)
        default: return lists(a, b, isLater)
        }
    }

    private static func later(_ a: RealmInstruction, _ b: RealmInstruction, _ isLater: Bool) -> Pair {
        if isLater { return (a, nil) }
        return (nil, b)
    }

    private static func swapped(_ a: RealmInstruction, _ b: RealmInstruction, _ isLater: Bool) -> Pair {
        let (right, left) = pair(b, a, isLater: !isLater)
        return (left, right)
    }

    // MARK: Lists

    private static func lists(_ a: RealmInstruction, _ b: RealmInstruction, _ isLater: Bool) -> Pair {
        switch (a, b) {
        case (.arrayInsert(let path, let i, let left, let size), .arrayInsert(_, let j, let right, _)):
            let isAfter = i == j ? isLater : i > j
            return (
                .arrayInsert(path, at: isAfter ? i + 1 : i, left, priorSize: size + 1),
                .arrayInsert(path, at: isAfter ? j : j + 1, right, priorSize: size + 1)
            )
        case (.arrayInsert, .arrayUpdate(let path, let j, let value, let size)):
            guard case .arrayInsert(_, let i, _, _) = a else { return (a, b) }
            return (a, .arrayUpdate(path, at: j >= i ? j + 1 : j, value, priorSize: size + 1))
        case (.arrayInsert(let path, let i, let value, let size), .arrayErase(_, let j, _)):
            return (
                .arrayInsert(path, at: i > j ? i - 1 : i, value, priorSize: size - 1),
                .arrayErase(path, at: i <= j ? j + 1 : j, priorSize: size + 1)
            )
        case (.arrayErase(let path, let i, let size), .arrayErase(_, let j, _)):
            if i == j { return (nil, nil) }
            return (
                .arrayErase(path, at: i > j ? i - 1 : i, priorSize: size - 1), .arrayErase(path, at: j > i ? j - 1 : j, priorSize: size - 1)
            )
        case (.arrayErase(_, let i, _), .arrayUpdate(let path, let j, let value, let size)):
            if i == j { return (a, nil) }
            return (a, .arrayUpdate(path, at: j > i ? j - 1 : j, value, priorSize: size - 1))
        case (.arrayUpdate(_, let i, _, _), .arrayUpdate(_, let j, _, _)): return i == j ? later(a, b, isLater) : (a, b)
        case (.arrayMove, _): return moves(a, b, isLater)
        default: return swapped(a, b, isLater)
        }
    }

    private static func moves(_ a: RealmInstruction, _ b: RealmInstruction, _ isLater: Bool) -> Pair {
        guard case .arrayMove(let path, let from, let to, let size) = a else { return (a, b) }
        let moved = { (index: Int) in
            if index == from { return to }
            let other = index > from ? index - 1 : index
            return other >= to ? other + 1 : other
        }
        switch b {
        case .arrayUpdate(_, let index, let value, _): return (a, .arrayUpdate(path, at: moved(index), value, priorSize: size))
        case .arrayErase(_, let index, _):
            if index == from { return (nil, .arrayErase(path, at: to, priorSize: size)) }
            let other = index > from ? index - 1 : index
            return (
                move(path, index < from ? from - 1 : from, other < to ? to - 1 : to, size - 1),
                .arrayErase(path, at: moved(index), priorSize: size)
            )
        case .arrayInsert(_, let index, let value, _):
            let other = index > from ? index - 1 : index
            // At the same target, the later one comes first.
            let isBefore = other == to ? !isLater : other < to
            return (
                move(path, index <= from ? from + 1 : from, isBefore ? to + 1 : to, size + 1),
                .arrayInsert(path, at: isBefore ? other : other + 1, value, priorSize: size)
            )
        case .arrayMove(_, let from2, let to2, _): return moveMove((path, size), (from, to), (from2, to2), isLater)
        default: return (a, b)
        }
    }

    private static func move(_ path: RealmPath, _ from: Int, _ to: Int, _ size: Int) -> RealmInstruction? {
        from == to ? nil : .arrayMove(path, from: from, to: to, priorSize: size)
    }

    private static func moveMove(_ list: (RealmPath, Int), _ a: (Int, Int), _ b: (Int, Int), _ isLater: Bool) -> Pair {
        if a.0 == b.0 {
            if isLater { return (move(list.0, b.1, a.1, list.1), nil) }
            return (nil, move(list.0, a.1, b.1, list.1))
        }
        let (otherB, otherA) = (b.0 > a.0 ? b.0 - 1 : b.0, a.0 > b.0 ? a.0 - 1 : a.0)
        // The targets among the elements that neither moves.
        let (restA, restB) = (a.1 - (otherB < a.1 ? 1 : 0), b.1 - (otherA < b.1 ? 1 : 0))
        let isAfter = restA == restB ? isLater : restA > restB
        let (finalA, finalB) = (restA + (isAfter ? 1 : 0), restB + (isAfter ? 0 : 1))
        let (fromA, fromB) = (otherA >= b.1 ? otherA + 1 : otherA, otherB >= a.1 ? otherB + 1 : otherB)
        return (move(list.0, fromA, finalA, list.1), move(list.0, fromB, finalB, list.1))
    }

    // MARK: Places

    static func path(_ instruction: RealmInstruction) -> RealmPath? {
        switch instruction {
        case .update(let path, _, _), .addInteger(let path, _), .arrayUpdate(let path, _, _, _), .arrayInsert(let path, _, _, _),
            .arrayMove(let path, _, _, _), .arrayErase(let path, _, _), .clear(let path, _), .setInsert(let path, _),
            .setErase(let path, _):
            path
        default: nil
        }
    }

    static func object(_ instruction: RealmInstruction) -> ObjectKey? {
        switch instruction {
        case .createObject(let object), .eraseObject(let object): object
        default: path(instruction)?.object
        }
    }
}
