import SluicePluginKit

// A role's verdicts on single writes, with the document before and after. The gateway itself checks the write filter and the writable
// fields, which it has from the session.

extension PreparedRole {
    /// `true` if the plugin must check single writes.
    var checksWrites: Bool {
        !immutable.isEmpty || !role.checks.isEmpty || !masks.guarded.isEmpty || !role.insert.fields.isEmpty || !role.delete.fields.isEmpty
    }

    /// Returns the role's verdict on the session's write.
    func verdict(in session: SessionContext) -> WriteVerdict {
        guard let write = session.write, isUsable(in: session) else {
            return .deny(reason: "Not allowed to write \(session.write?.type ?? ""); the write was undone.", rule: denied.role)
        }
        if let clause = unmetPermission(write, session) {
            return deny("\(Self.verb(write)) this \(write.type)", clause)
        }
        if let field = changedImmutable(write) {
            return .deny(
                reason: "Field \(field) of \(write.type) cannot be changed any more; the write was undone.",
                rule: "role \(role.name), fields.\(field).immutable", fields: [field])
        }
        if let path = changedGuarded(write) {
            let field = path.joined(separator: ".")
            return deny("write field \(field) of \(write.type)", "writable fields without \(field)", fields: [path[0]])
        }
        let unmet = role.checks.filter { !$0.expression.isTrue(in: session) }
        guard unmet.isEmpty else {
            let clauses = unmet.map(\.text).joined(separator: ", ")
            return deny("\(Self.verb(write)) \(write.type) in this way", "check_write, not met: \(clauses)")
        }
        return .allow
    }

    private func deny(_ what: String, _ clause: String, fields: [String] = []) -> WriteVerdict {
        .deny(reason: "Not allowed to \(what); the write was undone.", rule: "role \(role.name), \(clause)", fields: fields)
    }

    /// Returns `insert` or `delete` if it applies to the write and does not hold for the document.
    private func unmetPermission(_ write: PluginWrite, _ session: SessionContext) -> String? {
        var session = session
        switch (write.before, write.after) {
        case (nil, let made?):
            session.document = RuleDocument(value: made, type: type)
            return role.insert.isTrue(in: session) ? nil : "insert"
        case (let gone?, nil):
            session.document = RuleDocument(value: gone, type: type)
            return role.delete.isTrue(in: session) ? nil : "delete"
        default: return nil
        }
    }

    /// Returns the first path to a changed part of an embedded object that must not be written.
    private func changedGuarded(_ write: PluginWrite) -> [String]? {
        guard let after = write.after else { return nil }
        return masks.guarded.first { path in
            func value(_ document: PluginRow?) -> PluginValue {
                path.dropFirst().reduce(document?[path[0]] ?? .null) { $0[$1] ?? .null }
            }
            if let before = write.before, after.hasSame(path[0], as: before) { return false }
            return Self.differ(value(write.before), value(after))
        }
    }

    /// Returns the first changed immutable field by name.
    private func changedImmutable(_ write: PluginWrite) -> String? {
        guard let before = write.before, let after = write.after else { return nil }
        return immutable.filter { !after.hasSame($0, as: before) && Self.differ(before[$0] ?? .null, after[$0] ?? .null) }.min()
    }

    /// Compares as JSON first, in which NaN equals NaN. Then compares by value, in which the members of an object have no order.
    private static func differ(_ before: PluginValue, _ after: PluginValue) -> Bool {
        before != after && RuleValue(before) != RuleValue(after)
    }

    private static func verb(_ write: PluginWrite) -> String {
        switch (write.before, write.after) {
        case (nil, _): "create"
        case (_, nil): "delete"
        default: "change"
        }
    }
}
