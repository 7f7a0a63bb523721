package import SluiceCore

/// The order of a list with what it was: a place for each insertion and each move ever, removed elements included, until
/// they are pruned.
///
/// A place hangs on the left or the right of the place that its writer saw there, and places that hang on one side of
/// another are in the order of their stamps; read from left to right this is the list ("Fugue", Weidner and Kleppmann 2023,
/// with the earlier first, CR-11). So the order follows from the places alone, however they arrived, and what one writer
/// inserted in a row stays together. An element stands at the place of its latest move.
package struct ListClock: Hashable, Sendable {
    package struct ID: Hashable, Sendable {
        package var client: ClientID
        package var tag: UInt64

        // By numbers: what is compared for every place of a list must not go through another module's witnesses.
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
        /// The place that it hangs on; nil: the start of the list.
        package var parent: ID?
        package var isLeft: Bool
        /// The first place of the element that was moved here; nil for an insertion.
        package var element: ID?
        /// The end of the log before its transaction; zero when everybody knows it.
        package var lsn: LSN
        /// Who removed the element; of first places only, as `value`.
        package var removals: [Removal] = []
        /// Of the element's value; nil as long as it is the one that was inserted.
        package var value: Contents.Entry?
        /// The value that was inserted, once it has been changed or removed, and where the log ended before that.
        package var original: Original?

        package var id: ID { ID(client: stamp.client, tag: tag) }
        package var first: ID { element ?? id }
    }

    /// From left to right.
    package var places: [Place]

    package init(places: [Place] = []) { self.places = places }

    /// Of a list of which nothing is known but that it is there.
    init(count: Int) {
        places = (0..<count).map { index in
            let left = index == 0 ? nil : ID(client: .server, tag: UInt64(index - 1))
            return Place(stamp: .zero, tag: UInt64(index), parent: left, isLeft: false, element: nil, lsn: .zero)
        }
    }

    /// An element that is there: the index of its first place, and of the one where it stands.
    struct Element {
        var first: Int
        var place: Int
    }

    /// The elements from left to right. O(places); `OpenList` finds what several edits need.
    var elements: [Element] {
        let moved = Set(places.lazy.compactMap(\.element))
        var firsts: [ID: Int] = [:]
        var current: [ID: Int] = [:]
        // Most elements were never moved, and stand where they were inserted.
        for index in places.indices where !moved.isEmpty && moved.contains(places[index].first) {
            if places[index].element == nil { firsts[places[index].id] = index }
            if let other = current[places[index].first], places[other].isLater(than: places[index]) { continue }
            current[places[index].first] = index
        }
        var elements: [Element] = []
        elements.reserveCapacity(places.count)
        for index in places.indices {
            var first = index
            if !moved.isEmpty, moved.contains(places[index].first) {
                guard current[places[index].first] == index, let known = firsts[places[index].first] else { continue }
                first = known
            }
            if !places[first].removals.isEmpty { continue }
            elements.append(Element(first: first, place: index))
        }
        return elements
    }

    var latest: WriteStamp {
        places.reduce(.zero) { max($0, $1.stamp, $1.value?.clock.latest ?? .zero) }
    }
}

extension ListClock.Place {
    func isLater(than other: Self) -> Bool { (stamp, tag) > (other.stamp, other.tag) }

    mutating func remember(_ value: Value, until lsn: LSN) {
        if original == nil { original = ListClock.Original(hash: ValueHash(value), until: lsn) }
    }
}
