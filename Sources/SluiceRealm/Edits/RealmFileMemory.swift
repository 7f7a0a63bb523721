package import SluiceCore

/// The objects that a file holds, and the erasures that it has not confirmed.
///
/// Memory: a key for each object, which `ClientModel` has as well, and the barriers that its base has not passed. The owner bounds
/// `barrierCount`.
package struct RealmFileMemory: Hashable, Sendable {
    /// An erasure barrier: an erasure in the file's stream.
    package struct Barrier: Hashable, Sendable {
        package var version: UInt64
        package var stamp: RealmStamp

        package init(version: UInt64, stamp: RealmStamp) { (self.version, self.stamp) = (version, stamp) }
    }

    /// The barriers of an object, in the order of their versions. Stamps go down: a barrier is left out if a later one has no earlier
    /// stamp, as it decides nothing. So an object that comes and goes has one barrier, unless clocks go back. That one needs no memory of
    /// its own.
    package struct Barriers: Hashable, Sendable {
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
        fileprivate func first(above version: UInt64) -> Barrier? {
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
            self = Barriers(list) ?? self
            return replaced
        }

        /// Returns the barriers without that of a version, in place of which others return.
        fileprivate func replacing(_ version: UInt64, with others: [Barrier]) -> Barriers? {
            var list = all
            guard let index = list.lastIndex(where: { $0.version == version }) else { return self }
            list.replaceSubrange(index...index, with: others)
            return Barriers(list)
        }

        /// Returns the barriers above a version; nil for none.
        fileprivate func above(_ version: UInt64) -> Barriers? {
            if earlier.isEmpty { return last.version > version ? self : nil }
            return Barriers(all.filter { $0.version > version })
        }
    }

    /// The last changeset of the file that took effect.
    package internal(set) var clientVersion: UInt64 = 0
    /// The base of that changeset, or the version that the file has confirmed since.
    package internal(set) var base: UInt64 = 0
    /// The objects of the view that the file holds.
    package var view: Set<ObjectKey> = []
    /// By object.
    package private(set) var barriers: [ObjectKey: Barriers] = [:]
    package private(set) var barrierCount = 0

    package init() {}

    /// Makes room for objects that enter the view.
    package mutating func reserve(_ count: Int) {
        view.reserveCapacity(view.count + count)
        barriers.reserveCapacity(barriers.count + count)
    }

    /// Records an erasure. Changes with an older base are void.
    /// - Returns: The barriers that this one replaces, for `removeBarrier`.
    @discardableResult package mutating func setBarrier(_ object: ObjectKey, _ version: UInt64, _ stamp: RealmStamp) -> [Barrier] {
        let barrier = Barrier(version: version, stamp: stamp)
        guard var known = barriers.updateValue(Barriers(barrier), forKey: object) else {
            barrierCount += 1
            return []
        }
        let replaced = known.add(barrier)
        barriers[object] = known
        barrierCount += replaced.map { 1 - $0.count } ?? 0
        return replaced ?? []
    }

    /// Takes the last barrier of an object back, because the file has not received the erasure.
    package mutating func removeBarrier(_ object: ObjectKey, _ version: UInt64, replaced: [Barrier]) {
        guard let known = barriers[object] else { return }
        let rest = known.replacing(version, with: replaced.filter { $0.version > base })
        barriers[object] = rest
        barrierCount += (rest?.count ?? 0) - known.count
    }

    /// Puts the barriers of an object back, without those that the base has passed.
    package mutating func setBarriers(_ object: ObjectKey, _ barriers: Barriers?) {
        removeBarriers(object)
        self.barriers[object] = barriers?.above(base)
        barrierCount += self.barriers[object]?.count ?? 0
    }

    /// Forgets the barriers of an object.
    package mutating func removeBarriers(_ object: ObjectKey) { barrierCount -= barriers.removeValue(forKey: object)?.count ?? 0 }

    /// The objects that the file may hold: those of its view, and those whose erasure it has not confirmed.
    package var held: Set<ObjectKey> { view.union(barriers.keys) }

    /// Returns `true` if the client has discarded its own changes of the object.
    package func isBarred(_ object: ObjectKey, _ writer: RealmWriter) -> Bool { isBarred(object, after: writer.base) }

    /// Returns `true` if the object has a barrier above a version.
    package func isBarred(_ object: ObjectKey, after base: UInt64) -> Bool {
        barriers[object].map { $0.last.version > base } ?? false
    }

    /// Lets the file's own later erasure pass. Its later changes of the object are then valid.
    /// - Returns: `true` if the erasure is later than all that it did not know.
    package mutating func pass(_ object: ObjectKey, _ writer: RealmWriter) -> Bool {
        // Stamps go down, so the first unknown barrier has the latest one.
        if let unknown = barriers[object]?.first(above: writer.base), unknown.stamp >= writer.stamp { return false }
        removeBarriers(object)
        return true
    }

    /// Records progress of the file, and drops the barriers that it has passed.
    package mutating func advance(_ clientVersion: UInt64, base: UInt64) {
        self.clientVersion = max(self.clientVersion, clientVersion)
        guard base > self.base else { return }
        self.base = base
        barriers = barriers.compactMapValues { $0.above(base) }
        barrierCount = barriers.values.reduce(0) { $0 + $1.count }
    }
}
