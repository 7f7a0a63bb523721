import SluiceCore
package import SluiceValues

/// The operator's request that causes a change.
package struct AuditAuthor: Hashable, Sendable {
    /// The operator's identity: `token ops`, `unix socket` or `loopback`; `database role NAME` for a command with access to the database.
    package var actor: String
    /// The client's address; empty on a Unix socket and for a command.
    package var address: String
    /// The method and path, such as `PUT /admin/v1/users/65a0…/disable`, or the command.
    package var action: String

    package init(actor: String, address: String, action: String) {
        self.actor = actor
        self.address = address
        self.action = action
    }

    /// The author of the changes that the current task makes; nil for changes by users and by the gateway.
    @TaskLocal package static var current: AuditAuthor?
}

/// An entry of the audit log.
package struct AuditEntry: Hashable, Sendable {
    package var id: Int64
    /// The time of the change, in UTC.
    package var at: String
    package var author: AuditAuthor
    package var subject: String
    /// The state before the change; null if there was none or it is unknown.
    package var before: JSON
    package var after: JSON
}

/// The audit log of operators' changes (`sluice.admin_audit`).
package struct AuditLog: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Returns entries, newest first.
    ///
    /// - Parameter id: Only entries with a smaller id are returned.
    package func list(before id: Int64 = .max, limit: Int) async throws -> [AuditEntry] {
        try await pool.perform { session in
            let result = try session.query(
                """
                SELECT id, \(StoreText.time("at")), actor, address, action, subject, before, after FROM sluice.admin_audit
                WHERE id < $1 ORDER BY id DESC LIMIT $2
                """, [.int(id), .int(limit)])
            return try (0..<result.count).map { row in
                AuditEntry(
                    id: result.int(row, 0) ?? 0, at: result[row, 1] ?? "",
                    author: AuditAuthor(actor: result[row, 2] ?? "", address: result[row, 3] ?? "", action: result[row, 4] ?? ""),
                    subject: result[row, 5] ?? "", before: try result.json(row, 6), after: try result.json(row, 7))
            }
        }
    }

    /// Runs a change of many rows that cannot be one transaction.
    ///
    /// The entry is committed before the change and completed afterwards. If the change throws, `after` stays null.
    /// - Parameter outcome: Converts the result into the JSON stored as `after`.
    package func noting<R: Sendable>(
        _ subject: String, outcome: (R) -> JSON, _ body: () async throws -> R
    ) async throws -> R {
        guard let author = AuditAuthor.current else { return try await body() }
        // Committed first, so that a crash during the change leaves a trace.
        let id = try await pool.perform { session in
            try Self.insert(author, subject, before: nil, after: nil, session)
        }
        let result = try await body()
        let after = Self.bounded(StoreText.printable(outcome(result)).text)
        try await pool.perform { session in
            _ = try session.execute("UPDATE sluice.admin_audit SET after = $2 WHERE id = $1", [.int(id), .text(after)])
        }
        return result
    }

    /// Deletes the oldest entries beyond `count`.
    ///
    /// - Returns: The number of deleted entries, at most `RejectionPruning.batch`.
    package func prune(keeping count: Int64) async throws -> Int {
        try await RejectionPruning.delete(from: "sluice.admin_audit", where: "true", keeping: count, pool)
    }

    @discardableResult
    static func insert(
        _ author: AuditAuthor, _ subject: String, before: String?, after: String?, _ session: PostgresSession
    ) throws -> Int64 {
        let texts = [author.actor, author.address, author.action, subject].map { PostgresParameter.text(StoreText.printable($0)) }
        let result = try session.query(
            """
            INSERT INTO sluice.admin_audit (actor, address, action, subject, before, after)
            VALUES ($1, $2, $3, $4, $5, $6) RETURNING id
            """, texts + [.optional(before.map(bounded)), .optional(after.map(bounded))])
        return result.int(0, 0) ?? 0
    }

    /// Returns the text, or only its size as JSON if it exceeds `Limits.auditValueBytes`.
    private static func bounded(_ text: String) -> String {
        let count = text.utf8.count
        return count <= Limits.auditValueBytes ? text : JSON.object([.init("bytes", .int(Int64(count)))]).text
    }
}

/// The object of a change, as the audit log shows it before and after.
enum AuditSubject: Sendable {
    case user(String)
    case pendingUser(String)
    case apiKey(String)
    /// All logins of a user.
    case logins(String)

    var text: String {
        switch self {
        case .user(let id): "user \(id)"
        case .pendingUser(let id): "pending user \(id)"
        case .apiKey(let id): "API key \(id)"
        case .logins(let user): "logins of user \(user)"
        }
    }

    /// Returns the current state as JSON without secrets; nil if the object does not exist. Locks the row of a user or key.
    fileprivate func state(_ session: PostgresSession) throws -> String? {
        switch self {
        case .user(let id):
            try session.query(
                "SELECT to_jsonb(u) - 'password_hash' FROM sluice.user_account u WHERE id = $1 FOR UPDATE", [.text(id)])[0, 0]
        case .pendingUser(let id):
            try session.query(
                "SELECT to_jsonb(u) - 'password_hash' FROM sluice.pending_user u WHERE id = $1 FOR UPDATE", [.text(id)])[0, 0]
        case .apiKey(let id):
            try session.query("SELECT to_jsonb(k) - 'hash' FROM sluice.api_key k WHERE id = $1 FOR UPDATE", [.text(id)])[0, 0]
        case .logins(let user):
            try session.query(
                "SELECT jsonb_build_object('logins', count(*)) FROM sluice.login WHERE user_id = $1 AND expires_at > now()", [.text(user)]
            )[0, 0]
        }
    }
}

extension PostgresPool {
    /// Runs a change. If an operator makes it, its audit entry is written in the same transaction.
    ///
    /// - Parameter inTransaction: `true` if the body has several statements that must commit together.
    func change<R: Sendable>(
        _ subject: AuditSubject, inTransaction: Bool = false, _ body: @escaping @Sendable (PostgresSession) throws -> R
    ) async throws -> R {
        guard let author = AuditAuthor.current else { return try await inTransaction ? transact(body) : perform(body) }
        return try await transact { session in
            // The row stays locked between the two states, so that no other change is made in between.
            let before = try subject.state(session)
            let result = try body(session)
            try AuditLog.insert(author, subject.text, before: before, after: try subject.state(session), session)
            return result
        }
    }
}
