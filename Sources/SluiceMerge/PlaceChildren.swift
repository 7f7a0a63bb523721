import SluiceCore

/// The places that hang on each place.
struct PlaceChildren {
    /// By parent, one more than its index; at 0 those that hang on the start.
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
            // Most were put behind the one before them.
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

    /// A place and those that hang on it, directly or not. Damaged ones, which hang on each other in a ring, are there once.
    func all(below root: Int) -> Set<Int> {
        var (all, open): (Set<Int>, [Int]) = ([root], [root])
        while let place = open.popLast() {
            forEach(of: place) { if all.insert($0).inserted { open.append($0) } }
        }
        return all
    }
}

#if DEBUG
    /// Counts the places that merging looks at.
    package enum MergeWork {
        @TaskLocal package static var counter: Counter?

        // Sendable because: one task counts.
        package final class Counter: @unchecked Sendable {
            package private(set) var places = 0

            package init() {}

            func add(_ count: Int) { places += count }
        }
    }
#endif
