import Foundation
import SluiceCore
import SluiceReplica
import Synchronization

/// A reader at one snapshot, used by one Realm or shared with the frozen Realms made of it.
// Sendable because: shared readers are used through `read`, which locks; the reader advances only while one Realm has it.
final class PinnedReader: @unchecked Sendable {
    let reader: ReplicaReader
    private let lock = NSRecursiveLock()

    init(_ reader: ReplicaReader) { self.reader = reader }

    func read<R>(_ body: (RowStore) throws(SluiceError) -> R) throws(SluiceError) -> R {
        lock.lock()
        defer { lock.unlock() }
        return try body(reader.store)
    }

    func locked<R>(_ body: () -> R) -> R {
        lock.lock()
        defer { lock.unlock() }
        return body()
    }
}

/// The snapshot of the file that a Realm shows.
///
/// A frozen Realm shares the reader of the live one. When the live Realm advances, it leaves that reader to the frozen one and
/// creates a new one. Freezing therefore costs nothing and does not advance the live Realm.
final class ReadSnapshot {
    private let replica: Replica
    /// Nil before `pin` or the first read, and between `release` and the next read.
    private var pinned: PinnedReader?
    /// The reason why a frozen snapshot cannot be read.
    private var refusal: SluiceError?
    private let isFrozen: Bool
    /// The frozen Realm that shares `pinned`.
    private weak var borrower: RealmCore?
    private var isLent = false
    /// The version that the snapshot contains, for any thread. `UInt64.max` if the next read pins the newest snapshot.
    private let shown = Atomic<UInt64>(.max)
    /// The last subscription set that was found complete, and a version that contains its objects.
    private let complete = Mutex<(set: UInt64, version: UInt64)?>(nil)

    /// Creates the state of a live Realm. It shows the newest snapshot at `pin` or the first read.
    init(of replica: Replica) {
        self.replica = replica
        isFrozen = false
    }

    /// Creates the state of a frozen Realm.
    /// - Parameter pinned: The shared reader. If nil, reads throw the error.
    private init(frozen pinned: PinnedReader?, of replica: Replica, _ refusal: SluiceError?) {
        self.replica = replica
        self.pinned = pinned
        self.refusal = refusal
        isFrozen = true
    }

    /// A version that the snapshot contains. The snapshot may be newer.
    var version: UInt64 { pinned?.reader.version ?? 0 }

    func read<R>(_ body: (RowStore) throws(SluiceError) -> R) throws(SluiceError) -> R {
        let pinned = try pin()
        // The lock is needed only while a frozen Realm may read on another thread.
        return isFrozen || isLent ? try pinned.read(body) : try body(pinned.reader.store)
    }

    /// Pins the newest snapshot if none is shown yet.
    func pin() throws(SluiceError) -> PinnedReader {
        if let pinned { return pinned }
        if let refusal { throw refusal }
        // Stored only once it exists: after an error the next read tries again.
        let fresh = PinnedReader(try replica.makeReader())
        pinned = fresh
        shown.store(fresh.reader.version, ordering: .releasing)
        return fresh
    }

    /// `true` if there is a newer snapshot.
    /// - Parameter wanted: The least version that the caller needs.
    func isStale(atLeast wanted: UInt64 = 0) throws(SluiceError) -> Bool {
        if isFrozen { return false }
        return try pin().reader.isStale(atLeast: wanted)
    }

    /// Advances to the newest snapshot.
    /// - Returns: `true` if there was a newer snapshot.
    func advance(atLeast wanted: UInt64 = 0) throws(SluiceError) -> Bool {
        guard try isStale(atLeast: wanted) else { return false }
        // If the frozen Realm has been released, its reader is reused.
        if borrower != nil { pinned = nil }
        borrower = nil
        isLent = false
        let newest = try pin().reader
        try newest.refresh(atLeast: wanted)
        shown.store(newest.version, ordering: .releasing)
        return true
    }

    /// `true` if the snapshot is older than a version. Safe to use on any thread.
    func isOlder(than version: UInt64) -> Bool { shown.load(ordering: .acquiring) < version }

    /// Returns a version that contains the objects of a complete subscription set: the newest one at the first call for the set.
    /// Safe to use on any thread.
    func version(ofCompleteSet set: UInt64) -> UInt64 {
        // Fixed per set: with a later version at each call, a Realm would stay behind while others write.
        if let known = complete.withLock({ $0?.set == set ? $0?.version : nil }) { return known }
        // An unreadable file is reported by the next read of its objects.
        let newest = (try? replica.committedVersion()) ?? 0
        // The lock is not held over the file access. Two first callers may store different versions; both contain the objects.
        complete.withLock { $0 = (set: set, version: newest) }
        return newest
    }

    /// Returns a Realm that keeps showing this snapshot, the same one until this state advances.
    /// If the snapshot cannot be read, the result's reads throw the reason.
    func lend(to make: (ReadSnapshot) -> RealmCore) -> RealmCore {
        // Realms are equal if their cores are identical, so freezing twice must return one core.
        if let borrower { return borrower }
        do throws(SluiceError) {
            let frozen = make(ReadSnapshot(frozen: try pin(), of: replica, nil))
            borrower = frozen
            isLent = true
            return frozen
        } catch {
            return make(ReadSnapshot(frozen: nil, of: replica, error))
        }
    }

    /// Releases the snapshot. The next read pins the newest one.
    func release() {
        pinned = nil
        borrower = nil
        isLent = false
        // The next read pins the newest snapshot, so until then it is not older than any version.
        shown.store(.max, ordering: .releasing)
    }

    /// Runs code that fills a cache of the snapshot, under the reader's lock.
    func locked<R>(_ body: () -> R) -> R { pinned?.locked(body) ?? body() }
}
