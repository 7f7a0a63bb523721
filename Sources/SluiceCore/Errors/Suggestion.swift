/// Finds the probable spelling of a misspelt word, for error messages.
package enum Suggestion {
    /// Returns the candidate nearest to a misspelt word, or nil if none is near enough.
    ///
    /// A candidate is near if at most a third of the word's characters, and always one, are wrong. Case is ignored. The cost is the word's
    /// length times that of the candidates of similar length. A word of more than `longest` bytes has no near candidate.
    package static func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
        guard word.utf8.count <= longest else { return nil }
        let lowercased = word.lowercased()
        let allowed = max(1, word.count / 3)
        var best: (distance: Int, candidate: String)?
        for candidate in candidates where abs(candidate.count - word.count) <= allowed {
            let distance = EditDistance.between(lowercased, candidate.lowercased())
            guard distance <= allowed, distance < candidate.count else { continue }
            if let found = best, (found.distance, found.candidate) <= (distance, candidate) { continue }
            best = (distance, candidate)
        }
        return best?.candidate
    }

    private static let longest = 256

    /// Returns ` Did you mean 'x'?`, or an empty text, to append to a message.
    package static func question(for word: String, in candidates: some Sequence<String>) -> String {
        nearest(to: word, in: candidates).map { " Did you mean '\($0)'?" } ?? ""
    }
}

package enum EditDistance {
    /// Returns the number of insertions, deletions, replacements and swaps of neighbours between two texts. No part is edited twice.
    /// O(n·m).
    package static func between(_ left: String, _ right: String) -> Int {
        let (a, b) = (Array(left), Array(right))
        if a.isEmpty || b.isEmpty { return max(a.count, b.count) }
        var beforePrevious: [Int] = []
        var previous = Array(0...b.count)
        for i in 1...a.count {
            var row = [i] + Array(repeating: 0, count: b.count)
            for j in 1...b.count {
                let replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                row[j] = min(replaced, previous[j] + 1, row[j - 1] + 1)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] { row[j] = min(row[j], beforePrevious[j - 2] + 1) }
            }
            (beforePrevious, previous) = (previous, row)
        }
        return previous[b.count]
    }
}
