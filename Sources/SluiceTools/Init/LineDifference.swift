/// The differences of two texts, line by line.
enum LineDifference {
    /// The maximum number of lines that are compared. Longer texts have no differences to show.
    static let mostLines = 2_000

    /// Returns the lines of both texts, with `-` before those that only the first has and `+` before those that only the second has. A line
    /// of both has a blank, and is left out if it is further than two lines from a difference.
    ///
    /// - Returns: nil if a text is too long. The cost is the product of the numbers of lines.
    static func between(_ old: String, _ new: String) -> [String]? {
        let (old, new) = (lines(old), lines(new))
        guard old.count <= mostLines, new.count <= mostLines else { return nil }
        return context(marked(old, new))
    }

    private static func lines(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// Returns the lines of both in an order in which the longest common subsequence stays.
    private static func marked(_ old: [Substring], _ new: [Substring]) -> [(mark: Character, line: Substring)] {
        // lengths[i][j]: the longest common subsequence of old[i...] and new[j...].
        var lengths = [[Int]](repeating: [Int](repeating: 0, count: new.count + 1), count: old.count + 1)
        for i in old.indices.reversed() {
            for j in new.indices.reversed() {
                lengths[i][j] = old[i] == new[j] ? lengths[i + 1][j + 1] + 1 : max(lengths[i + 1][j], lengths[i][j + 1])
            }
        }
        var result: [(Character, Substring)] = []
        var (i, j) = (0, 0)
        while i < old.count || j < new.count {
            if i < old.count, j < new.count, old[i] == new[j] {
                result.append((" ", old[i]))
                (i, j) = (i + 1, j + 1)
            } else if j == new.count || (i < old.count && lengths[i + 1][j] >= lengths[i][j + 1]) {
                result.append(("-", old[i]))
                i += 1
            } else {
                result.append(("+", new[j]))
                j += 1
            }
        }
        return result
    }

    private static func context(_ lines: [(mark: Character, line: Substring)]) -> [String] {
        let changed = lines.indices.filter { lines[$0].mark != " " }
        let shown = Set(changed.flatMap { max(0, $0 - 2)...min(lines.count - 1, $0 + 2) })
        return lines.indices.filter(shown.contains).map { "\(lines[$0].mark) \(lines[$0].line)" }
    }
}
