import SluiceCore
package import SluiceValues

/// The options of a subscription beside its query.
package struct SubscriptionOptions: Hashable, Sendable {
    package struct SortKey: Hashable, Sendable {
        /// A property, or a path to one through single links, with the names in the file.
        package var path: String
        package var isDescending: Bool

        package init(path: String, isDescending: Bool) {
            self.path = path
            self.isDescending = isDescending
        }
    }

    /// One object for each combination of values of the paths: the first in the order of `sort`.
    package struct Distinct: Hashable, Sendable {
        package var paths: [String]
        package var sort: [SortKey]

        package init(paths: [String], sort: [SortKey]) {
            self.paths = paths
            self.sort = sort
        }
    }

    /// The time from the last update to the subscription's expiry, in milliseconds. `nil` never expires.
    package var timeToLive: UInt64?
    /// The maximum number of objects, in the order of `sort`. 0: no limit.
    package var limit: Int
    package var sort: [SortKey]
    /// The DISTINCTs, applied in sequence before `limit` counts. Requires a limit.
    package var distinct: [Distinct]
    /// Paths of links whose objects are included, with the names in the file.
    package var includes: [String]

    package init(
        timeToLive: UInt64? = nil, limit: Int = 0, sort: [SortKey] = [], distinct: [Distinct] = [], includes: [String] = []
    ) {
        self.timeToLive = timeToLive
        self.limit = limit
        self.sort = sort
        self.distinct = distinct
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
        if !sort.isEmpty { fields["sort"] = Self.stored(sort) }
        if !distinct.isEmpty {
            fields["distinct"] = .list(distinct.map { .list([.list($0.paths.map { .string($0) }), Self.stored($0.sort)]) })
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
        sort = Self.sort(fields["sort"])
        if case .list(let parts)? = fields["distinct"] {
            distinct = parts.compactMap { part in
                guard case .list(let both) = part, both.count == 2 else { return nil }
                return Distinct(paths: Self.paths(both[0]), sort: Self.sort(both[1]))
            }
        }
        includes = Self.paths(fields["include"])
    }

    private static func stored(_ sort: [SortKey]) -> Value { .list(sort.flatMap { [.string($0.path), .bool($0.isDescending)] }) }

    private static func sort(_ stored: Value?) -> [SortKey] {
        guard case .list(let parts)? = stored else { return [] }
        return zip(parts, parts.dropFirst()).compactMap { name, direction in
            guard case .string(let path) = name, case .bool(let isDescending) = direction else { return nil }
            return SortKey(path: path, isDescending: isDescending)
        }
    }

    private static func paths(_ stored: Value?) -> [String] {
        guard case .list(let paths)? = stored else { return [] }
        return paths.compactMap { if case .string(let path) = $0 { path } else { nil } }
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
