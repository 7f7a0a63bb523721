package import SluiceCore

/// The objects that a file holds, and the erasures that it has not confirmed.
///
/// Memory: a key for each object, which `ClientModel` has as well, and the barriers that its base has not passed. The owner bounds
/// `barriers.count`.
package struct RealmFileMemory: Hashable, Sendable {
    /// The last changeset of the file that took effect.
    package internal(set) var clientVersion: UInt64 = 0
    /// The base of that changeset, or the version that the file has confirmed since.
    package internal(set) var base: UInt64 = 0
    /// The objects of the view that the file holds.
    package var view: Set<ObjectKey> = []
    /// The erasures that the base has not passed.
    package private(set) var barriers = RealmBarriers()

    package init() {}

    /// Makes room for objects that enter the view.
    package mutating func reserve(_ count: Int) {
        view.reserveCapacity(view.count + count)
        barriers.reserve(count)
    }

    /// Records that objects enter the view with one barrier, if no other object is in the view and none has another barrier.
    ///
    /// The parts of a whole view have one version, so each of them can be recorded.
    /// - Parameter expected: The number of objects to make room for.
    /// - Returns: `false` if nothing is recorded.
    package mutating func enterWhole(_ objects: [ObjectKey], _ version: UInt64, _ stamp: RealmStamp, expecting expected: Int) -> Bool {
        let barrier = RealmBarriers.Barrier(version: version, stamp: stamp)
        guard barriers.isWhole(barrier, of: view) else { return false }
        // The view has no other owner while it grows.
        barriers.removeWhole()
        view.reserveCapacity(view.count + expected)
        for object in objects { view.insert(object) }
        barriers.setWhole(barrier, view)
        return true
    }

    /// Records an erasure. Changes with an older base are void.
    /// - Returns: The barriers that this one replaces, for `removeBarrier`.
    @discardableResult
    package mutating func setBarrier(_ object: ObjectKey, _ version: UInt64, _ stamp: RealmStamp) -> [RealmBarriers.Barrier] {
        barriers.add(RealmBarriers.Barrier(version: version, stamp: stamp), to: object)
    }

    /// Takes the last barrier of an object back, because the file has not received the erasure.
    package mutating func removeBarrier(_ object: ObjectKey, _ version: UInt64, replaced: [RealmBarriers.Barrier]) {
        barriers.remove(version, of: object, replaced: replaced.filter { $0.version > base })
    }

    /// Puts the barriers of an object back, without those that the base has passed.
    package mutating func setBarriers(_ object: ObjectKey, _ list: RealmBarriers.List?) { barriers.set(list, of: object, above: base) }

    /// Forgets the barriers of an object.
    package mutating func removeBarriers(_ object: ObjectKey) { barriers[object] = nil }

    /// The objects that the file may hold: those of its view, and those whose erasure it has not confirmed.
    package var held: Set<ObjectKey> { view.union(barriers.objects) }

    /// Returns `true` if the client has discarded its own changes of the object.
    package func isBarred(_ object: ObjectKey, _ writer: RealmWriter) -> Bool { isBarred(object, after: writer.base) }

    /// Returns `true` if the object has a barrier above a version.
    package func isBarred(_ object: ObjectKey, after base: UInt64) -> Bool { barriers[object].map { $0.last.version > base } ?? false }

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
        barriers.drop(upTo: base)
    }
}
