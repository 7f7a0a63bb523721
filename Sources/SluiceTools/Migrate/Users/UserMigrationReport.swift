package import SluiceValues

/// The result of `sluice migrate users`. It has no secrets and no addresses.
package struct UserMigrationReport: Sendable {
    /// The users with one reason, with the ids of the first ones.
    struct Group: Sendable {
        var count = 0
        var ids: [String] = []
    }

    /// The number of ids that a group keeps.
    private static let keptIDs = 100
    /// The number of ids in the text.
    private static let shownIDs = 3

    var credentials = ""
    var customTable: String?
    var read = 0
    package var created = 0
    var existing = 0
    var disabled = 0
    /// The pending users: those of this run, and those who were pending or had an account.
    var pending = 0
    var pendingExisting = 0
    /// The users who must set a password: those with a line of this run, and those with an earlier one.
    var listed = 0
    var awaited = 0
    var keys = 0
    var customRows = 0
    /// The accounts by their providers. A user may have several.
    var providers: [String: Int] = [:]
    /// The accounts without an enabled provider, by their first provider.
    var stranded: [String: Int] = [:]
    /// The users without an account, by reason.
    var leftOut: [String: Group] = [:]
    /// The users whose custom data or keys are missing, by reason.
    var incomplete: [String: Group] = [:]

    /// `true` if every user has an account with all its parts.
    package var isWhole: Bool { leftOut.isEmpty && incomplete.isEmpty }

    mutating func leaveOut(_ id: String, _ reason: String) { Self.add(id, reason, to: &leftOut) }
    mutating func miss(_ id: String, _ reason: String) { Self.add(id, reason, to: &incomplete) }

    private static func add(_ id: String, _ reason: String, to groups: inout [String: Group]) {
        groups[reason, default: Group()].count += 1
        if let group = groups[reason], group.ids.count < keptIDs { groups[reason]?.ids.append(id) }
    }

    // MARK: Text

    /// The report for a terminal.
    package var text: String {
        let out = leftOut.values.reduce(0) { $0 + $1.count }
        var lines = ["\(read) users: \(created) accounts made, \(existing) there already, \(out) left out"]
        lines += leftOut.sorted { $0.key < $1.key }.map { Self.line("left out", $0.key, $0.value) }
        lines += incomplete.sorted { $0.key < $1.key }.map { Self.line("incomplete", $0.key, $0.value) }
        if !providers.isEmpty {
            lines.append("  by provider: " + providers.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
        }
        if let customTable { lines.append("  custom user data: \(customRows) rows made in \(customTable)") }
        if listed + awaited > 0 {
            lines.append("  must set a password: \(listed) with a new link in \(credentials), \(awaited) with an earlier one")
        }
        if keys > 0 { lines.append("  API keys made anew: \(keys), in \(credentials)") }
        if disabled > 0 { lines.append("  disabled, as before: \(disabled)") }
        if pending + pendingExisting > 0 {
            lines.append(
                "  pending: \(pending), who confirm their address and then set a password, or register again; \(pendingExisting) there already"
            )
        }
        for (provider, count) in stranded.sorted(by: { $0.key < $1.key }) {
            lines.append("  cannot log in: \(count) with \(provider) only, which \(Self.reason(provider))")
        }
        return lines.map(TerminalText.shown).joined(separator: "\n")
    }

    private static func line(_ kind: String, _ reason: String, _ group: Group) -> String {
        let ids = group.ids.filter { !$0.isEmpty }
        let more = group.count > shownIDs && ids.count > shownIDs ? ", …" : ""
        return "  \(kind): \(group.count), \(reason)" + (ids.isEmpty ? "" : " (\(ids.prefix(shownIDs).joined(separator: ", "))\(more))")
    }

    private static func reason(_ provider: String) -> String {
        provider == "anon-user"
            ? "has no credentials: their devices become new users" : "auth/providers.json does not enable; their identities are kept"
    }

    // MARK: JSON

    package var json: JSON {
        [
            "users": .int(Int64(read)), "created": .int(Int64(created)), "existing": .int(Int64(existing)),
            "disabled": .int(Int64(disabled)), "pending": .int(Int64(pending)),
            "pendingExisting": .int(Int64(pendingExisting)), "listed": .int(Int64(listed)),
            "awaited": .int(Int64(awaited)), "keys": .int(Int64(keys)), "customDataRows": .int(Int64(customRows)),
            "credentials": .string(credentials), "providers": Self.json(providers), "cannotLogIn": Self.json(stranded),
            "leftOut": Self.json(leftOut), "incomplete": Self.json(incomplete),
        ]
    }

    private static func json(_ counts: [String: Int]) -> JSON {
        .object(counts.sorted { $0.key < $1.key }.map { .init($0.key, .int(Int64($0.value))) })
    }

    private static func json(_ groups: [String: Group]) -> JSON {
        .array(
            groups.sorted { $0.key < $1.key }.map { reason, group in
                ["reason": .string(reason), "count": .int(Int64(group.count)), "users": .array(group.ids.map { .string($0) })]
            })
    }
}
