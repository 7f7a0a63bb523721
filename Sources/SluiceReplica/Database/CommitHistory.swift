import SluiceCore

/// The commit history: the objects that the latest commits changed, for processes that share a file, and the version of its state.
enum CommitHistory {
    static let table = "CREATE TABLE IF NOT EXISTS _sluice_commit (version INTEGER PRIMARY KEY, changes BLOB);"
    /// The number of kept commits. A process that is further behind assumes that every row has changed.
    static let kept: UInt64 = 1_000
    /// The maximum number of keys recorded per class. Beyond it, the whole class counts as changed.
    static let keyLimit = 1_000

    /// Encodes the changes by class name: the keys, or null for the whole class.
    static func encode(_ types: [Int: TypeChange], _ layouts: [TableLayout]) -> [UInt8] {
        var changes: [String: Value] = [:]
        for (type, change) in types {
            let isWhole = change.isWhole || change.keys.count > keyLimit
            changes[layouts[type].type.name] = isWhole ? .null : .list(Array(change.keys))
        }
        return StoredValue.encode(.dictionary(changes))
    }

    /// Decodes the changes. Omits classes that this process does not have. Returns `nil` if the bytes are malformed.
    static func decode(_ bytes: UnsafeRawBufferPointer, _ index: (String) -> Int?) -> [Int: TypeChange]? {
        guard case .dictionary(let changes)? = StoredValue.decode(bytes) else { return nil }
        var types: [Int: TypeChange] = [:]
        for (name, keys) in changes {
            guard let type = index(name) else { continue }
            if case .list(let keys) = keys { types[type] = TypeChange(keys: Set(keys)) } else { types[type] = TypeChange(isWhole: true) }
        }
        return types
    }
}

extension Connection {
    /// Returns the version of the state that the connection sees.
    func version() throws(SluiceError) -> UInt64 {
        let statement = try statement("SELECT max(version) FROM _sluice_commit")
        defer { statement.reset() }
        return try statement.step() ? statement.unsigned(0) : 0
    }

    func number(_ pragma: String) throws(SluiceError) -> Int64 {
        let statement = try statement("PRAGMA \(pragma)")
        defer { statement.reset() }
        return try statement.step() ? statement.int(0) : 0
    }
}
