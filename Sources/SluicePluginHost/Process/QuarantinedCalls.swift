/// The quarantined calls: those that ended a host. The same call cannot do so repeatedly.
struct QuarantinedCalls {
    private struct Entry {
        var strikes: Int
        var until: UInt64
    }

    private var entries: [Int: Entry] = [:]

    /// Records that a call ended a host.
    mutating func strike(_ call: HostedCalls.Call, now: UInt64) {
        entries = entries.filter { $0.value.until > now }
        // A full list evicts the entry that expires first.
        if entries.count >= PluginLimits.poisonCalls, let oldest = entries.min(by: { $0.value.until < $1.value.until }) {
            entries[oldest.key] = nil
        }
        let strikes = entries[fingerprint(call)]?.strikes ?? 0
        entries[fingerprint(call)] = Entry(strikes: strikes + 1, until: now &+ PluginLimits.poisonNanoseconds)
    }

    /// Returns `true` if the call is quarantined.
    func refuses(_ call: HostedCalls.Call, now: UInt64) -> Bool {
        guard !entries.isEmpty, let entry = entries[fingerprint(call)] else { return false }
        return entry.strikes >= PluginLimits.poisonStrikes && entry.until > now
    }

    private func fingerprint(_ call: HostedCalls.Call) -> Int {
        var hasher = Hasher()
        hasher.combine(call.hook)
        hasher.combine(call.identity ?? call.input)
        return hasher.finalize()
    }
}
