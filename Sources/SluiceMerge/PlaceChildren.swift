import SluiceCore

/// The child places of each place.
struct PlaceChildren {
    /// The first child by parent, at the parent's index plus 1. At 0: the first child of the start.
    private var first: [Int32]
    private var next: [Int32]

    /// O(places).
    init(_ places: [ListClock.Place], _ index: (ListClock.ID) -> Int?) {
        first = Array(repeating: -1, count: places.count + 1)
        next = Array(repeating: -1, count: places.count)
        for place in places.indices.reversed() {
            guard let id = places[place].parent else {
                hang(place, below: nil)
                continue
            }
            // Most parents are the place before: the lookup by id is rarely needed.
            if place > 0, places[place - 1].id == id {
                hang(place, below: place - 1)
            } else if let parent = index(id) {
                hang(place, below: parent)
            }
        }
    }

    private mutating func hang(_ place: Int, below parent: Int?) {
        let slot = parent.map { $0 + 1 } ?? 0
        next[place] = first[slot]
        first[slot] = Int32(place)
    }

    /// Adds the place with the next index.
    mutating func insert(_ place: Int, below parent: Int?) {
        first.append(-1)
        next.append(-1)
        hang(place, below: parent)
    }

    func forEach(of parent: Int?, _ body: (Int) -> Void) {
        var at = first[parent.map { $0 + 1 } ?? 0]
        while at >= 0 {
            body(Int(at))
            at = next[Int(at)]
        }
    }

    func contains(of parent: Int?, where condition: (Int) -> Bool) -> Bool {
        var at = first[parent.map { $0 + 1 } ?? 0]
        while at >= 0 {
            if condition(Int(at)) { return true }
            at = next[Int(at)]
        }
        return false
    }

    /// Returns a place and its descendants. In a cycle, which only damaged places form, each occurs once.
    func all(below root: Int) -> Set<Int> {
        var (all, open): (Set<Int>, [Int]) = ([root], [root])
        while let place = open.popLast() {
            forEach(of: place) { if all.insert($0).inserted { open.append($0) } }
        }
        return all
    }
}

#if DEBUG
    /// Counts the places that a merge visits.
    package enum MergeWork {
        @TaskLocal package static var counter: Counter?

        package final class Counter: @unchecked Sendable {  // Sendable because: one task counts.
            package private(set) var places = 0

            package init() {}

            func add(_ count: Int) { places += count }
        }
    }
#endif
