package import SluiceCore

/// The facts about one file that the integration needs.
///
/// Memory: a key for each object of the view, which `ClientModel` has as well, and the barriers that its base has not passed. With
/// more than `RealmIntegrationBounds.barriers` barriers, the file is reset.
package struct RealmFileMemory: Hashable, Sendable {
    /// An erasure barrier: an erasure in the file's stream.
    package struct Barrier: Hashable, Sendable {
        package var version: UInt64
        package var stamp: RealmStamp

        package init(version: UInt64, stamp: RealmStamp) { (self.version, self.stamp) = (version, stamp) }
    }

    /// The last changeset of the file that took effect.
    package internal(set) var clientVersion: UInt64 = 0
    /// The base of that changeset, or the version that the file has confirmed since.
    package internal(set) var base: UInt64 = 0
    /// The objects of the view that the file holds.
    package var view: Set<ObjectKey> = []
    /// By object, in the order of their versions.
    package private(set) var barriers: [ObjectKey: [Barrier]] = [:]
    package private(set) var barrierCount = 0

    package init() {}

    /// Records an erasure. Changes with an older base are void.
    package mutating func setBarrier(_ object: ObjectKey, _ version: UInt64, _ stamp: RealmStamp) {
        barriers[object, default: []].append(Barrier(version: version, stamp: stamp))
        barrierCount += 1
    }

    /// The objects that the file may hold: those of its view, and those whose erasure it has not confirmed.
    package var held: Set<ObjectKey> { view.union(barriers.keys) }

    /// Returns `true` if the client has discarded its own changes of the object.
    package func isBarred(_ object: ObjectKey, _ writer: RealmWriter) -> Bool {
        barriers[object]?.contains { $0.version > writer.base } ?? false
    }

    /// Lets the file's own later erasure pass. Its later changes of the object are then valid.
    /// - Returns: `true` if the erasure is later than all that it did not know.
    package mutating func pass(_ object: ObjectKey, _ writer: RealmWriter) -> Bool {
        let unknown = barriers[object]?.filter { $0.version > writer.base } ?? []
        guard unknown.allSatisfy({ $0.stamp < writer.stamp }) else { return false }
        barrierCount -= barriers.removeValue(forKey: object)?.count ?? 0
        return true
    }

    /// Records progress of the file, and drops the barriers that it has passed.
    package mutating func advance(_ clientVersion: UInt64, base: UInt64) {
        self.clientVersion = max(self.clientVersion, clientVersion)
        guard base > self.base else { return }
        self.base = base
        barriers = barriers.compactMapValues { list in
            let rest = list.filter { $0.version > base }
            return rest.isEmpty ? nil : rest
        }
        barrierCount = barriers.values.reduce(0) { $0 + $1.count }
    }
}
