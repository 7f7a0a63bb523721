package import SluiceCore

/// The row numbers that begin blocks of 512 rows of a class, in table order, as one connection sees them. Found once.
///
/// A block is found without reading the keys before it. The first search for a far index steps over the uncounted rows, about 20 ns each.
/// Later searches read one block.
struct RowBlocks {
    /// The number of rows of every block except the last.
    static let size = 512

    /// The version of the state that the blocks describe.
    var version: UInt64
    /// The number of the first row of each known block, ascending.
    var starts: [Int64] = []
    /// `true` if no block follows.
    var isComplete = false

    init(version: UInt64) { self.version = version }

    /// Drops the blocks that a change of the row with this number may have moved.
    mutating func forget(from number: Int64) {
        var (low, high) = (0, starts.count)
        while low < high {
            let middle = (low + high) / 2
            if starts[middle] <= number { low = middle + 1 } else { high = middle }
        }
        // The row's own block stays valid even if its first row is gone: searches use `>=`.
        starts.removeSubrange(low...)
        isComplete = false
    }
}

/// Consecutive keys of a result.
package struct KeyBlock: Sendable {
    /// The index of the first key in the result.
    package var first: Int
    package var keys: [Value]

    /// The key at an index of the result, or `nil` if the block does not contain it.
    package subscript(_ index: Int) -> Value? { keys.indices.contains(index - first) ? keys[index - first] : nil }
}

extension RowStore {
    /// Returns the block that contains an index among all objects of a class, in table order. Empty behind the last object.
    package func block(type: Int, at index: Int) throws(SluiceError) -> KeyBlock {
        let layout = layouts[type]
        let place = index / RowBlocks.size
        var block = KeyBlock(first: place * RowBlocks.size, keys: [])
        guard layout.hasTable, index >= 0 else { return block }
        var blocks = try blocks(layout)
        while blocks.starts.count <= place, !blocks.isComplete { try extend(&blocks, layout) }
        self.blocks[type] = blocks
        guard place < blocks.starts.count else { return block }
        let statement = try connection.statement(
            "SELECT \(layout.keyColumn) FROM \(layout.table) WHERE \(layout.rowid) >= ? ORDER BY \(layout.rowid) LIMIT \(RowBlocks.size)")
        statement.bind(0, blocks.starts[place])
        defer { statement.reset() }
        while try statement.step() { block.keys.append(layout.readKey(statement)) }
        return block
    }

    /// Returns the last key of a class in table order, or `nil` if there is none.
    package func lastKey(type: Int) throws(SluiceError) -> Value? {
        let layout = layouts[type]
        guard layout.hasTable else { return nil }
        let statement = try connection.statement(
            "SELECT \(layout.keyColumn) FROM \(layout.table) ORDER BY \(layout.rowid) DESC LIMIT 1")
        defer { statement.reset() }
        return try statement.step() ? layout.readKey(statement) : nil
    }

    private func extend(_ blocks: inout RowBlocks, _ layout: TableLayout) throws(SluiceError) {
        let statement: Statement
        // The row behind the last known block begins the next one.
        if let last = blocks.starts.last {
            statement = try connection.statement(
                """
                SELECT \(layout.rowid) FROM \(layout.table) WHERE \(layout.rowid) >= ? ORDER BY \(layout.rowid)
                LIMIT 1 OFFSET \(RowBlocks.size)
                """)
            statement.bind(0, last)
        } else {
            statement = try connection.statement("SELECT \(layout.rowid) FROM \(layout.table) ORDER BY \(layout.rowid) LIMIT 1")
        }
        defer { statement.reset() }
        if try statement.step() { blocks.starts.append(statement.int(0)) } else { blocks.isComplete = true }
    }

    // MARK: Updates

    /// Returns the known blocks of a class, updated to the state that is seen.
    private func blocks(_ layout: TableLayout) throws(SluiceError) -> RowBlocks {
        let version = try version()
        guard var known = blocks[layout.index] else { return RowBlocks(version: version) }
        if known.version == version { return known }
        guard known.version < version, try follow(&known, to: version, layout) else { return RowBlocks(version: version) }
        known.version = version
        return known
    }

    /// Applies the changes of later commits.
    /// - Returns: `false` if the commit history does not list them.
    private func follow(_ blocks: inout RowBlocks, to version: UInt64, _ layout: TableLayout) throws(SluiceError) -> Bool {
        guard version - blocks.version <= CommitHistory.kept else { return false }
        let statement = try connection.statement(
            "SELECT version, changes FROM _sluice_commit WHERE version > ? AND version <= ? ORDER BY version")
        statement.bind(0, blocks.version)
        statement.bind(1, version)
        defer { statement.reset() }
        var reached = blocks.version
        while try statement.step() {
            // A gap in the versions means that history was pruned: the missing commits may have moved any block.
            guard statement.unsigned(0) == reached + 1,
                let types = CommitHistory.decode(statement.bytes(1), { $0 == layout.type.name ? layout.index : nil })
            else { return false }
            reached += 1
            guard let change = types[layout.index] else { continue }
            guard !change.isWhole, layout.keyIsRowid else { return false }
            for case .int(let number) in change.keys { blocks.forget(from: number) }
        }
        return reached == version
    }

    /// Updates the blocks after a change in the open transaction: the row may be new, or was deleted.
    func rowsChanged(_ layout: TableLayout, key: Value, isNew: Bool) {
        guard var known = blocks.removeValue(forKey: layout.index) else { return }
        if layout.keyIsRowid, case .int(let number) = key {
            known.forget(from: number)
        } else if isNew {
            // SQLite assigns ascending row numbers, so a new row only extends the table.
            known.isComplete = false
        } else {
            return
        }
        blocks[layout.index] = known
    }
}
