package import SluiceCore

/// How one list of objects became another: delete at `deletions` (indices of the old list), insert at `insertions`
/// (indices of the new one), then what stands at `modifications` (indices of the new one) has other contents than before.
/// An object that changed places is deleted and inserted. All ascending.
package struct CollectionDiff: Hashable, Sendable {
    package var deletions: [Int] = []
    package var insertions: [Int] = []
    package var modifications: [Int] = []

    package var isEmpty: Bool { deletions.isEmpty && insertions.isEmpty && modifications.isEmpty }

    init() {}

    /// The difference of two lists of keys without repetitions. O(n), O(n log n) when objects changed places.
    /// - Parameter isModified: whether the contents of an object that is in both may have changed.
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

    /// Marks a longest ascending run of the numbers that are there: the objects that keep their places.
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
