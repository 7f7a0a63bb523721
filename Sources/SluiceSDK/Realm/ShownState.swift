import Foundation
import SluiceCore
import SluiceReplica

/// A reader that stands on one state, used by one Realm at a time, or by several that take turns.
// Sendable because: whoever shares it reads through `read`, which takes turns; it moves on only while one Realm has it.
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

/// The state of the file that a Realm shows.
///
/// A frozen Realm reads through the reader of the live one that it was made of. When the live one moves on it leaves that
/// reader behind and takes a new one; so freezing costs nothing and moves nothing.
final class ShownState {
    private let replica: Replica
    /// Nil before `pin` or the first read, and after `letGo` until the next.
    private var pinned: PinnedReader?
    /// Why a frozen state cannot be read.
    private var refusal: SluiceError?
    private let isFrozen: Bool
    /// The frozen Realm that reads through `pinned` too.
    private weak var borrower: RealmCore?
    private var isLent = false

    /// The newest state, from `pin` or the first read on.
    init(of replica: Replica) {
        self.replica = replica
        isFrozen = false
    }

    /// - Parameter pinned: nil: it cannot be read.
    private init(frozen pinned: PinnedReader?, of replica: Replica, _ refusal: SluiceError?) {
        self.replica = replica
        self.pinned = pinned
        self.refusal = refusal
        isFrozen = true
    }

    /// The version of the file that is at least contained in what is shown.
    var version: UInt64 { pinned?.reader.version ?? 0 }

    func read<R>(_ body: (RowStore) throws(SluiceError) -> R) throws(SluiceError) -> R {
        let pinned = try pin()
        return isFrozen || isLent ? try pinned.read(body) : try body(pinned.reader.store)
    }

    /// Takes the newest state, where none is shown yet.
    func pin() throws(SluiceError) -> PinnedReader {
        if let pinned { return pinned }
        if let refusal { throw refusal }
        let fresh = PinnedReader(try replica.makeReader())
        pinned = fresh
        return fresh
    }

    /// Whether there is a newer state to move to.
    /// - Parameter wanted: a version that the caller knows of.
    func isStale(atLeast wanted: UInt64 = 0) throws(SluiceError) -> Bool {
        if isFrozen { return false }
        return try pin().reader.isStale(atLeast: wanted)
    }

    /// Moves to the newest state. - Returns: whether there was something newer.
    func advance(atLeast wanted: UInt64 = 0) throws(SluiceError) -> Bool {
        guard try isStale(atLeast: wanted) else { return false }
        if borrower != nil { pinned = nil }
        borrower = nil
        isLent = false
        _ = try pin().reader.refresh(atLeast: wanted)
        return true
    }

    /// A Realm that goes on showing this state; the same one until this moves on.
    /// When it cannot be read, a Realm whose reads say why.
    func lend(to make: (ShownState) -> RealmCore) -> RealmCore {
        if let borrower { return borrower }
        do throws(SluiceError) {
            let frozen = make(ShownState(frozen: try pin(), of: replica, nil))
            borrower = frozen
            isLent = true
            return frozen
        } catch {
            return make(ShownState(frozen: nil, of: replica, error))
        }
    }

    /// Lets the state go; the next read is of the newest one.
    func letGo() {
        pinned = nil
        borrower = nil
        isLent = false
    }

    /// Runs what fills a cache that hangs on the state, one at a time.
    func locked<R>(_ body: () -> R) -> R { pinned?.locked(body) ?? body() }
}
