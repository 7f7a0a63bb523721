package import SluiceCore

/// The order of a list and its history. It has a place for each insertion and each move, also of removed elements, until they are pruned.
///
/// A place is a left or right child of the place that its writer saw there. Children on one side are in the order of their stamps. The list
/// is the order from left to right ("Fugue", Weidner and Kleppmann 2023, with the earlier first, CR-11). So the order depends on the places
/// alone, not on their arrival. Elements that one writer inserts in a row stay together. The place of an element is that of its latest
/// move.
package struct ListClock: Hashable, Sendable {
    package struct ID: Hashable, Sendable {
        package var client: ClientID
        package var tag: UInt64

        // Compares raw numbers: this comparison runs for every place of a list and must not use another module's witnesses.
        package static func == (lhs: ID, rhs: ID) -> Bool { lhs.tag == rhs.tag && lhs.client.rawValue == rhs.client.rawValue }
    }

    package struct Original: Hashable, Sendable {
        package var hash: ValueHash
        package var until: LSN
    }

    package struct Removal: Hashable, Sendable {
        package var client: ClientID
        package var lsn: LSN
    }

    package struct Place: Hashable, Sendable {
        package var stamp: WriteStamp
        package var tag: UInt64
        /// The parent place. `nil` for the start of the list.
        package var parent: ID?
        package var isLeft: Bool
        /// The first place of the moved element. `nil` for an insertion.
        package var element: ID?
        /// The end of the log before its transaction. Zero if all writers know the place.
        package var lsn: LSN
        /// The removals of the element, with their clients. Only first places have them, as with `value`.
        package var removals: [Removal] = []
        /// The clock of the element's value. `nil` until the inserted value changes.
        package var value: Contents.Entry?
        /// The hash of the inserted value, once it is changed or removed, and the end of the log before that.
        package var original: Original?

        package var id: ID { ID(client: stamp.client, tag: tag) }
        package var first: ID { element ?? id }
    }

    /// The places from left to right.
    package var places: [Place]

    package init(places: [Place] = []) { self.places = places }

    /// Creates the clock of a list whose history is unknown.
    init(count: Int) {
        places = (0..<count).map { index in
            let left = index == 0 ? nil : ID(client: .server, tag: UInt64(index - 1))
            return Place(stamp: .zero, tag: UInt64(index), parent: left, isLeft: false, element: nil, lsn: .zero)
        }
    }

    /// The point of view from which a list is read.
    enum Eyes {
        /// The list as it is now.
        case present
        /// The server's list as the writer's base had it.
        case base(LSN)
        /// The writer's list: the base with all changes of the writer.
        case writer(LSN, ClientID)

        func sees(_ lsn: LSN, by client: ClientID) -> Bool {
            switch self {
            case .present: true
            case .base(let base): lsn == .zero || base > lsn
            case .writer(let base, let writer): lsn == .zero || base > lsn || client == writer
            }
        }
    }

    /// An element in one point of view: the index of its first place, and of its current place.
    struct Element {
        var first: Int
        var place: Int
    }

    /// The elements from left to right.
    func elements(_ eyes: Eyes) -> [Element] {
        let moved = Set(places.lazy.compactMap(\.element))
        var firsts: [ID: Int] = [:]
        var current: [ID: Int] = [:]
        // Most elements were never moved: their current place is that of the insertion.
        for index in places.indices where !moved.isEmpty && moved.contains(places[index].first) && sees(index, eyes) {
            if places[index].element == nil { firsts[places[index].id] = index }
            // Of several moves, the latest visible one counts (CR-14).
            if let other = current[places[index].first], places[other].isLater(than: places[index]) { continue }
            current[places[index].first] = index
        }
        var elements: [Element] = []
        elements.reserveCapacity(places.count)
        for index in places.indices where sees(index, eyes) {
            var first = index
            if !moved.isEmpty, moved.contains(places[index].first) {
                guard current[places[index].first] == index, let known = firsts[places[index].first] else { continue }
                first = known
            }
            let removals = places[first].removals
            // A removal counts only from points of view that see it.
            if !removals.isEmpty, removals.contains(where: { eyes.sees($0.lsn, by: $0.client) }) { continue }
            elements.append(Element(first: first, place: index))
        }
        return elements
    }

    private func sees(_ index: Int, _ eyes: Eyes) -> Bool { eyes.sees(places[index].lsn, by: places[index].stamp.client) }

    func index(of id: ID) -> Int? { places.firstIndex { $0.id == id } }

    var latest: WriteStamp {
        places.reduce(.zero) { max($0, $1.stamp, $1.value?.clock.latest ?? .zero) }
    }
}

extension ListClock.Place {
    fileprivate func isLater(than other: Self) -> Bool { (stamp, tag) > (other.stamp, other.tag) }
}

// MARK: Adding places

extension ListClock {
    /// Adds a place behind another in the list that its writer saw.
    /// - Parameter left: The index of the place before. `nil` for the start.
    mutating func add(
        stamp: WriteStamp, tag: UInt64, element: ID?, lsn: LSN, behind left: Int?, eyes: Eyes
    ) {
        let next = places.indices.dropFirst(left.map { $0 + 1 } ?? 0).first { eyes.sees(places[$0].lsn, by: places[$0].stamp.client) }
        let parent = left.map { places[$0].id }
        let hasRight = places.contains { $0.parent == parent && !$0.isLeft && eyes.sees($0.lsn, by: $0.stamp.client) }
        var place = Place(stamp: stamp, tag: tag, parent: parent, isLeft: false, element: element, lsn: lsn)
        // With a visible right child, the place becomes the left child of the next visible place (Fugue).
        if hasRight, let next {
            place.parent = places[next].id
            place.isLeft = true
        }
        places.insert(place, at: position(for: place))
    }

    /// Returns the index of a new place from left to right. O(n) in the places.
    private func position(for place: Place) -> Int {
        let siblings = places.indices.filter { places[$0].parent == place.parent && places[$0].isLeft == place.isLeft }
        let parent = place.parent.flatMap { index(of: $0) }
        guard !siblings.isEmpty else {
            guard let parent else { return 0 }
            return place.isLeft ? parent : parent + 1
        }
        // Siblings are in the order of stamps: the place follows the subtree of the last earlier one.
        let before = siblings.filter { place.isLater(than: places[$0]) }
        if let last = before.max(by: { places[$1].isLater(than: places[$0]) }) { return bounds(below: last).upperBound }
        let first = siblings.min { places[$1].isLater(than: places[$0]) } ?? 0
        return bounds(below: first).lowerBound
    }

    /// Returns the range of a place and its descendants, which are adjacent. O(n) in the places.
    private func bounds(below root: Int) -> Range<Int> {
        var indices: [ID: Int] = [:]
        for (index, place) in places.enumerated() { indices[place.id] = index }
        // `nil`: not known yet.
        var isBelow = [Bool?](repeating: nil, count: places.count)
        isBelow[root] = true
        for index in places.indices {
            var way: [Int] = []
            var at: Int? = index
            // Only damaged places form a cycle.
            while let here = at, isBelow[here] == nil, way.count < places.count {
                way.append(here)
                at = places[here].parent.flatMap { indices[$0] }
            }
            let answer = at.flatMap { isBelow[$0] } ?? false
            for here in way { isBelow[here] = answer }
        }
        var (low, high) = (root, root + 1)
        while low > 0, isBelow[low - 1] == true { low -= 1 }
        while high < places.count, isBelow[high] == true { high += 1 }
        return low..<high
    }
}
