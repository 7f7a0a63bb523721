package import SluiceCore

/// Edits of a list as changes of single elements, so that concurrent edits of other elements survive the merge.
package enum ListEdits {
    /// Replaces a range with new elements: sets the common part, then removes or inserts the rest.
    /// - Parameter isAll: `true` if the range covers the whole list. Clearing a list also removes elements that others insert concurrently.
    package static func replacing(_ range: Range<Int>, with new: [Value], isAll: Bool) -> [ShownEdit.Change] {
        if isAll, new.isEmpty { return [.clear(.list)] }
        let kept = min(range.count, new.count)
        var changes = (0..<kept).map { ShownEdit.Change.setElement(range.lowerBound + $0, new[$0]) }
        // From the end, so that earlier indices stay valid.
        for index in (range.lowerBound + kept..<range.upperBound).reversed() { changes.append(.removeElement(index)) }
        for offset in kept..<new.count { changes.append(.insert(new[offset], at: range.lowerBound + offset)) }
        return changes
    }

    /// The moves that bring the elements into an order. The longest ascending run stays in place, so the number of moves is minimal.
    /// - Parameter order: The element's old index, by new index.
    package static func moves(to order: [Int]) -> [ShownEdit.Change] {
        let staying = longestAscending(order)
        var now = Array(order.indices)
        var changes: [ShownEdit.Change] = []
        for (target, element) in order.enumerated() where !staying.contains(element) {
            // All elements before the target are in place already, so the predecessor's current index is the anchor.
            let before = target == 0 ? nil : order[target - 1]
            guard let from = now.firstIndex(of: element) else { continue }
            now.remove(at: from)
            let to = before.flatMap { now.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
            now.insert(element, at: to)
            if from != to { changes.append(.move(from: from, to: to)) }
        }
        return changes
    }

    /// The moves of one element to an index of the list without it, as `moves(to:)` finds them. O(1).
    package static func move(from: Int, to: Int) -> [ShownEdit.Change] {
        // Of two neighbors, the second one moves.
        from == to ? [] : abs(from - to) == 1 ? [.move(from: max(from, to), to: min(from, to))] : [.move(from: from, to: to)]
    }

    /// The moves that exchange two elements, as `moves(to:)` finds them. O(1).
    package static func swap(_ one: Int, _ other: Int) -> [ShownEdit.Change] {
        let (low, high) = (min(one, other), max(one, other))
        switch high - low {
        case 0: return []
        case 1: return [.move(from: high, to: low)]
        // The first of the three stays.
        case 2: return [.move(from: high, to: low), .move(from: high, to: low + 1)]
        default: return [.move(from: high, to: low), .move(from: low + 1, to: high)]
        }
    }

    /// The members of a longest ascending subsequence. O(n log n).
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
