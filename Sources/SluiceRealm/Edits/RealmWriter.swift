/// The time and file of a write. Of two concurrent writes, the one with the later stamp wins.
package struct RealmStamp: Hashable, Comparable, Sendable {
    /// Milliseconds since 2015-01-01, by the clock of the writer.
    package var time: UInt64
    /// The file that wrote; 1 for the server.
    package var file: UInt64

    package init(_ time: UInt64, _ file: UInt64) { (self.time, self.file) = (time, file) }

    package static func < (lhs: Self, rhs: Self) -> Bool { (lhs.time, lhs.file) < (rhs.time, rhs.file) }
}

/// The writer of a changeset, and the state that it had seen.
package struct RealmWriter: Hashable, Sendable {
    package var stamp: RealmStamp
    /// The last server version that the writer had integrated.
    package var base: UInt64
    /// The server version of the changeset.
    package var version: UInt64

    package init(stamp: RealmStamp, base: UInt64, version: UInt64) {
        (self.stamp, self.base, self.version) = (stamp, base, version)
    }

    package var file: UInt64 { stamp.file }
}
