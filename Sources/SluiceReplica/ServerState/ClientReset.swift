import SluiceCore

/// A new start with the server, for a replica that the gateway does not know.
extension Writer {
    /// - Parameter reset: the effect of the next bootstrap's end on pending writes. `nil` outside of a client reset.
    func forgetServer(reset: ReplicaReset?) throws(SluiceError) {
        // During a reset, acknowledged writes stay visible until the new state arrives. They are not sent again.
        if reset == nil { try dropAcknowledged(leaving: .untold) }
        meta.identity = nil
        meta.applied = AppliedPosition(lsn: .zero, version: 0)
        meta.held = []
        meta.checkpoint = []
        meta.compensation = 0
        meta.taken = 0
        // The ingest batches do not wait for the bootstrap, so they are deleted now.
        if reset == .disown { try connection.execute("DELETE FROM _sluice_ingest") }
        // A copy has no owner until it is opened.
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

    /// Renumbers the pending changesets from 1.
    private func renumberChangesets() throws(SluiceError) {
        // The counts refer to the old numbers, so `_sluice_pending` itself is renumbered last.
        try connection.execute(
            """
            UPDATE _sluice_subscription_set SET changesets = (
                SELECT count(*) FROM _sluice_pending p WHERE p.number <= changesets);
            UPDATE _sluice_pending_change SET number = -(
                SELECT count(*) FROM _sluice_pending p WHERE p.number <= _sluice_pending_change.number);
            UPDATE _sluice_pending_change SET number = -number;
            """)
        // In ascending order each new number is free: it is at most the old one and above those before.
        let numbers = try self.numbers("SELECT number FROM _sluice_pending ORDER BY number")
        for (index, number) in numbers.enumerated() {
            try connection.execute(
                "UPDATE _sluice_pending SET number = \(index + 1), base = 0 WHERE number = \(number)")
        }
        meta.changeset = UInt64(numbers.count)
    }

    /// Renumbers the ingest batches from 1.
    private func renumberIngest() throws(SluiceError) {
        let batches = try self.numbers("SELECT DISTINCT batch FROM _sluice_ingest WHERE batch IS NOT NULL ORDER BY batch")
        for (index, batch) in batches.enumerated() {
            try connection.execute("UPDATE _sluice_ingest SET batch = \(index + 1) WHERE batch = \(batch)")
        }
        meta.ingest = UInt64(batches.count)
    }

    /// Ends a client reset, if one is under way: the replica shows the gateway's state, with or without the pending writes.
    ///
    /// No changeset has been uploaded under the new identity yet, so numbers may begin at 1 again.
    /// - Parameter leaving: the reason for objects that no longer exist.
    func finishReset(leaving: Leaving) throws(SluiceError) {
        if let reset = ReplicaReset(rawValue: meta.reset), reset != .recover {
            try dropPending("true", leaving: leaving)
            try connection.execute("UPDATE _sluice_subscription_set SET changesets = 0")
            meta.changeset = 0
        } else if meta.reset != 0 {
            try dropAcknowledged(leaving: leaving)
            try renumberChangesets()
            // Recovered writes apply on top of the gateway's state: new times make them later. Their base is before the bootstrap, since
            // they were made without knowledge of its objects.
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
