package import SluiceCore

/// The edits of single elements that a change of a list consists of: what others do to the other elements stays.
package enum ListEdits {
    /// - Parameter isAll: whether these were all elements. A list that is emptied loses what others insert meanwhile, too.
    package static func replacing(_ range: Range<Int>, with new: [Value], isAll: Bool) -> [ShownEdit.Change] {
        if isAll, new.isEmpty { return [.clear(.list)] }
        let kept = min(range.count, new.count)
        var changes = (0..<kept).map { ShownEdit.Change.setElement(range.lowerBound + $0, new[$0]) }
        for index in (range.lowerBound + kept..<range.upperBound).reversed() { changes.append(.removeElement(index)) }
        for offset in kept..<new.count { changes.append(.insert(new[offset], at: range.lowerBound + offset)) }
        return changes
    }

    /// The moves, few of them, that bring elements into an order.
    /// - Parameter order: at each place the index that the element had.
    package static func moves(to order: [Int]) -> [ShownEdit.Change] {
        let staying = longestAscending(order)
        var now = Array(order.indices)
        var changes: [ShownEdit.Change] = []
        for (target, element) in order.enumerated() where !staying.contains(element) {
            // Before it comes, in the end, what is before it in the order.
            let before = target == 0 ? nil : order[target - 1]
            guard let from = now.firstIndex(of: element) else { continue }
            now.remove(at: from)
            let to = before.flatMap { now.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
            now.insert(element, at: to)
            if from != to { changes.append(.move(from: from, to: to)) }
        }
        return changes
    }

    /// The same as `moves(to:)` for one element that comes to an index of the list without it. O(1).
    package static func move(from: Int, to: Int) -> [ShownEdit.Change] {
        // Of two neighbors the second moves.
        from == to ? [] : abs(from - to) == 1 ? [.move(from: max(from, to), to: min(from, to))] : [.move(from: from, to: to)]
    }

    /// The same as `moves(to:)` for two elements that are exchanged. O(1).
    package static func swap(_ one: Int, _ other: Int) -> [ShownEdit.Change] {
        let (low, high) = (min(one, other), max(one, other))
        switch high - low {
        case 0: return []
        case 1: return [.move(from: high, to: low)]
        // One of the three stays: the first.
        case 2: return [.move(from: high, to: low), .move(from: high, to: low + 1)]
        default: return [.move(from: high, to: low), .move(from: low + 1, to: high)]
        }
    }

    /// The members of a longest ascending run, not necessarily side by side.
    private static func longestAscending(_ order: [Int]) -> Set<Int> {
        // At n: the index of the smallest end of a run of n + 1 members.
        var ends: [Int] = []
        var before = [Int?](repeating: nil, count: order.count)
        for (index, element) in order.enumerated() {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if order[ends[middle]] < element { low = middle + 1 } else { high = middle }
            }
            before[index] = low > 0 ? ends[low - 1] : nil
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var run: Set<Int> = []
        var at = ends.last
        while let index = at {
            run.insert(order[index])
            at = before[index]
        }
        return run
    }
}
