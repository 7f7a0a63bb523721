import SluiceCore
import SluiceValues

/// The users' custom data as a table holds them: App Services' *custom user data collection*.
///
/// Triggers keep `sluice.user_account.custom_data` equal to the row whose field names the user, for every writer of the table.
/// Sessions learn of the change by `UserChangeStore`.
///
/// The data are extended JSON by the types of the columns, as App Services' had their BSON types: rules compare an ObjectId with
/// ObjectIds. NULLs are omitted. A row over `bytes` counts as empty, so that it grants no rights. Accounts of server keys keep
/// their custom data, which the admin API sets.
package struct CustomDataTable: Sendable {
    /// The maximum size of a row as JSON, in bytes.
    package static let bytes = 16 << 10

    /// The version of the triggers. Triggers of another version are replaced.
    private static let form = "4"

    /// A jsonb column of this name holds custom data beside the other columns, as one document of an export without a schema.
    package static let documentColumn = "custom_data"
    private static let document = SQLQuote.postgresLiteral(documentColumn)

    /// A table of custom data.
    package struct Place: Hashable, Sendable {
        package let schema: String
        package let table: String
        /// The column with the user's id.
        package let userID: String
        /// The members of custom data by column, of those columns whose member has another name than they have.
        package let members: [String: String]

        package init(schema: String, table: String, userID: String, members: [String: String] = [:]) {
            self.schema = schema
            self.table = table
            self.userID = userID
            self.members = members
        }

        /// The quoted name for statements.
        var sqlName: String { "\(SQLQuote.identifier(schema)).\(SQLQuote.identifier(table))" }

        /// Returns the member of a column; nil for a column of a member's name that the mapping gives to another column. Two values of
        /// one member would leave to chance which of them a rule compares.
        fileprivate func member(of column: String) -> String? {
            members[column] ?? (members.values.contains(column) ? nil : column)
        }

        /// `members` as JSON, the same text each time.
        fileprivate var membersText: String {
            JSON.object(members.sorted { $0.key < $1.key }.map { JSON.Member($0.key, .string($0.value)) }).text
        }
    }

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Makes custom data follow a table, and no other. Cheap if they do; otherwise writers of the table wait until all users are
    /// updated.
    ///
    /// - Returns: `false` if the table or column does not exist. Custom data then follow no table.
    package func follow(_ place: Place) async throws -> Bool {
        let (name, field) = (place.sqlName, place.userID)
        return try await pool.transact { session in
            // One gateway at a time changes the triggers.
            try session.query("SELECT pg_advisory_xact_lock(hashtextextended('sluice.custom_data', 0))")
            let column = try session.query(
                "SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2 AND NOT attisdropped",
                [.text(name), .text(field)])
            guard column.count == 1 else {
                try Self.drop(session)
                return false
            }
            if try Self.isFollowed(place, session) { return true }
            try Self.drop(session)
            try session.script(Self.extendedJSON + Self.functions)
            let (argument, members) = (SQLQuote.postgresLiteral(field), SQLQuote.postgresLiteral(place.membersText))
            try session.script(
                """
                CREATE TRIGGER sluice_custom_data AFTER INSERT OR UPDATE OR DELETE ON \(name) FOR EACH ROW
                    EXECUTE FUNCTION sluice.custom_data_changed(\(argument), \(SQLQuote.postgresLiteral(Self.form)), \(members));
                CREATE TRIGGER sluice_custom_data_emptied AFTER TRUNCATE ON \(name)
                    FOR EACH STATEMENT EXECUTE FUNCTION sluice.custom_data_emptied();
                CREATE TRIGGER sluice_custom_data_of_new BEFORE INSERT ON sluice.user_account
                    FOR EACH ROW EXECUTE FUNCTION sluice.custom_data_of_new(\(SQLQuote.postgresLiteral(name)), \(argument), \(members));
                UPDATE sluice.user_account AS u SET custom_data = coalesce(
                    (SELECT sluice.custom_data(to_jsonb(t), t.tableoid, \(members)) FROM \(name) AS t WHERE to_jsonb(t) ->> \(argument) = u.id LIMIT 1),
                    '{}')
                WHERE provider <> 'api-key';
                """)
            return true
        }
    }

    /// `true` if the triggers of this table, column, mapping and version exist.
    private static func isFollowed(_ place: Place, _ session: PostgresSession) throws -> Bool {
        try session.query(
            """
            SELECT FROM pg_trigger WHERE tgname = 'sluice_custom_data' AND tgrelid = to_regclass($1)
                AND tgargs = convert_to($2, 'UTF8') || '\\x00' || convert_to($3, 'UTF8') || '\\x00' || convert_to($4, 'UTF8') || '\\x00'
            """, [.text(place.sqlName), .text(place.userID), .text(form), .text(place.membersText)]
        ).count == 1
    }

    /// Returns the members that custom data can have: the columns, by the names of `Place.members`. Nil if the table or the column does not
    /// exist, or if `documentColumn` can hold any member.
    package func columns(_ place: Place) async throws -> [String]? {
        try await pool.perform { session in
            let columns = try session.query(
                """
                SELECT attname, atttypid = 'jsonb'::regtype AND attname = $2 FROM pg_attribute
                WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
                """, [.text(place.sqlName), .text(Self.documentColumn)])
            let names = columns.column(0)
            guard names.contains(place.userID), !columns.column(1).contains("t") else { return nil }
            return names.compactMap { place.member(of: $0) }
        }
    }

    /// Returns the statements that create a missing table or column; none if both exist.
    ///
    /// - Parameters:
    ///   - planned: The columns of the table that other statements create; nil if they do not create it.
    package func statements(_ place: Place, planned: [String]?) async throws -> [String] {
        let (name, field) = (place.sqlName, place.userID)
        let column = SQLQuote.identifier(field)
        let (exists, hasColumn) = try await pool.perform { session in
            let found = try session.query(
                """
                SELECT to_regclass($1) IS NOT NULL,
                    EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2 AND NOT attisdropped)
                """, [.text(name), .text(field)])
            return (found[0, 0] == "t", found[0, 1] == "t")
        }
        if hasColumn || planned?.contains(field) == true { return [] }
        if exists || planned != nil { return ["ALTER TABLE \(name) ADD COLUMN \(column) text COLLATE \"C\" UNIQUE"] }
        let document = SQLQuote.identifier(Self.documentColumn)
        return [
            "CREATE SCHEMA IF NOT EXISTS \(SQLQuote.identifier(place.schema))",
            "CREATE TABLE \(name) (\(column) text COLLATE \"C\" PRIMARY KEY, \(document) jsonb NOT NULL DEFAULT '{}')",
        ]
    }

    /// Removes the triggers and leaves custom data to the admin API.
    package func unfollow() async throws { try await pool.transact { try Self.drop($0) } }

    private static func drop(_ session: PostgresSession) throws {
        let triggers = try session.query(
            """
            SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass), pg_has_role(relowner, 'USAGE')
            FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid WHERE starts_with(tgname, 'sluice_custom_data') AND NOT tgisinternal
            """)
        let statements = triggers.column(0)
        let foreign = statements.indices.filter { triggers.bool($0, 1) != true }.map { statements[$0] }
        if !foreign.isEmpty {
            throw SluiceError(
                .grantMissing, "Another table, column, mapping or release held the custom user data, and the role does not own that table.",
                fix: "Run as its owner: \(foreign.joined(separator: "; ")).")
        }
        for statement in statements { try session.script(statement) }
    }

    /// The functions of the triggers. Those on the table run with their owner's rights, since its writers need none on users.
    ///
    /// The advisory lock orders a row and its user if both are created at the same time.
    private static let functions = """
        CREATE OR REPLACE FUNCTION sluice.custom_data(doc jsonb, relation oid, members jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
            SELECT CASE WHEN octet_length(whole::text) <= \(bytes) THEN jsonb_strip_nulls(whole) ELSE '{}' END
            FROM (
                SELECT CASE WHEN document IS NULL THEN typed ELSE document || jsonb_strip_nulls(typed - \(document)) END AS whole
                FROM (
                    SELECT coalesce(jsonb_object_agg(coalesce(members ->> attname, attname), sluice.extended_json(doc -> attname, atttypid)), '{}') AS typed,
                        CASE WHEN bool_or(attname = \(document) AND atttypid = 'jsonb'::regtype)
                            AND jsonb_typeof(doc -> \(document)) = 'object' THEN doc -> \(document) END AS document
                    FROM pg_attribute WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped AND (
                        members ? attname OR NOT EXISTS (SELECT FROM jsonb_each_text(members) AS mapped WHERE mapped.value = attname))
                ) AS of_columns
            ) AS merged
        $$;
        CREATE OR REPLACE FUNCTION sluice.set_custom_data(user_id text, doc jsonb) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            IF user_id IS NOT NULL THEN
                PERFORM pg_advisory_xact_lock(hashtextextended('sluice.custom_data ' || user_id, 0));
                UPDATE sluice.user_account SET custom_data = doc
                WHERE id = user_id AND custom_data IS DISTINCT FROM doc AND provider <> 'api-key';
            END IF;
        END $$;
        CREATE OR REPLACE FUNCTION sluice.custom_data_changed() RETURNS trigger LANGUAGE plpgsql
            SECURITY DEFINER SET search_path = pg_catalog SET intervalstyle = iso_8601 AS $$
        DECLARE
            before jsonb;
            after jsonb;
        BEGIN
            IF TG_OP <> 'INSERT' THEN before := to_jsonb(OLD); END IF;
            IF TG_OP <> 'DELETE' THEN after := to_jsonb(NEW); END IF;
            IF before ->> TG_ARGV[0] IS DISTINCT FROM after ->> TG_ARGV[0] THEN
                PERFORM sluice.set_custom_data(before ->> TG_ARGV[0], '{}');
            END IF;
            PERFORM sluice.set_custom_data(after ->> TG_ARGV[0], sluice.custom_data(after, TG_RELID, TG_ARGV[2]::jsonb));
            RETURN NULL;
        END $$;
        CREATE OR REPLACE FUNCTION sluice.custom_data_emptied() RETURNS trigger LANGUAGE plpgsql
            SECURITY DEFINER SET search_path = pg_catalog AS $$ BEGIN
            UPDATE sluice.user_account SET custom_data = '{}' WHERE custom_data <> '{}' AND provider <> 'api-key';
            RETURN NULL;
        END $$;
        CREATE OR REPLACE FUNCTION sluice.custom_data_of_new() RETURNS trigger LANGUAGE plpgsql SET intervalstyle = iso_8601 AS $$
        DECLARE
            doc jsonb;
        BEGIN
            IF NEW.provider <> 'api-key' THEN
                PERFORM pg_advisory_xact_lock(hashtextextended('sluice.custom_data ' || NEW.id, 0));
                EXECUTE format('SELECT sluice.custom_data(to_jsonb(t), t.tableoid, $2) FROM %s AS t WHERE t.%I::text = $1 LIMIT 1',
                    TG_ARGV[0], TG_ARGV[1])
                    INTO doc USING NEW.id, TG_ARGV[2]::jsonb;
                NEW.custom_data := coalesce(doc, NEW.custom_data);
            END IF;
            RETURN NEW;
        END $$;
        """

    /// The function that converts a column's value, as `to_jsonb` returns it, into `ExtendedJSON`.
    ///
    /// It must never fail, because the row's writer would fail, too. A time outside the range of dates, such as infinity, stays a
    /// text.
    private static let extendedJSON = """
        CREATE OR REPLACE FUNCTION sluice.extended_json(value jsonb, type oid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
        DECLARE
            kind record;
            content text := value #>> '{}';
            moment timestamptz;
        BEGIN
            IF content IS NULL THEN RETURN value; END IF;
            IF type = to_regtype('sluice.objectid') THEN RETURN jsonb_build_object('$oid', value); END IF;
            SELECT typtype, typbasetype, typcategory, typelem INTO kind FROM pg_type WHERE oid = type;
            IF kind.typtype = 'd' THEN RETURN sluice.extended_json(value, kind.typbasetype); END IF;
            IF kind.typcategory = 'A' AND jsonb_typeof(value) = 'array' THEN
                RETURN (
                    SELECT coalesce(jsonb_agg(sluice.extended_json(
                        element, CASE WHEN jsonb_typeof(element) = 'array' THEN type ELSE kind.typelem END) ORDER BY place), '[]')
                    FROM jsonb_array_elements(value) WITH ORDINALITY AS elements(element, place));
            END IF;
            CASE type
                WHEN 'uuid'::regtype THEN RETURN jsonb_build_object('$uuid', value);
                WHEN 'numeric'::regtype THEN RETURN jsonb_build_object('$numberDecimal', content);
                WHEN 'bytea'::regtype THEN
                    RETURN jsonb_build_object('$binary', jsonb_build_object(
                        'base64', translate(encode(content::bytea, 'base64'), E'\\n', ''), 'subType', '00'));
                WHEN 'real'::regtype, 'double precision'::regtype THEN
                    RETURN CASE jsonb_typeof(value) WHEN 'string' THEN jsonb_build_object('$numberDouble', value) ELSE value END;
                WHEN 'timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype THEN
                    BEGIN
                        moment := CASE type WHEN 'timestamptz'::regtype THEN content::timestamptz
                            ELSE content::timestamp AT TIME ZONE 'UTC' END;
                    EXCEPTION WHEN data_exception THEN RETURN value;
                    END;
                    RETURN CASE
                        WHEN NOT isfinite(moment) THEN value
                        WHEN extract(year FROM moment AT TIME ZONE 'UTC') BETWEEN 1 AND 9999 THEN jsonb_build_object('$date', regexp_replace(
                            to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '(\\.000000|000)Z$', 'Z'))
                        ELSE jsonb_build_object('$date', jsonb_build_object(
                            '$numberLong', trunc(extract(epoch FROM moment) * 1000)::bigint::text)) END;
                ELSE RETURN value;
            END CASE;
        END $$;

        """
}
