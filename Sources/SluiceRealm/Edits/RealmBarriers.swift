package import SluiceCore

/// The erasure barriers of a file's objects.
///
/// After a whole view, all its objects have one barrier, that of the view. It is kept once, with the set of the objects. The set shares the
/// memory of the file's view until either of them changes.
package struct RealmBarriers: Sendable {
    /// An erasure in the file's stream.
    package struct Barrier: Hashable, Sendable {
        package var version: UInt64
        package var stamp: RealmStamp

        package init(version: UInt64, stamp: RealmStamp) { (self.version, self.stamp) = (version, stamp) }
    }

    /// The barriers of an object, in the order of their versions. Stamps go down: a barrier is left out if a later one has no earlier
    /// stamp, as it decides nothing. So an object that comes and goes has one barrier, unless clocks go back. That one needs no memory of
    /// its own.
    package struct List: Hashable, Sendable {
        package private(set) var last: Barrier
        private var earlier: [Barrier] = []

        package init(_ barrier: Barrier) { last = barrier }

        /// - Parameter all: In the order of their versions.
        /// - Returns: nil for none.
        package init?(_ all: some Sequence<Barrier>) {
            earlier = Array(all)
            guard let last = earlier.popLast() else { return nil }
            self.last = last
        }

        package var count: Int { earlier.count + 1 }
        package var all: [Barrier] { earlier + [last] }

        /// The barrier with the lowest version that is above another one. O(count).
        func first(above version: UInt64) -> Barrier? {
            if earlier.isEmpty { return last.version > version ? last : nil }
            return all.first { $0.version > version }
        }

        /// - Returns: The barriers that the new one replaces; nil if it is left out.
        fileprivate mutating func add(_ barrier: Barrier) -> [Barrier]? {
            guard last.version > barrier.version else {
                if earlier.isEmpty, last.stamp <= barrier.stamp {
                    defer { last = barrier }
                    return [last]
                }
                var replaced: [Barrier] = []
                earlier.append(last)
                while let before = earlier.last, before.stamp <= barrier.stamp { replaced.append(earlier.removeLast()) }
                last = barrier
                return replaced.reversed()
            }
            var list = all
            var index = list.endIndex
            while index > 0, list[index - 1].version > barrier.version { index -= 1 }
            if index < list.endIndex, list[index].stamp >= barrier.stamp { return nil }
            var first = index
            while first > 0, list[first - 1].stamp <= barrier.stamp { first -= 1 }
            let replaced = Array(list[first..<index])
            list.replaceSubrange(first..<index, with: CollectionOfOne(barrier))
            self = List(list) ?? self
            return replaced
        }

        /// Returns the barriers without that of a version, in place of which others return.
        fileprivate func replacing(_ version: UInt64, with others: [Barrier]) -> List? {
            var list = all
            guard let index = list.lastIndex(where: { $0.version == version }) else { return self }
            list.replaceSubrange(index...index, with: others)
            return List(list)
        }

        /// Returns the barriers above a version; nil for none.
        fileprivate func above(_ version: UInt64) -> List? {
            if earlier.isEmpty { return last.version > version ? self : nil }
            return List(all.filter { $0.version > version })
        }
    }

    /// The objects whose only barrier is that of a whole view.
    private struct Whole {
        var barrier: Barrier
        var objects: Set<ObjectKey>
    }

    private var whole: Whole?
    /// The barriers of all other objects that have some.
    private var lists: [ObjectKey: List] = [:]
    /// The number of barriers.
    package private(set) var count = 0

    package init() {}

    /// The barriers of an object; nil for none.
    package subscript(object: ObjectKey) -> List? {
        get {
            if !lists.isEmpty, let list = lists[object] { return list }
            guard let whole, whole.objects.contains(object) else { return nil }
            return List(whole.barrier)
        }
        set {
            let old = take(object)
            lists[object] = newValue
            count += (newValue?.count ?? 0) - (old?.count ?? 0)
        }
    }

    /// Removes and returns the barriers of an object, and does not count them.
    private mutating func take(_ object: ObjectKey) -> List? {
        if let list = lists.removeValue(forKey: object) { return list }
        guard let known = whole, known.objects.contains(object) else { return nil }
        whole?.objects.remove(object)
        return List(known.barrier)
    }

    // MARK: Changes

    /// Makes room for objects.
    package mutating func reserve(_ count: Int) { lists.reserveCapacity(lists.count + count) }

    /// - Returns: The barriers that this one replaces, for `remove`.
    mutating func add(_ barrier: Barrier, to object: ObjectKey) -> [Barrier] {
        let before = whole.flatMap { whole -> List? in whole.objects.contains(object) ? List(whole.barrier) : nil }
        if before != nil { whole?.objects.remove(object) }
        // Most objects have no barrier yet: one search finds and adds.
        guard var known = lists.updateValue(List(barrier), forKey: object) ?? before else {
            count += 1
            return []
        }
        let old = known.count
        let replaced = known.add(barrier)
        lists[object] = known
        count += known.count - old
        return replaced ?? []
    }

    /// Takes a barrier of an object back, and puts those that it replaced in its place.
    mutating func remove(_ version: UInt64, of object: ObjectKey, replaced: [Barrier]) {
        guard let known = self[object] else { return }
        self[object] = known.replacing(version, with: replaced)
    }

    /// Drops the barriers up to a version.
    mutating func drop(upTo version: UInt64) {
        if let known = whole, known.barrier.version <= version { whole = nil }
        lists = lists.compactMapValues { $0.above(version) }
        count = lists.values.reduce(whole?.objects.count ?? 0) { $0 + $1.count }
    }

    /// Puts the barriers of an object back, as far as they are above a version.
    mutating func set(_ list: List?, of object: ObjectKey, above version: UInt64) { self[object] = list?.above(version) }

    // MARK: A whole view

    /// Returns `true` if a barrier is the only one of all objects of a view, and no other object has one.
    func isWhole(_ barrier: Barrier, of view: Set<ObjectKey>) -> Bool {
        guard lists.isEmpty else { return false }
        return whole.map { $0.barrier == barrier && $0.objects == view } ?? view.isEmpty
    }

    /// Forgets the objects of a whole view, whose set then has one owner less.
    mutating func removeWhole() {
        count -= whole?.objects.count ?? 0
        whole = nil
    }

    /// Gives a barrier to objects that have no other, while no other object has one.
    package mutating func setWhole(_ barrier: Barrier, _ objects: Set<ObjectKey>) {
        whole = objects.isEmpty ? nil : Whole(barrier: barrier, objects: objects)
        count = objects.count
        lists = [:]
    }

    /// Returns the barrier that each of the objects has alone; nil if there is none. O(1) for the set of `setWhole`.
    package func common(of objects: Set<ObjectKey>) -> Barrier? {
        guard let whole, !objects.isEmpty, whole.objects == objects else { return nil }
        return whole.barrier
    }

    // MARK: Objects

    /// All objects that have barriers.
    package var objects: Set<ObjectKey> { (whole?.objects ?? []).union(lists.keys) }

    /// The objects whose last barrier is of a version.
    package func objects(at version: UInt64) -> Set<ObjectKey> {
        var objects = whole.flatMap { $0.barrier.version == version ? $0.objects : nil } ?? []
        for (object, list) in lists where list.last.version == version { objects.insert(object) }
        return objects
    }

    /// The objects whose last barrier is of another version.
    package func objects(besides version: UInt64) -> Set<ObjectKey> {
        var objects = whole.flatMap { $0.barrier.version != version ? $0.objects : nil } ?? []
        for (object, list) in lists where list.last.version != version { objects.insert(object) }
        return objects
    }

    /// The barriers of each object, except for the objects of a set that have one barrier in common.
    package func lists(except set: Set<ObjectKey>?) -> [(object: ObjectKey, list: List)] {
        var all = lists.map { (object: $0.key, list: $0.value) }
        if let whole, set != whole.objects { all += whole.objects.map { (object: $0, list: List(whole.barrier)) } }
        return all
    }
}

extension RealmBarriers: Hashable {
    /// Compares the barriers of each object, kept once or not.
    package static func == (left: RealmBarriers, right: RealmBarriers) -> Bool {
        guard left.count == right.count else { return false }
        if let one = left.whole, let other = right.whole, one.barrier == other.barrier, one.objects == other.objects {
            return left.lists == right.lists
        }
        let objects = left.objects
        return objects == right.objects && objects.allSatisfy { left[$0] == right[$0] }
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(count) }
}
