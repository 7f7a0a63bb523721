import SluiceCore

/// A migration of the e-mail addresses of accounts into their normal form (`EmailAddress`).
///
/// Earlier releases stored addresses as entered and compared them byte by byte, so two accounts may share an address. An account
/// whose address is already in normal form keeps it, otherwise the oldest one. The others keep their text and can no longer log in
/// with it. They are listed in `sluice.email_conflict` for the operator.
package enum EmailForms {
    static let table = """
        CREATE TABLE sluice.email_conflict (
            user_id text COLLATE "C" PRIMARY KEY REFERENCES sluice.user_account ON DELETE CASCADE,
            email text COLLATE "C" NOT NULL, kept_by text COLLATE "C", at timestamptz NOT NULL DEFAULT now()
        );

        """

    /// An account without a usable address.
    package struct Conflict: Hashable, Sendable {
        package var user: String
        /// The address as stored.
        package var email: String
        /// The account that keeps the address; nil if the address is no longer valid.
        package var keeper: String?
    }

    private struct Account {
        var id: String
        var email: String
    }

    static func migrate(_ session: PostgresSession) throws {
        let found = try session.query(
            "SELECT id, email FROM sluice.user_account WHERE email IS NOT NULL ORDER BY created_at, id", within: .seconds(600))
        let accounts = (0..<found.count).map { Account(id: found[$0, 0] ?? "", email: found[$0, 1] ?? "") }
        var keepers: [[UInt8]: String] = [:]
        // First pass: an address that is in normal form already belongs to its account.
        for account in accounts where form(account)?.hasSameBytes(as: account.email) == true {
            keepers[Array(account.email.utf8)] = account.id
        }
        // Second pass, the oldest account first: it receives an address that is still free.
        for account in accounts {
            guard let email = form(account) else {
                try note(account, keeper: nil, session)
                continue
            }
            let keeper = keepers[Array(email.utf8)] ?? account.id
            keepers[Array(email.utf8)] = keeper
            if keeper != account.id {
                try note(account, keeper: keeper, session)
            } else if !email.hasSameBytes(as: account.email) {
                try rename(account, to: email, session)
            }
        }
    }

    private static func form(_ account: Account) -> String? { (try? EmailAddress(account.email))?.text }

    /// Stores the normal form in the account's address, in its identities and in the data that rules read.
    private static func rename(_ account: Account, to email: String, _ session: PostgresSession) throws {
        try session.execute(
            """
            UPDATE sluice.user_account SET email = $2,
                data = CASE WHEN data ->> 'email' = $3 THEN jsonb_set(data, '{email}', to_jsonb($2::text)) ELSE data END,
                identities = (
                    SELECT COALESCE(jsonb_agg(CASE WHEN i ->> 'id' = $3 THEN jsonb_set(i, '{id}', to_jsonb($2::text)) ELSE i END), '[]')
                    FROM jsonb_array_elements(identities) AS i)
            WHERE id = $1
            """, [.text(account.id), .text(email), .text(account.email)], cached: true)
    }

    private static func note(_ account: Account, keeper: String?, _ session: PostgresSession) throws {
        try session.execute(
            "INSERT INTO sluice.email_conflict (user_id, email, kept_by) VALUES ($1, $2, $3)",
            [.text(account.id), .text(account.email), .optional(keeper)], cached: true)
    }

    /// Returns accounts that lost their address, ordered by id, until an operator deletes or renames them.
    ///
    /// - Parameter limit: The maximum number of conflicts returned.
    package static func conflicts(_ connection: PostgresConnection, limit: Int = 100) async throws -> [Conflict] {
        let found = try await connection.query(
            """
            SELECT user_id, c.email, kept_by FROM sluice.email_conflict AS c JOIN sluice.user_account AS u ON u.id = user_id
            WHERE u.email = c.email ORDER BY user_id LIMIT $1
            """, [.int(limit)])
        return (0..<found.count).map { Conflict(user: found[$0, 0] ?? "", email: found[$0, 1] ?? "", keeper: found[$0, 2]) }
    }
}
