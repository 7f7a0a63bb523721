package import SluiceCore

/// The difference of two lists of objects. `deletions` are indices of the old list; `insertions` and `modifications` are indices of
/// the new one. Deletions apply first, then insertions. A moved object is deleted and inserted. All indices ascend.
package struct CollectionDiff: Hashable, Sendable {
    package var deletions: [Int] = []
    package var insertions: [Int] = []
    package var modifications: [Int] = []

    package var isEmpty: Bool { deletions.isEmpty && insertions.isEmpty && modifications.isEmpty }

    init() {}

    /// The difference of two lists of unique keys. O(n), or O(n log n) if objects moved.
    /// - Parameter isModified: returns `true` if the contents of an object in both lists may have changed.
    package init(from old: [Value], to new: [Value], isModified: (Value) -> Bool) {
        if old == new {
            modifications = new.indices.filter { isModified(new[$0]) }
            return
        }
        let oldIndex = Dictionary(old.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        let origins = new.map { oldIndex[$0] }
        let steady = CollectionDiff.longestAscending(origins)
        var isKept = [Bool](repeating: false, count: old.count)
        for index in new.indices {
            if steady[index], let origin = origins[index] {
                isKept[origin] = true
                if isModified(new[index]) { modifications.append(index) }
            } else {
                insertions.append(index)
            }
        }
        deletions = old.indices.filter { !isKept[$0] }
    }

    /// An object's index in a list.
    struct Place {
        var key: Value
        var index: Int
    }

    /// The difference made by some objects while the others keep their order. One of them keeps its place if as many others precede it
    /// as before, and if it passed none of the given objects. O(n log n) for n given objects.
    /// - Parameter isModified: returns `true` if the contents of an object that keeps its place changed.
    init(before: [Place], after: [Place], isModified: (Value) -> Bool) {
        let (before, after) = (before.sorted { $0.index < $1.index }, after.sorted { $0.index < $1.index })
        var gaps: [Value: (order: Int, others: Int)] = [:]
        for (order, place) in before.enumerated() { gaps[place.key] = (order, place.index - order) }
        let origins = after.enumerated().map { order, place in
            gaps[place.key].flatMap { $0.others == place.index - order ? $0.order : nil }
        }
        let isKept = CollectionDiff.longestAscending(origins)
        var stays = Set<Int>()
        for (order, place) in after.enumerated() {
            if isKept[order], let origin = origins[order] {
                stays.insert(origin)
                if isModified(place.key) { modifications.append(place.index) }
            } else {
                insertions.append(place.index)
            }
        }
        deletions = before.indices.filter { !stays.contains($0) }.map { before[$0].index }
    }

    /// Returns the difference of the first `limit` elements of both lists. Elements beyond the limit move in or out to fill it.
    /// - Parameters:
    ///   - old: the length of the old list.
    ///   - new: the length of the new one.
    func limited(to limit: Int, from old: Int, to new: Int) -> CollectionDiff {
        if old <= limit, new <= limit { return self }
        var diff = CollectionDiff()
        diff.deletions = deletions.filter { $0 < limit }
        diff.insertions = insertions.filter { $0 < limit }
        // The elements that stay must be as many in the old list as in the new one.
        let surplus = (min(limit, old) - diff.deletions.count) - (min(limit, new) - diff.insertions.count)
        CollectionDiff.extend(&diff.deletions, by: surplus, below: min(limit, old))
        CollectionDiff.extend(&diff.insertions, by: -surplus, below: min(limit, new))
        let inserted = Set(diff.insertions)
        diff.modifications = modifications.filter { $0 < limit && !inserted.contains($0) }
        return diff
    }

    /// Adds the last `count` missing indices below `end`.
    private static func extend(_ indices: inout [Int], by count: Int, below end: Int) {
        if count <= 0 { return }
        let known = Set(indices)
        var (index, rest) = (end - 1, count)
        while rest > 0, index >= 0 {
            if !known.contains(index) {
                indices.append(index)
                rest -= 1
            }
            index -= 1
        }
        indices.sort()
    }

    /// Marks a longest ascending subsequence of the non-nil numbers: the objects that keep their places. O(n log n).
    static func longestAscending(_ origins: [Int?]) -> [Bool] {
        var isMember = [Bool](repeating: false, count: origins.count)
        // tails[n] is the index of the smallest end of a run of n + 1 numbers.
        var tails: [Int] = []
        var previous = [Int](repeating: -1, count: origins.count)
        for (index, origin) in origins.enumerated() {
            guard let origin else { continue }
            var low = 0
            var high = tails.count
            while low < high {
                let middle = (low + high) / 2
                if let end = origins[tails[middle]], end < origin { low = middle + 1 } else { high = middle }
            }
            if low > 0 { previous[index] = tails[low - 1] }
            if low == tails.count { tails.append(index) } else { tails[low] = index }
        }
        var index = tails.last ?? -1
        while index >= 0 {
            isMember[index] = true
            index = previous[index]
        }
        return isMember
    }
}
