/// The data by which accounts that are out of use are found.
///
/// - `login.used_at`: the last login or refresh, to a day.
enum IdleUserTables {
    /// A part of `CompanionSchema`.
    static let definition = """
        ALTER TABLE sluice.login ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();
        CREATE INDEX user_account_passing ON sluice.user_account (created_at) WHERE provider = 'anon-user' OR unclaimed;

        """
}
