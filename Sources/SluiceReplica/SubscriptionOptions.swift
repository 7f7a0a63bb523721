package import SluiceCore

/// What a subscription has beside its query.
package struct SubscriptionOptions: Hashable, Sendable {
    /// Milliseconds from the last update until the subscription goes away by itself; nil: it stays.
    package var timeToLive: UInt64?

    package init(timeToLive: UInt64? = nil) { self.timeToLive = timeToLive }

    /// What the store keeps; empty for nothing.
    var stored: [UInt8] {
        var fields: [String: Value] = [:]
        if let timeToLive { fields["ttl"] = .int(Int64(clamping: timeToLive)) }
        return fields.isEmpty ? [] : StoredValue.encode(.dictionary(fields))
    }

    /// Options that cannot be read are none.
    init(stored bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty, case .dictionary(let fields)? = StoredValue.decode(bytes) else { return }
        if case .int(let milliseconds)? = fields["ttl"] { timeToLive = UInt64(clamping: milliseconds) }
    }
}

extension StoredSubscription {
    /// When it goes away by itself, by this device's clock; nil: never.
    package var expires: Timestamp? {
        guard let timeToLive = options.timeToLive else { return nil }
        let (seconds, isTooLate) = updated.seconds.addingReportingOverflow(Int64(clamping: timeToLive / 1_000))
        if isTooLate { return nil }
        let nanoseconds = Int64(updated.nanoseconds) + Int64(timeToLive % 1_000) * 1_000_000
        return Timestamp(
            seconds: seconds.addingReportingOverflow(nanoseconds / 1_000_000_000).partialValue,
            nanoseconds: Int32(nanoseconds % 1_000_000_000))
    }
}
