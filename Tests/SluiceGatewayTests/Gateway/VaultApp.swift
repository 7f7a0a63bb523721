import GatewayTestSupport
import SluiceCore
import Testing

/// An app whose tables, columns and stored values carry a marker that no client may read, and whose constraints do not.
enum VaultApp {
    static let marker = "zq"

    static let tables =
        """
        CREATE DOMAIN zq_domain AS bigint CONSTRAINT zq_limit CHECK (VALUE <> 13);
        CREATE TABLE zq_parents (_id text PRIMARY KEY);
        CREATE TABLE zq_items (
            _id text PRIMARY KEY, title text, size bigint NOT NULL DEFAULT 0, code text CONSTRAINT item_code UNIQUE,
            parent text CONSTRAINT item_parent REFERENCES zq_parents, slot bigint, secret text,
            zq_column text NOT NULL DEFAULT 'ZQ-COLUMN', zq_limited zq_domain NOT NULL DEFAULT 1,
            CONSTRAINT item_size CHECK (size < 100), CHECK (size <> 50), CONSTRAINT item_slot EXCLUDE (slot WITH =));
        CREATE TABLE zq_parts (_id text PRIMARY KEY, title text) PARTITION BY RANGE (_id);
        CREATE TABLE zq_parts_low PARTITION OF zq_parts FOR VALUES FROM ('a') TO ('m');
        CREATE TABLE readings (_id text PRIMARY KEY, store text NOT NULL, value double precision NOT NULL);
        INSERT INTO zq_items (_id, secret, code, slot) VALUES ('own', 'ZQ-SECRET', NULL, NULL), ('other', 'ZQ-SECRET', 'taken', 7);
        CREATE FUNCTION zq_judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            CASE split_part(NEW.title, ' ', 1)
                WHEN 'null' THEN NEW.zq_column := NULL;
                WHEN 'domain' THEN NEW.zq_limited := 13;
                WHEN 'divide' THEN NEW.size := 1 / 0;
                WHEN 'dynamic' THEN EXECUTE 'SELECT zq_column FROM zq_missing';
                WHEN 'raise' THEN
                    RAISE EXCEPTION 'zq_items refuses %', NEW.secret USING ERRCODE = split_part(NEW.title, ' ', 2),
                        DETAIL = 'ZQ-DETAIL', HINT = 'ZQ-HINT', COLUMN = 'zq_column', CONSTRAINT = 'zq_constraint', TABLE = 'zq_items';
                ELSE NULL;
            END CASE;
            RETURN NEW; END $$;
        CREATE TRIGGER zq_judge BEFORE INSERT OR UPDATE ON zq_items FOR EACH ROW WHEN (NEW.title IS NOT NULL) EXECUTE FUNCTION zq_judge();
        CREATE FUNCTION zq_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.title = 'late' THEN RAISE EXCEPTION 'zq_items refuses % late', NEW.secret; END IF; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER zq_late AFTER INSERT OR UPDATE ON zq_items DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION zq_late();
        CREATE FUNCTION zq_read() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.store = 'broken' THEN EXECUTE 'SELECT zq_column FROM zq_missing'; END IF;
            IF NEW.store = 'raised' THEN RAISE EXCEPTION 'zq_read refuses'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER zq_read BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION zq_read();
        """

    static var files: [String: String] {
        var files = ShopApp.files.filter { !$0.key.contains("/tags/") && !$0.key.contains("/orders/") }
        files["sync/config.json"] = ShopApp.files["sync/config.json"]?.replacing(#"["store"]"#, with: "[]")
        files[ShopApp.table("zq_items", "schema")] = """
            { "title": "Item", "bsonType": "object", "required": ["_id", "size"],
              "properties": {
                "_id": { "bsonType": "string" }, "title": { "bsonType": "string" }, "size": { "bsonType": "long" },
                "code": { "bsonType": "string" }, "parent": { "bsonType": "string" }, "slot": { "bsonType": "long" },
                "secret": { "bsonType": "string" } } }
            """
        files[ShopApp.table("zq_parts", "schema")] = """
            { "title": "Part", "bsonType": "object", "required": ["_id"],
              "properties": { "_id": { "bsonType": "string" }, "title": { "bsonType": "string" } } }
            """
        for (table, fields) in [("zq_items", #"{ "secret": { "read": false, "write": false } }"#), ("zq_parts", "{}")] {
            files[ShopApp.table(table, "rules")] = """
                { "database": "public", "collection": "\(table)", "roles": [ {
                    "name": "everybody", "apply_when": {}, "document_filters": { "read": true, "write": true },
                    "fields": \(fields), "additional_fields": { "read": true, "write": true },
                    "insert": true, "delete": true, "search": true } ] }
                """
        }
        return files
    }

    static func change(_ type: String, _ key: String, _ kind: ObjectChange.Kind, _ values: [String: Value] = [:]) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: type, key: .string(key)), kind: kind, values: values)
    }

    /// Expects that a text for clients says nothing of the inside.
    static func expectClean(
        _ text: String, _ conninfo: String = "", _ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let settings = conninfo.split(separator: " ").filter { $0.hasPrefix("host=") || $0.hasPrefix("port=") || $0.hasPrefix("dbname=") }
        let places = settings.map { String($0.drop { $0 != "=" }.dropFirst()) }.filter { $0.utf8.count > 3 && $0 != "postgres" }
        let words = [marker, "select", "insert into", "update ", "sqlstate", "127.0.0.1", "/tmp/", "“"] + places
        for word in words {
            #expect(!text.lowercased().contains(word.lowercased()), "\(comment): “\(word)” is in: \(text)", sourceLocation: sourceLocation)
        }
    }
}
