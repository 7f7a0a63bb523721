/// The events of users that the topic and the triggers have not received, and the calls of triggers that were given up.
///
/// - `user_event.account`: the account at the time of the event, without its password.
/// - `user_event.due`: the time until which a gateway works on the event, or waits for the next attempt.
/// - `login.provider`: the provider that the user logged in by; NULL for that of the account.
/// - The setting `sluice.user_events` is `off` in the transactions of an import, whose accounts are not new.
enum UserEventTables {
    /// A part of `CompanionSchema`, behind accounts and logins.
    static let definition = """
        CREATE TABLE sluice.user_event (
            id bigserial PRIMARY KEY, user_id text COLLATE "C" NOT NULL, kind text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
            provider text NOT NULL, account jsonb NOT NULL, published boolean NOT NULL DEFAULT false, done text[] NOT NULL DEFAULT '{}',
            attempts bigint NOT NULL DEFAULT 0, due timestamptz NOT NULL DEFAULT '-infinity'
        );
        CREATE INDEX user_event_user ON sluice.user_event (user_id, id);
        CREATE TABLE sluice.trigger_failure (
            id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), trigger text NOT NULL, attempts bigint NOT NULL,
            reason text NOT NULL, event jsonb NOT NULL
        );
        ALTER TABLE sluice.login ADD COLUMN provider text;
        CREATE FUNCTION sluice.add_user_event(account sluice.user_account, kind text, provider text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            IF current_setting('sluice.user_events', true) IS DISTINCT FROM 'off' THEN
                INSERT INTO sluice.user_event (user_id, kind, provider, account) VALUES (account.id, kind, provider, jsonb_build_object(
                    'email', account.email, 'identities', account.identities, 'data', account.data, 'custom_data', account.custom_data,
                    'disabled', account.disabled));
            END IF;
        END $$;
        CREATE FUNCTION sluice.users_have_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF TG_OP = 'INSERT' THEN PERFORM sluice.add_user_event(NEW, 'created', NEW.provider);
            ELSIF TG_OP = 'DELETE' THEN PERFORM sluice.add_user_event(OLD, 'deleted', OLD.provider);
            ELSE PERFORM sluice.add_user_event(NEW, CASE WHEN NEW.disabled THEN 'disabled' ELSE 'enabled' END, NEW.provider);
            END IF;
            RETURN NULL;
        END $$;
        CREATE FUNCTION sluice.logins_have_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM sluice.add_user_event(u, 'logged in', coalesce(NEW.provider, u.provider))
                FROM sluice.user_account u WHERE u.id = NEW.user_id;
            RETURN NULL;
        END $$;
        CREATE TRIGGER event_of_life AFTER INSERT OR DELETE ON sluice.user_account
            FOR EACH ROW EXECUTE FUNCTION sluice.users_have_event();
        CREATE TRIGGER event_of_state AFTER UPDATE OF disabled ON sluice.user_account
            FOR EACH ROW WHEN (NEW.disabled <> OLD.disabled) EXECUTE FUNCTION sluice.users_have_event();
        CREATE TRIGGER event AFTER INSERT ON sluice.login FOR EACH ROW EXECUTE FUNCTION sluice.logins_have_event();

        """

    /// A part of `CompanionSchema`, behind pending users: the events of registrations whose address is to be confirmed.
    static let registrations = """
        CREATE FUNCTION sluice.registrations_have_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF current_setting('sluice.user_events', true) IS DISTINCT FROM 'off' THEN
                INSERT INTO sluice.user_event (user_id, kind, provider, account) VALUES (NEW.id, 'registered', 'local-userpass',
                    jsonb_build_object('email', NEW.email, 'identities', '[]'::jsonb, 'data', jsonb_build_object('email', NEW.email),
                        'custom_data', '{}'::jsonb, 'disabled', false));
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER event AFTER INSERT ON sluice.pending_user
            FOR EACH ROW EXECUTE FUNCTION sluice.registrations_have_event();

        """
}
