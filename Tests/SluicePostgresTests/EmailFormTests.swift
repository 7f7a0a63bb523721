import SluiceCore
import SluicePostgres
import Testing

@Suite struct `E-mail addresses of an earlier release` {
    @Test func `get their normal form, and those that two accounts have are kept and named`() async throws {
        try await TestPostgres.withConnection { connection in
            try await CompanionSchema.migrate(connection)
            // As the release before left it.
            try await connection.script("DROP TABLE sluice.email_conflict")
            try await connection.execute("UPDATE sluice.meta SET value = $1 WHERE key = 'version'", [.int(CompanionSchema.version - 1)])
            let accounts = [
                ("a", "Ann@Example.com"), ("b", "KIM@corp.example"), ("c", "\u{212A}im@corp.example"), ("d", "kim@corp.example"),
                ("e", "BOB@x"), ("f", "Bob@x"), ("g", "bad\u{7}@x"),
            ]
            for (number, (id, email)) in accounts.enumerated() {
                let identities: JSON = [["id": .string(email), "provider_type": "local-userpass"]]
                let data: JSON = ["email": .string(email)]
                try await connection.execute(
                    """
                    INSERT INTO sluice.user_account (id, email, provider, identities, data, created_at)
                    VALUES ($1, $2, 'local-userpass', $3, $4, to_timestamp($5::int))
                    """, [.text(id), .text(email), .text(identities.text), .text(data.text), .int(number)])
            }
            try await connection.execute("INSERT INTO sluice.user_account (id, provider) VALUES ('h', 'anon-user')")
            try await CompanionSchema.migrate(connection)
            let result = try await connection.query(
                "SELECT id, email, data ->> 'email', identities -> 0 ->> 'id' FROM sluice.user_account WHERE email IS NOT NULL ORDER BY id")
            let after = [
                "ann@example.com", "KIM@corp.example", "\u{212A}im@corp.example", "kim@corp.example", "bob@x", "Bob@x", "bad\u{7}@x",
            ]
            for (row, email) in after.enumerated() {
                for column in 1...3 { #expect(result[row, column]?.hasSameBytes(as: email) == true, "\(row) \(column)") }
            }
            let conflicts = try await EmailForms.conflicts(connection)
            #expect(conflicts.map(\.user) == ["b", "c", "f", "g"])
            #expect(conflicts.map(\.keeper) == ["d", "d", "e", nil])
            try await connection.execute("DELETE FROM sluice.user_account WHERE id = 'b'")
            #expect(try await EmailForms.conflicts(connection).map(\.user) == ["c", "f", "g"])
        }
    }
}
