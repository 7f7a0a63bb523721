/// Finds what somebody probably meant, for error messages.
package enum Suggestion {
    /// The candidate nearest to a misspelt word; nil when none is near enough to be worth naming.
    ///
    /// Near enough: no more than a third of the word's characters are wrong (but one always may be). Case counts for
    /// nothing. Cost: the length of the word times the length of those candidates that are about as long; nothing is near to a word of
    /// more than `longest` bytes.
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

    /// ` Did you mean 'x'?`, or nothing: to be put behind a message.
    package static func question(for word: String, in candidates: some Sequence<String>) -> String {
        nearest(to: word, in: candidates).map { " Did you mean '\($0)'?" } ?? ""
    }
}

package enum EditDistance {
    /// How many insertions, deletions, replacements and swaps of neighbours turn one text into the other, no part being
    /// edited twice.
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
