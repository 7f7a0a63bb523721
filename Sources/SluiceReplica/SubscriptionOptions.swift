package import SluiceCore

/// What a subscription has beside its query.
package struct SubscriptionOptions: Hashable, Sendable {
    package struct SortKey: Hashable, Sendable {
        package var property: String
        package var isDescending: Bool

        package init(property: String, isDescending: Bool) {
            self.property = property
            self.isDescending = isDescending
        }
    }

    /// Milliseconds from the last update until the subscription goes away by itself; nil: it stays.
    package var timeToLive: UInt64?
    /// The first so many objects in the order of `sort`; 0: all.
    package var limit: Int
    package var sort: [SortKey]
    /// Paths of links, with the names in the file, whose objects come along.
    package var includes: [String]

    package init(timeToLive: UInt64? = nil, limit: Int = 0, sort: [SortKey] = [], includes: [String] = []) {
        self.timeToLive = timeToLive
        self.limit = limit
        self.sort = sort
        self.includes = includes
    }

    /// Whether a path leads to objects of a class. A path that the classes do not have leads as far as they have it.
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

    /// What the store keeps; empty for nothing.
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

    /// Options that cannot be read are none.
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
