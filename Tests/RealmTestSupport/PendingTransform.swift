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
/// It has two mistakes of real clients. Of a move and an insertion at one target, the later one comes first. A move does not change the
/// index of an edit inside an element, but an index of its own.
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
        guard a.object == b.object else { return (a, b) }
        switch (a, b) {
        case (.eraseObject, .eraseObject): return later(a, b, isLater)
        case (.eraseObject, _): return (a, nil)
        case (_, .eraseObject): return (nil, b)
        case (.createObject, _), (_, .createObject): return (a, b)
        default: break
        }
        guard let left = a.path, let right = b.path, left.field == right.field else { return (a, b) }
        let (levelA, levelB) = (a.place.count, b.place.count)
        if levelA < levelB { return nested(a, b) }
        if levelA > levelB {
            let (outer, inner) = nested(b, a)
            return (inner, outer)
        }
        return same(a, b, isLater)
    }

    // MARK: Places inside of others

    /// Transforms an instruction and another one that concerns a deeper place.
    private static func nested(_ outer: RealmInstruction, _ inner: RealmInstruction) -> Pair {
        switch outer {
        case .update(let path, let payload, _): return removes(payload, path.steps, inner) ? (outer, nil) : (outer, inner)
        case .arrayUpdate(let path, let index, let payload, _):
            return removes(payload, path.steps + [.index(index)], inner) ? (outer, nil) : (outer, inner)
        case .clear(let path, _), .addInteger(let path, _): return inner.place.starts(with: path.steps) ? (outer, nil) : (outer, inner)
        case .arrayInsert(let path, let at, _, _):
            guard let index = inner.index(in: path) else { return (outer, inner) }
            return (outer, index >= at ? inner.moved(to: index + 1, in: path) : inner)
        case .arrayErase(let path, let at, _):
            guard let index = inner.index(in: path) else { return (outer, inner) }
            if index == at { return (outer, nil) }
            return (outer, index > at ? inner.moved(to: index - 1, in: path) : inner)
        case .arrayMove(let path, let from, let to, let size):
            guard let index = inner.index(in: path) else { return (outer, inner) }
            return (move(path, moved(from, index, to), to, size), inner)
        default: return (outer, inner)
        }
    }

    /// Returns `true` if a value removes what an instruction changes inside of it.
    private static func removes(_ payload: RealmPayload, _ steps: [RealmStep], _ inner: RealmInstruction) -> Bool {
        let place = inner.place
        guard place.starts(with: steps) else { return false }
        switch (payload, place[steps.count]) {
        case (.container(.object), _), (.container(.list), .index), (.container(.dictionary), .key): return false
        default: return true
        }
    }

    // MARK: Places of one level

    private static func same(_ a: RealmInstruction, _ b: RealmInstruction, _ isLater: Bool) -> Pair {
        if a.isOfElement || b.isOfElement { return a.isOfElement && b.isOfElement && a.path == b.path ? lists(a, b, isLater) : (a, b) }
        guard a.path == b.path else { return (a, b) }
        switch (a, b) {
        case (.update(_, let left, let leftDefault), .update(_, let right, let rightDefault)):
            return updates((a, left, leftDefault), (b, right, rightDefault), isLater)
        case (.addInteger(_, let amount), .update(let path, let payload, let isDefault)):
            guard isLater || isDefault else { return (nil, b) }
            if payload == .value(.null) { return (a, b) }
            guard case .value(.int(let number)) = payload else { return (nil, b) }
            return (a, .update(path, .value(.int(number &+ amount)), isDefault: isDefault))
        case (.clear, .clear): return later(a, b, isLater)
        case (.clear(_, .list), .update(_, .container(.list), _)), (.clear(_, .dictionary), .update(_, .container(.dictionary), _)):
            return (a, b)
        case (.clear, .update): return later(a, b, isLater)
        case (.clear, _): return (a, nil)
        case (.setInsert(_, let left), .setInsert(_, let right)), (.setErase(_, let left), .setErase(_, let right)),
            (.setInsert(_, let left), .setErase(_, let right)), (.setErase(_, let left), .setInsert(_, let right)):
            return left == right ? later(a, b, isLater) : (a, b)
        case (.update, .addInteger), (_, .clear): return swapped(a, b, isLater)
        default: return (a, b)
        }
    }

    private typealias Update = (instruction: RealmInstruction, payload: RealmPayload, isDefault: Bool)

    private static func updates(_ a: Update, _ b: Update, _ isLater: Bool) -> Pair {
        switch (a.payload, b.payload) {
        case (.container(.object), .container(.object)): break
        case (.container(.object), _): return (nil, b.instruction)
        case (_, .container(.object)): return (a.instruction, nil)
        case (.container(let left), .container(let right)) where left == right: return (a.instruction, b.instruction)
        default: break
        }
        return later(a.instruction, b.instruction, a.isDefault == b.isDefault ? isLater : b.isDefault)
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
        case (.arrayUpdate(_, let i, let left, _), .arrayUpdate(_, let j, let right, _)):
            return i == j ? updates((a, left, false), (b, right, false), isLater) : (a, b)
        case (.arrayMove, _): return moves(a, b, isLater)
        default: return swapped(a, b, isLater)
        }
    }

    /// Returns the index of an element after a move.
    private static func moved(_ index: Int, _ from: Int, _ to: Int) -> Int {
        if index == from { return to }
        let other = index > from ? index - 1 : index
        return other >= to ? other + 1 : other
    }

    private static func moves(_ a: RealmInstruction, _ b: RealmInstruction, _ isLater: Bool) -> Pair {
        guard case .arrayMove(let path, let from, let to, let size) = a else { return (a, b) }
        switch b {
        case .arrayUpdate(_, let index, let value, _):
            return (a, .arrayUpdate(path, at: moved(index, from, to), value, priorSize: size))
        case .arrayErase(_, let index, _):
            if index == from { return (nil, .arrayErase(path, at: to, priorSize: size)) }
            let other = index > from ? index - 1 : index
            return (
                move(path, index < from ? from - 1 : from, other < to ? to - 1 : to, size - 1),
                .arrayErase(path, at: moved(index, from, to), priorSize: size)
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
}

extension RealmInstruction {
    /// `true` if the instruction names an element of the list at its path.
    fileprivate var isOfElement: Bool { element != nil }

    /// The index of the element that the instruction names, in the list at its path.
    private var element: Int? {
        switch self {
        case .arrayUpdate(_, let index, _, _), .arrayInsert(_, let index, _, _), .arrayErase(_, let index, _): index
        case .arrayMove(_, let from, _, _): from
        default: nil
        }
    }

    /// The steps from the property to the place that the instruction changes. An element of a list is a place.
    fileprivate var place: [RealmStep] { (path?.steps ?? []) + (element.map { [.index($0)] } ?? []) }

    /// Returns the index of the element of a list in which the instruction changes a place. Nil if the place is outside of the list.
    fileprivate func index(in list: RealmPath) -> Int? {
        let steps = place
        guard steps.count > list.steps.count, steps.starts(with: list.steps), case .index(let index) = steps[list.steps.count] else {
            return nil
        }
        return index
    }

    /// Returns the instruction for another element of a list on the way to its place.
    fileprivate func moved(to index: Int, in list: RealmPath) -> RealmInstruction {
        guard var path, path.steps.count > list.steps.count else { return self }
        path.steps[list.steps.count] = .index(index)
        return switch self {
        case .update(_, let payload, let isDefault): .update(path, payload, isDefault: isDefault)
        case .addInteger(_, let amount): .addInteger(path, amount)
        case .arrayUpdate(_, let at, let payload, let size): .arrayUpdate(path, at: at, payload, priorSize: size)
        case .arrayInsert(_, let at, let payload, let size): .arrayInsert(path, at: at, payload, priorSize: size)
        case .arrayMove(_, let from, let to, let size): .arrayMove(path, from: from, to: to, priorSize: size)
        case .arrayErase(_, let at, let size): .arrayErase(path, at: at, priorSize: size)
        case .clear(_, let collection): .clear(path, collection)
        case .setInsert(_, let payload): .setInsert(path, payload)
        case .setErase(_, let payload): .setErase(path, payload)
        case .addTable, .eraseTable, .addColumn, .eraseColumn, .createObject, .eraseObject: self
        }
    }
}
