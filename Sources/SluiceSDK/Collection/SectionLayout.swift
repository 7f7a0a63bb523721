import SluiceReplica

/// The sections of a collection and the positions of their elements.
///
/// Sections are usually contiguous. A change then costs O(sections) per affected element.
/// If sections are interleaved, the layout is computed again.
struct SectionLayout<Key: Hashable> {
    private enum Form {
        /// Contiguous sections: the start of each, followed by the end of the last.
        case runs([Int])
        /// Interleaved sections: the positions of each section, and the section and item at each position.
        case mixed([[Int]], [(section: Int, item: Int)])
    }

    /// The keys in the order of the sections' first elements.
    let keys: [Key]
    private let form: Form
    private let sections: [Key: Int]

    /// Computes the layout. O(elements).
    /// - Parameter elements: The keys of the elements, in order.
    init(of elements: some Sequence<Key>) {
        var (keys, places, paths): ([Key], [[Int]], [(section: Int, item: Int)]) = ([], [], [])
        var sections: [Key: Int] = [:]
        var isMixed = false
        for (place, key) in elements.enumerated() {
            let section = sections[key] ?? keys.count
            if section == keys.count {
                sections[key] = section
                keys.append(key)
                places.append([])
            } else if section != paths.last?.section {
                // An earlier section continues here, so the sections are interleaved.
                isMixed = true
            }
            paths.append((section, places[section].count))
            places[section].append(place)
        }
        self.keys = keys
        self.sections = sections
        form = isMixed ? .mixed(places, paths) : .runs(places.map { $0[0] } + [paths.count])
    }

    private init(runs: [(key: Key, count: Int)]) {
        keys = runs.map(\.key)
        sections = Dictionary(keys.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        form = .runs(runs.reduce(into: [0]) { starts, run in starts.append((starts.last ?? 0) + run.count) })
    }

    /// The number of elements.
    var count: Int {
        switch form {
        case .runs(let starts): starts.last ?? 0
        case .mixed(_, let paths): paths.count
        }
    }

    /// The positions of a section's elements; empty if no section has the key.
    func places(of key: Key) -> Places {
        guard let section = sections[key] else { return .run(0..<0) }
        switch form {
        case .runs(let starts): return .run(starts[section]..<starts[section + 1])
        case .mixed(let places, _): return .mixed(places[section])
        }
    }

    /// The section and the item at a position. O(log sections) for contiguous sections.
    func path(of place: Int) -> (section: Int, item: Int) {
        switch form {
        case .mixed(_, let paths): return paths[place]
        case .runs(let starts):
            // The last section that starts at or before the position.
            var (low, high) = (0, keys.count)
            while low + 1 < high {
                let middle = (low + high) / 2
                if starts[middle] <= place { low = middle } else { high = middle }
            }
            return (low, place - starts[low])
        }
    }

    func key(of place: Int) -> Key { keys[path(of: place).section] }

    enum Places: Sequence {
        case run(Range<Int>)
        case mixed([Int])

        var count: Int {
            switch self {
            case .run(let places): places.count
            case .mixed(let places): places.count
            }
        }

        subscript(index: Int) -> Int {
            switch self {
            case .run(let places): places.lowerBound + index
            case .mixed(let places): places[index]
            }
        }

        func makeIterator() -> AnyIterator<Int> {
            switch self {
            case .run(let places): AnyIterator(places.makeIterator())
            case .mixed(let places): AnyIterator(places.makeIterator())
            }
        }
    }
}

extension SectionLayout {
    /// The layout after a change in which only the elements of the difference have changed their keys.
    /// - Parameter key: The key of the element at a position of the new collection.
    /// - Returns: nil if the layout must be computed again.
    func following(_ diff: CollectionDiff, key: (Int) -> Key) -> SectionLayout? {
        // Beyond this bound a new layout costs less than the updates.
        let changes = diff.deletions.count + diff.insertions.count + diff.modifications.count
        guard case .runs(let starts) = form, changes * keys.count <= max(count, 10_000) else { return nil }
        var runs = SectionRuns(keys.indices.map { (keys[$0], starts[$0 + 1] - starts[$0]) })
        // Old positions from the end, then new positions from the start, so that each stays valid.
        for place in diff.deletions.reversed() { runs.remove(at: place) }
        for place in diff.insertions { guard runs.insert(key(place), at: place) else { return nil } }
        for place in diff.modifications {
            let new = key(place)
            if runs.key(at: place) == new { continue }
            // Out and in at one position, so that the others keep theirs.
            runs.remove(at: place)
            guard runs.insert(new, at: place) else { return nil }
        }
        // Sections that lost all elements end here.
        return SectionLayout(runs: runs.runs.filter { $0.count > 0 })
    }
}

/// Contiguous sections under modification. Some may become empty.
private struct SectionRuns<Key: Hashable> {
    private(set) var runs: [(key: Key, count: Int)]

    init(_ runs: [(key: Key, count: Int)]) { self.runs = runs }

    /// The index of the run that contains a position.
    private func run(at place: Int) -> Int? {
        var start = 0
        for (index, run) in runs.enumerated() {
            if place < start + run.count { return index }
            start += run.count
        }
        return nil
    }

    func key(at place: Int) -> Key? { run(at: place).map { runs[$0].key } }

    // The run stays when it is empty: an insertion may continue it.
    mutating func remove(at place: Int) { if let run = run(at: place) { runs[run].count -= 1 } }

    /// Inserts an element into the run of its key, or starts a new run.
    /// - Returns: `false` if the element would split another section or be detached from its own.
    mutating func insert(_ key: Key, at place: Int) -> Bool {
        var (start, fresh) = (0, runs.count)
        for (index, run) in runs.enumerated() {
            let end = start + run.count
            // The end of its own section still belongs to it.
            if place <= end, run.key == key {
                runs[index].count += 1
                return true
            }
            // Inside another section.
            if start < place, place < end { return false }
            // The element precedes this section: a new section would start here.
            if place <= start, run.count > 0 {
                fresh = index
                break
            }
            start = end
        }
        // An empty run of the key may remain elsewhere: the new one replaces it.
        if let other = runs.firstIndex(where: { $0.key == key }) {
            guard runs[other].count == 0 else { return false }
            runs.remove(at: other)
            if other < fresh { fresh -= 1 }
        }
        runs.insert((key, 1), at: fresh)
        return true
    }
}
