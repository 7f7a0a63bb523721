package import SluiceCore

/// A value that SQL wrote into a property. Its time is unknown, but not later than the row's last commit.
package struct SQLWrite: Hashable, Sendable {
    /// The latest possible time of the write.
    package var stamp: WriteStamp
    package var hash: ValueHash

    package init(stamp: WriteStamp, hash: ValueHash) {
        self.stamp = stamp
        self.hash = hash
    }
}

/// The comparison of writers with SQL. A writer that had seen SQL's value is later, even if SQL has written to the row since. Any other
/// writer must be later than the latest possible time of SQL's write (CR-5, CR-9, CR-16). So the latest permitted writer wins, in any order
/// of arrival.
extension PropertyClock {
    /// The changes that `meet` made.
    struct Met {
        fileprivate let (stamp, shownStamp): (WriteStamp, WriteStamp)
        fileprivate let (reset, shownReset): (Deletion?, Deletion?)
        fileprivate let sql: SQLWrite
    }

    /// Adjusts the clock for the comparison with a writer. `part` restores the stored stamps, unless the writer has replaced them.
    /// - Parameter seen: The hash of the server's value that the writer had, if any.
    mutating func meet(_ seen: ValueHash?) -> Met? {
        guard let sql else { return nil }
        let (stamp, reset) = (self.stamp, self.reset)
        // A writer that had seen SQL's value is later. Any other must be later than the row's last commit.
        if seen == sql.hash {
            if stamp == sql.stamp { self.stamp = .zero }
            if reset?.stamp == sql.stamp { self.reset = nil }
        } else {
            self.stamp = max(stamp, sql.stamp)
            if let reset, reset.stamp < sql.stamp {
                self.reset?.stamp = WriteStamp(time: sql.stamp.time, client: reset.stamp.client)
            }
        }
        return Met(stamp: stamp, shownStamp: self.stamp, reset: reset, shownReset: self.reset, sql: sql)
    }

    mutating func part(_ met: Met?) {
        guard let met else { return }
        // The writer has not replaced the stamp, so the stored one is restored.
        if stamp == met.shownStamp {
            stamp = met.stamp
            if reset == met.shownReset { reset = met.reset }
        }
        // A later set replaces SQL's value.
        sql = stamp > met.sql.stamp ? nil : met.sql
    }
}
