package import SluiceCore

/// A value that SQL wrote into a property. Nobody knows when: at the latest when the row was last committed.
package struct SQLWrite: Hashable, Sendable {
    /// The latest time that it can have been.
    package var stamp: WriteStamp
    package var hash: ValueHash

    package init(stamp: WriteStamp, hash: ValueHash) {
        self.stamp = stamp
        self.hash = hash
    }
}

/// A writer who had seen the value that SQL wrote wrote later than that, whatever else SQL has done to the row since; any other
/// writer must be later than the latest time that it can have been (CR-5, CR-9, CR-16). So of all writers that may replace it the
/// latest does, whichever arrives first.
extension PropertyClock {
    /// What `meet` has changed.
    struct Met {
        fileprivate let (stamp, shownStamp): (WriteStamp, WriteStamp)
        fileprivate let (reset, shownReset): (Deletion?, Deletion?)
        fileprivate let sql: SQLWrite
    }

    /// Turns the clock into what a writer is to be compared with; `part` ends it.
    /// - Parameter seen: the hash of the value that the writer had from the server, if any.
    mutating func meet(_ seen: ValueHash?) -> Met? {
        guard let sql else { return nil }
        let (stamp, reset) = (self.stamp, self.reset)
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
        if stamp == met.shownStamp {
            stamp = met.stamp
            if reset == met.shownReset { reset = met.reset }
        }
        sql = stamp > met.sql.stamp ? nil : met.sql
    }
}
