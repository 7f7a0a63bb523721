package import SluiceCore

/// The options of a subscription beside its query.
package struct SubscriptionOptions: Hashable, Sendable {
    package struct SortKey: Hashable, Sendable {
        package var property: String
        package var isDescending: Bool

        package init(property: String, isDescending: Bool) {
            self.property = property
            self.isDescending = isDescending
        }
    }

    /// The time from the last update to the subscription's expiry, in milliseconds. `nil` never expires.
    package var timeToLive: UInt64?
    /// The maximum number of objects, in the order of `sort`. 0: no limit.
    package var limit: Int
    package var sort: [SortKey]
    /// Paths of links whose objects are included, with the names in the file.
    package var includes: [String]

    package init(timeToLive: UInt64? = nil, limit: Int = 0, sort: [SortKey] = [], includes: [String] = []) {
        self.timeToLive = timeToLive
        self.limit = limit
        self.sort = sort
        self.includes = includes
    }

    /// `true` if an included path reaches objects of a class. A path is followed as far as the schema has it.
    func reaches(_ target: String, from type: String, _ schema: Schema) -> Bool {
        includes.contains { path in
            var names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)[...]
            var current = type
            while let name = names.popFirst() {
                if name == "@links" {
                    guard let origin = names.popFirst(), names.popFirst() != nil else { return false }
                    current = origin
                } else {
                    guard case .link(let next)? = schema[current]?[name]?.type else { return false }
                    current = next
                }
                if current == target { return true }
            }
            return false
        }
    }

    /// The stored encoding. Empty without options.
    var stored: [UInt8] {
        var fields: [String: Value] = [:]
        if let timeToLive { fields["ttl"] = .int(Int64(clamping: timeToLive)) }
        if limit > 0 { fields["limit"] = .int(Int64(limit)) }
        if !sort.isEmpty {
            fields["sort"] = .list(sort.flatMap { [.string($0.property), .bool($0.isDescending)] })
        }
        if !includes.isEmpty { fields["include"] = .list(includes.map { .string($0) }) }
        return fields.isEmpty ? [] : StoredValue.encode(.dictionary(fields))
    }

    /// Decodes stored options. Unreadable bytes give no options.
    init(stored bytes: UnsafeRawBufferPointer) {
        self.init()
        guard !bytes.isEmpty, case .dictionary(let fields)? = StoredValue.decode(bytes) else { return }
        if case .int(let milliseconds)? = fields["ttl"] { timeToLive = UInt64(clamping: milliseconds) }
        if case .int(let count)? = fields["limit"] { limit = Int(clamping: count) }
        if case .list(let parts)? = fields["sort"] {
            for (name, direction) in zip(parts, parts.dropFirst()) {
                if case .string(let property) = name, case .bool(let isDescending) = direction {
                    sort.append(SortKey(property: property, isDescending: isDescending))
                }
            }
        }
        if case .list(let paths)? = fields["include"] {
            includes = paths.compactMap { if case .string(let path) = $0 { path } else { nil } }
        }
    }
}

extension StoredSubscription {
    /// The expiry by this device's clock, or `nil` if it never expires.
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
