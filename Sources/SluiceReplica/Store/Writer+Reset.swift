import SluiceCore

/// A new server side for a file that the gateway does not know.
extension Writer {
    /// - Parameter reset: what becomes of pending writes when the next bootstrap ends; nil outside of a client reset.
    func forgetServer(reset: ReplicaReset?) throws(SluiceError) {
        // What the old server had taken is shown until the new one's state is there, and not sent again.
        if reset == nil { try dropAcknowledged(leaving: .untold) }
        meta.identity = nil
        meta.applied = AppliedPosition(lsn: .zero, version: 0)
        meta.held = []
        meta.checkpoint = []
        meta.compensation = 0
        meta.taken = 0
        // At once: they do not wait for the bootstrap.
        if reset == .disown { try connection.execute("DELETE FROM _sluice_ingest") }
        // A copy is nobody's until somebody opens it.
        if reset == nil || reset == .disown { meta.owner = owner ?? "" }
        try renumberChangesets()
        try renumberIngest()
        let latest = try connection.latestSubscriptionSet()
        if latest.version > 0 { try setSubscriptionState(version: latest.version, .pending) }
        news.local = true
        guard let reset else { return }
        meta.reset = reset.rawValue
        meta.resets += 1
        // Without a subscription there is no bootstrap to wait for.
        if latest.version == 0 { try finishReset(leaving: .known(.leftView)) }
    }

    private func dropAcknowledged(leaving: Leaving) throws(SluiceError) {
        try dropPending("p.acknowledged IS NOT NULL", leaving: leaving)
    }

    /// Pending changesets count from 1 again.
    private func renumberChangesets() throws(SluiceError) {
        try connection.execute(
            """
            UPDATE _sluice_subscription_set SET changesets = (
                SELECT count(*) FROM _sluice_pending p WHERE p.number <= changesets);
            UPDATE _sluice_pending_change SET number = -(
                SELECT count(*) FROM _sluice_pending p WHERE p.number <= _sluice_pending_change.number);
            UPDATE _sluice_pending_change SET number = -number;
            """)
        // Ascending, each new number is free: it is at most the old one and larger than those before.
        let numbers = try self.numbers("SELECT number FROM _sluice_pending ORDER BY number")
        for (index, number) in numbers.enumerated() {
            try connection.execute(
                "UPDATE _sluice_pending SET number = \(index + 1), base = 0 WHERE number = \(number)")
        }
        meta.changeset = UInt64(numbers.count)
    }

    /// Ingest batches count from 1 again.
    private func renumberIngest() throws(SluiceError) {
        let batches = try self.numbers("SELECT DISTINCT batch FROM _sluice_ingest WHERE batch IS NOT NULL ORDER BY batch")
        for (index, batch) in batches.enumerated() {
            try connection.execute("UPDATE _sluice_ingest SET batch = \(index + 1) WHERE batch = \(batch)")
        }
        meta.ingest = UInt64(batches.count)
    }

    /// Ends a client reset, if one is under way: the file shows what the gateway has, with or without the pending writes.
    ///
    /// Nothing has been uploaded under the new identity by then, so that numbers may begin at 1 again.
    /// - Parameter leaving: why objects go that there are no more.
    func finishReset(leaving: Leaving) throws(SluiceError) {
        if let reset = ReplicaReset(rawValue: meta.reset), reset != .recover {
            try dropPending("true", leaving: leaving)
            try connection.execute("UPDATE _sluice_subscription_set SET changesets = 0")
            meta.changeset = 0
        } else if meta.reset != 0 {
            try dropAcknowledged(leaving: leaving)
            try renumberChangesets()
            // What is recovered is written on top of what the gateway has now (RST-21), and so later and with knowledge of it; but it was
            // made before its objects were here, which a position before that of the bootstrap says.
            let base = max(meta.applied.lsn.rawValue, 1) - 1
            for number in try numbers("SELECT number FROM _sluice_pending ORDER BY number") {
                try connection.execute("UPDATE _sluice_pending SET base = \(base), time = \(tick().rawValue) WHERE number = \(number)")
            }
            try showPending(leaving: leaving)
        }
        meta.reset = 0
        meta.resets = 0
    }

    private func numbers(_ sql: String) throws(SluiceError) -> [Int64] {
        let statement = try connection.statement(sql)
        defer { statement.reset() }
        var numbers: [Int64] = []
        while try statement.step() { numbers.append(statement.int(0)) }
        return numbers
    }
}
