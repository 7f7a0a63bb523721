import SluiceRealm

/// The subscription sets of a Realm client's file, with their states.
struct RealmTestSubscriptions: Sendable {
    private enum State: Sendable {
        /// Not answered, or the bootstrap is under way.
        case pending
        case complete
        case refused
    }

    /// A file begins with the empty set of version 0. Sets before the last complete one are deleted.
    private var sets: [UInt64: (set: RealmQuerySet, state: State)] = [0: (RealmQuerySet(version: 0, queries: [:]), .pending)]

    /// The newest set, which the app has made last.
    private(set) var newest = RealmQuerySet(version: 0, queries: [:])
    /// The set whose view the file has. Before the first view, it is the empty one.
    private(set) var active = RealmQuerySet(version: 0, queries: [:])

    mutating func add(_ queries: [String: String]) {
        newest = RealmQuerySet(version: newest.version + 1, queries: queries)
        sets[newest.version] = (newest, .pending)
    }

    /// Returns the sets behind a version that have no view and were not refused, in order.
    func pending(after version: UInt64) -> [RealmQuerySet] {
        sets.values.filter { $0.set.version > version && $0.state == .pending }.map(\.set).sorted { $0.version < $1.version }
    }

    /// Checks the query version of a part of a bootstrap. The process of a client ends at an unknown or a refused one.
    func begin(_ version: UInt64) throws {
        guard let state = sets[version]?.state else { throw RealmTestFile.Fault("a bootstrap of the unknown query version \(version)") }
        guard state != .refused else { throw RealmTestFile.Fault("a bootstrap of query version \(version), which was refused") }
    }

    /// Records the view of a set. A set that was complete stays as it is, as after a change of permissions.
    mutating func complete(_ version: UInt64) {
        guard let entry = sets[version], entry.state == .pending else { return }
        sets = sets.filter { $0.key >= version }
        sets[version]?.state = .complete
        // A client knows version 0 as its active set, whether it had a view or not.
        if version >= active.version { active = entry.set }
    }

    /// Records a query error. The process of a client ends if the set is unknown or complete.
    mutating func refuse(_ version: UInt64) throws {
        guard let state = sets[version]?.state else { throw RealmTestFile.Fault("a query error of the unknown version \(version)") }
        guard state != .complete else { throw RealmTestFile.Fault("a query error of the complete version \(version)") }
        sets[version]?.state = .refused
    }
}
