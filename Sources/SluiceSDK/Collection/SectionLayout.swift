import SluiceReplica

/// Which sections there are, and where in the collection their elements stand.
///
/// Sections usually stand one behind the other; then a change of the collection is followed at the cost of the number of sections for each
/// element that it concerns. Where they are mixed the layout is made anew.
struct SectionLayout<Key: Hashable> {
    private enum Form {
        /// One behind the other: where each begins, and at last where the last one ends.
        case runs([Int])
        /// The places of each, and for every place the section and which element of it stands there.
        case mixed([[Int]], [(section: Int, item: Int)])
    }

    /// In the order of their first elements.
    let keys: [Key]
    private let form: Form
    private let sections: [Key: Int]

    /// - Parameter elements: the keys of the elements, in order.
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

    /// Where the elements of a section stand; nowhere when there is none with the key.
    func places(of key: Key) -> Places {
        guard let section = sections[key] else { return .run(0..<0) }
        switch form {
        case .runs(let starts): return .run(starts[section]..<starts[section + 1])
        case .mixed(let places, _): return .mixed(places[section])
        }
    }

    func path(of place: Int) -> (section: Int, item: Int) {
        switch form {
        case .mixed(_, let paths): return paths[place]
        case .runs(let starts):
            // The last that begins there or before.
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
    /// The layout after a difference of the collection, in which no other elements have changed their keys than those it names.
    /// - Parameter key: that of the element at a place of the new collection.
    /// - Returns: nil when it has to be made anew.
    func following(_ diff: CollectionDiff, key: (Int) -> Key) -> SectionLayout? {
        let changes = diff.deletions.count + diff.insertions.count + diff.modifications.count
        guard case .runs(let starts) = form, changes * keys.count <= max(count, 10_000) else { return nil }
        var runs = SectionRuns(keys.indices.map { (keys[$0], starts[$0 + 1] - starts[$0]) })
        for place in diff.deletions.reversed() { runs.remove(at: place) }
        for place in diff.insertions { guard runs.insert(key(place), at: place) else { return nil } }
        for place in diff.modifications {
            let new = key(place)
            if runs.key(at: place) == new { continue }
            runs.remove(at: place)
            guard runs.insert(new, at: place) else { return nil }
        }
        return SectionLayout(runs: runs.runs.filter { $0.count > 0 })
    }
}

/// Sections that stand one behind the other, as they are changed; some may have become empty.
private struct SectionRuns<Key: Hashable> {
    private(set) var runs: [(key: Key, count: Int)]

    init(_ runs: [(key: Key, count: Int)]) { self.runs = runs }

    /// The one with the element at a place.
    private func run(at place: Int) -> Int? {
        var start = 0
        for (index, run) in runs.enumerated() {
            if place < start + run.count { return index }
            start += run.count
        }
        return nil
    }

    func key(at place: Int) -> Key? { run(at: place).map { runs[$0].key } }

    mutating func remove(at place: Int) { if let run = run(at: place) { runs[run].count -= 1 } }

    /// - Returns: false when the element would stand in another section, or away from its own.
    mutating func insert(_ key: Key, at place: Int) -> Bool {
        var (start, fresh) = (0, runs.count)
        for (index, run) in runs.enumerated() {
            let end = start + run.count
            if place <= end, run.key == key {
                runs[index].count += 1
                return true
            }
            // Within another.
            if start < place, place < end { return false }
            if place <= start, run.count > 0 {
                fresh = index
                break
            }
            start = end
        }
        if let other = runs.firstIndex(where: { $0.key == key }) {
            guard runs[other].count == 0 else { return false }
            runs.remove(at: other)
            if other < fresh { fresh -= 1 }
        }
        runs.insert((key, 1), at: fresh)
        return true
    }
}
