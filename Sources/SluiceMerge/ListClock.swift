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
        /// The number of the changeset (`WriteContext.changeset`).
        package var changeset: UInt64 = 0
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

    /// A present element: the index of its first place, and of its current place.
    struct Element {
        var first: Int
        var place: Int
    }

    /// The elements from left to right. O(places); `OpenList` finds what several edits need.
    var elements: [Element] {
        let moved = Set(places.lazy.compactMap(\.element))
        var firsts: [ID: Int] = [:]
        var current: [ID: Int] = [:]
        // Most elements were never moved: their current place is that of the insertion.
        for index in places.indices where !moved.isEmpty && moved.contains(places[index].first) {
            if places[index].element == nil { firsts[places[index].id] = index }
            // Of several moves, the latest visible one counts (CR-14).
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
