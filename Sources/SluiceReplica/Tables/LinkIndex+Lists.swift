import SluiceCore

/// Incremental index updates for lists and sets of links, so that an edit costs its changed elements instead of the list's length.
extension RowStore {
    /// Returns the elements of a list or set of links before its change, or `nil` if the row's links must be indexed as a whole.
    func linksToFollow(_ layout: TableLayout, key: Value, _ property: Int) throws(SluiceError) -> [Value]? {
        let kind = layout.type.properties[property]
        guard isWriter, links.coded[layout.index]?.contains(property) == true, case .link = kind.type,
            kind.collection == .list || kind.collection == .set, try !isDirty(layout, key: key)
        else { return nil }
        let column = SQLQuote.identifier(kind.name)
        let stored = try connection.statement("SELECT \(column) FROM \(layout.table) WHERE \(layout.keyColumn) = ?")
        layout.bindKey(key, at: 0, to: stored)
        defer { stored.reset() }
        guard try stored.step(), case .list(let elements) = layout.value(stored, 0, layout.kinds[property]) else { return nil }
        return elements
    }

    /// `true` if the links of a row must be indexed as a whole before the end of the transaction.
    private func isDirty(_ layout: TableLayout, key: Value) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM _sluice_link_dirty WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        return try statement.step()
    }

    /// Updates `_sluice_link` after the change of a list or set.
    func followLinks(
        _ layout: TableLayout, key: Value, _ property: Int, from before: [Value], to value: Value
    ) throws(SluiceError) {
        let kind = layout.type.properties[property]
        guard case .list(let after) = value, case .link(let name) = kind.type, let type = schema.index(of: name), layouts[type].hasTable
        else { return }
        for (target, amount) in RowStore.difference(before, after) where amount != 0 {
            if try !count(amount, from: layout, key: key, kind.name, to: layouts[type], target) { return }
        }
        // The trigger has recorded the row, whose links are indexed now.
        let forget = try connection.statement("DELETE FROM _sluice_link_dirty WHERE type = ? AND key = ?")
        forget.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: forget)
        try forget.run()
    }

    /// Returns the change in the number of each element. Compares only the part between the common prefix and suffix.
    private static func difference(_ before: [Value], _ after: [Value]) -> [Value: Int64] {
        let shorter = min(before.count, after.count)
        var head = 0
        while head < shorter, before[head] == after[head] { head += 1 }
        var tail = 0
        while tail < shorter - head, before[before.count - 1 - tail] == after[after.count - 1 - tail] { tail += 1 }
        var amounts: [Value: Int64] = [:]
        for element in before[head..<before.count - tail] where !element.isNull { amounts[element, default: 0] -= 1 }
        for element in after[head..<after.count - tail] where !element.isNull { amounts[element, default: 0] += 1 }
        return amounts
    }

    /// - Returns: `false` if the index lacks a link to remove. The row then stays recorded and is indexed as a whole.
    private func count(
        _ amount: Int64, from layout: TableLayout, key: Value, _ property: String, to target: TableLayout, _ targetKey: Value
    ) throws(SluiceError) -> Bool {
        func bind(_ statement: Statement, at first: Int) {
            statement.bind(first, layout.type.name)
            statement.bind(first + 1, property)
            target.bindKey(targetKey, at: first + 2, to: statement)
            layout.bindKey(key, at: first + 3, to: statement)
        }
        let update = try connection.statement(
            "UPDATE _sluice_link SET count = count + ? WHERE type = ? AND property = ? AND target = ? AND key = ?")
        update.bind(0, amount)
        bind(update, at: 1)
        try update.run()
        if connection.changes == 0 {
            if amount < 0 { return false }
            let insert = try connection.statement("INSERT INTO _sluice_link (type, property, target, key, count) VALUES (?, ?, ?, ?, ?)")
            bind(insert, at: 0)
            insert.bind(4, amount)
            try insert.run()
        } else if amount < 0 {
            let forget = try connection.statement(
                "DELETE FROM _sluice_link WHERE type = ? AND property = ? AND target = ? AND key = ? AND count <= 0")
            bind(forget, at: 0)
            try forget.run()
        }
        return true
    }
}
