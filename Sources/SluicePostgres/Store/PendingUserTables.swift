/// The users whose e-mail addresses are not confirmed, and the tokens that confirm them.
///
/// - `confirmation.password_hash`: the password of the registration that the token belongs to.
/// - `pending_user.password_hash`: NULL if several registrations are for the address. A token of none of them sets no password then,
///   because a stranger's would be as good as the owner's.
enum PendingUserTables {
    /// A part of `CompanionSchema`, behind accounts.
    static let definition = """
        CREATE TABLE sluice.pending_user (
            id text COLLATE "C" PRIMARY KEY, email text COLLATE "C" NOT NULL UNIQUE, password_hash text,
            created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL
        );
        CREATE TABLE sluice.confirmation (
            id text COLLATE "C" PRIMARY KEY, user_id text COLLATE "C" NOT NULL REFERENCES sluice.pending_user ON DELETE CASCADE,
            hash bytea NOT NULL, password_hash text, expires_at timestamptz NOT NULL
        );
        CREATE INDEX confirmation_user ON sluice.confirmation (user_id);
        CREATE FUNCTION sluice.users_created() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            DELETE FROM sluice.pending_user p USING new_users n WHERE p.email = n.email;
            RETURN NULL;
        END $$;
        CREATE TRIGGER created AFTER INSERT ON sluice.user_account REFERENCING NEW TABLE AS new_users
            FOR EACH STATEMENT EXECUTE FUNCTION sluice.users_created();

        """
}
