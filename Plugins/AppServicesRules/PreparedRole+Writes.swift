import SluicePluginKit

// What a role says about single writes, with the document before and after at hand. Whether the write filter holds and which fields
// may be written at all is the gateway's to check: it has them from the session.

extension PreparedRole {
    /// Whether single writes have to be shown to the plugin.
    var checksWrites: Bool { !immutable.isEmpty || !role.checks.isEmpty }

    /// What the role says to the session's write.
    func verdict(in session: SessionContext) -> WriteVerdict {
        guard let write = session.write, incompatibilities.isEmpty else {
            return .deny(reason: "Role \(role.name) may not write \(session.write?.type ?? ""); the write was undone.", rule: denied.role)
        }
        if let field = changedImmutable(write) {
            return .deny(
                reason: "Field \(field) of \(write.type) cannot be changed any more; the write was undone.",
                rule: "role \(role.name), fields.\(field).immutable")
        }
        let unmet = role.checks.filter { !$0.expression.isTrue(in: session) }
        guard unmet.isEmpty else {
            return .deny(
                reason: "Role \(role.name) may not \(Self.verb(write)) \(write.type) in this way; the write was undone.",
                rule: "role \(role.name), check_write, not met: \(unmet.map(\.text).joined(separator: ", "))")
        }
        return .allow
    }

    /// The first by name of those that differ.
    private func changedImmutable(_ write: PluginWrite) -> String? {
        guard let before = write.before, let after = write.after else { return nil }
        return immutable.filter { Self.differ(before[$0] ?? .null, after[$0] ?? .null) }.min()
    }

    /// As text first, since NaN equals nothing; then by meaning, since the members of an object have no order.
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
