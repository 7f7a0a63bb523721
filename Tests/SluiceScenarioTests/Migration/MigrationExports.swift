import SluiceCore
import SluiceValues

/// The exports of the five styles, with a small dump and users each.
extension `A migrated app` {
    static var tracker: MigratedExport {
        var files = MigratedExport.files(
            "tracker",
            sync: #"{ "type": "flexible", "state": "enabled", "service_name": "m", "queryable_fields_names": ["owner_id"] }"#)
        files["data_sources/m/todo/Task/schema.json"] = """
            { "title": "Task", "bsonType": "object", "required": ["_id", "owner_id", "summary", "isDone"], "properties": {
              "_id": { "bsonType": "string" }, "owner_id": { "bsonType": "string" }, "summary": { "bsonType": "string" },
              "isDone": { "bsonType": "bool" }, "due": { "bsonType": "date" } } }
            """
        files["data_sources/m/todo/Task/rules.json"] = MigratedExport.rules(
            MigratedExport.role("owner", read: #"{ "owner_id": "%%user.id" }"#, write: #"{ "owner_id": "%%user.id" }"#))
        let tasks = (0..<40).map { index -> [String: Value] in
            let owner: Value = .string(index % 2 == 0 ? Self.ada : Self.ben)
            let due: Value = .timestamp(Timestamp(seconds: 1_700_000_000 + Int64(index)))
            return [
                "_id": .string("t\(index)"), "owner_id": owner, "summary": .string("task \(index)"), "isDone": .bool(index % 3 == 0),
                "due": due,
            ]
        }
        let users = [Self.user(Self.ada), Self.user(Self.ben), Self.user(Self.eve, isDisabled: true)]
        return MigratedExport(files: files, documents: ["todo.Task": tasks], users: users)
    }

    static var teams: MigratedExport {
        var files = MigratedExport.files(
            "teams",
            sync: """
                { "type": "partition", "state": "enabled", "service_name": "m", "database_name": "work", "partition": {
                  "key": "_partition", "type": "string", "permissions": {
                    "read": { "$or": [{ "%%user.custom_data.team": "%%partition" }, { "%%partition": "PUBLIC" }] },
                    "write": { "%%user.custom_data.team": "%%partition" } } } }
                """)
        files["auth/custom_user_data.json"] = """
            { "enabled": true, "mongo_service_name": "m", "database_name": "work", "collection_name": "people", "user_id_field": "userId" }
            """
        files["data_sources/m/work/people/schema.json"] = """
            { "title": "Person", "bsonType": "object", "required": ["_id", "userId", "team"], "properties": { "_id": { "bsonType": "string" },
              "userId": { "bsonType": "string" }, "team": { "bsonType": "string" } } }
            """
        files["data_sources/m/work/jobs/schema.json"] = """
            { "title": "Job", "bsonType": "object", "required": ["_id", "_partition", "size"], "properties": { "_id": { "bsonType": "string" },
              "_partition": { "bsonType": "string" }, "size": { "bsonType": "long" } } }
            """
        let teams = ["red", "blue", "PUBLIC"]
        let jobs = (0..<30).map { index -> [String: Value] in
            ["_id": .string("j\(index)"), "_partition": .string(teams[index % 3]), "size": .int(Int64(index))]
        }
        let people: [[String: Value]] = [["_id": .string("p1"), "userId": .string(Self.ada), "team": .string("red")]]
        // The dump has Ada's custom data, and the list of users has those of Ben.
        let users = [
            Self.user(Self.ada, customData: ["_id": "p1", "userId": .string(Self.ada), "team": "blue"]),
            Self.user(Self.ben, customData: ["_id": "p2", "userId": .string(Self.ben), "team": "blue"]),
        ]
        return MigratedExport(
            files: files, documents: ["work.jobs": jobs, "work.people": people], users: users, isPartitioned: true)
    }

    static var hierarchy: MigratedExport {
        func call(_ name: String) -> String { #"{ "%%true": { "%function": { "name": "\#(name)", "arguments": ["%%partition"] } } }"# }
        var files = MigratedExport.files("hierarchy", sync: "{}")
        files["sync/config.json"] = nil
        // The layout of 2021: the settings are those of the data source.
        files["data_sources/m/config.json"] = """
            { "name": "m", "type": "mongodb-atlas", "config": { "clusterName": "c", "sync": { "state": "enabled", "database_name": "firm",
              "partition": { "key": "realm_id", "type": "string", "permissions": { "read": \(call("canRead")), "write": \(call("canWrite")) } } } } }
            """
        files["functions/canRead.js"] = """
            exports = async function (partition) {
              const people = context.services.get("m").db("firm").collection("people");
              const me = await people.findOne({ _id: context.user.id });
              if (me.role === "director") return true;
              return context.functions.execute("canWrite", partition);
            };
            """
        files["functions/canWrite.js"] = """
            exports = function (partition) {
              const [kind, value] = partition.split("=");
              switch (kind) {
                case "user": return value === context.user.id;
                case "team": return context.user.custom_data.teams.includes(value);
                default: return false;
              }
            };
            """
        files["auth/custom_user_data.json"] =
            #"{ "enabled": true, "database_name": "firm", "collection_name": "people", "user_id_field": "_id" }"#
        files["data_sources/m/firm/people/schema.json"] = """
            { "title": "Person", "bsonType": "object", "required": ["_id"], "properties": { "_id": { "bsonType": "string" },
              "role": { "bsonType": "string" }, "teams": { "bsonType": "array", "items": { "bsonType": "string" } } } }
            """
        files["data_sources/m/firm/reports/schema.json"] = """
            { "title": "Report", "bsonType": "object", "required": ["_id", "realm_id"], "properties": { "_id": { "bsonType": "string" },
              "realm_id": { "bsonType": "string" }, "text": { "bsonType": "string" } } }
            """
        let people: [[String: Value]] = [
            ["_id": .string(Self.ada), "role": .string("director"), "teams": .list([])],
            ["_id": .string(Self.ben), "role": .string("member"), "teams": .list([.string("a"), .string("b")])],
        ]
        let reports = ["user=\(Self.ada)", "user=\(Self.ben)", "team=a", "team=b", "team=c", "PUBLIC"].map { realm -> [String: Value] in
            ["_id": .string("of \(realm)"), "realm_id": .string(realm), "text": .string("x")]
        }
        return MigratedExport(
            files: files, documents: ["firm.people": people, "firm.reports": reports], users: [Self.user(Self.ada), Self.user(Self.ben)],
            isPartitioned: true)
    }

    static var devices: MigratedExport {
        var files = MigratedExport.files(
            "devices",
            sync: """
                { "type": "flexible", "state": "enabled", "service_name": "m", "queryable_fields_names": ["site"],
                  "asymmetric_tables": ["Reading"] }
                """, providers: ["local-userpass", "api-key"])
        files["data_sources/m/iot/readings/schema.json"] = """
            { "title": "Reading", "bsonType": "object", "required": ["_id", "site", "value"], "properties": { "_id": { "bsonType": "string" },
              "site": { "bsonType": "string" }, "value": { "bsonType": "double" } } }
            """
        files["data_sources/m/iot/sensors/schema.json"] = """
            { "title": "Sensor", "bsonType": "object", "required": ["_id", "site"], "properties": { "_id": { "bsonType": "string" },
              "site": { "bsonType": "string" } } }
            """
        let own = #"{ "site": "%%user.custom_data.site" }"#
        files["data_sources/m/iot/readings/rules.json"] = MigratedExport.rules(MigratedExport.role("device", read: own, write: own))
        files["data_sources/m/iot/sensors/rules.json"] = MigratedExport.rules(MigratedExport.role("device", read: own, write: "false"))
        let readings = (0..<50).map { index -> [String: Value] in
            ["_id": .string("r\(index)"), "site": .string("north"), "value": .double(Double(index) / 2)]
        }
        let sensors: [[String: Value]] = ["north", "south"].map { ["_id": .string("s-\($0)"), "site": .string($0)] }
        let device: JSON = [
            "_id": "64b000000000000000000001", "type": "server", "data": ["name": "gauge-1"], "custom_data": ["site": "north"],
            "identities": [["id": "64c000000000000000000001", "provider_type": "api-key", "provider_id": "64aa00000000000000000002"]],
        ]
        return MigratedExport(
            files: files, documents: ["iot.readings": readings, "iot.sensors": sensors], users: [device, Self.user(Self.ada)])
    }

    static var catalogue: MigratedExport {
        var files = MigratedExport.files(
            "catalogue",
            sync: """
                { "type": "flexible", "state": "enabled", "service_name": "m", "development_mode_enabled": false,
                  "queryable_fields_names": ["kind"] }
                """, providers: ["local-userpass", "anon-user"])
        files["data_sources/m/default_rule.json"] = MigratedExport.rules(MigratedExport.role("all", read: "true", write: "false"))
        let kinds = (0..<4).map { index -> [String: Value] in
            ["_id": .objectId(ObjectIdentifierBytes(high: 5, low: UInt32(index))), "title": .string("kind \(index)")]
        }
        let products = (0..<60).map { index -> [String: Value] in
            let price: Value = index % 2 == 0 ? .int(Int64(index)) : .double(Double(index) + 0.5)
            let stock: [String: Value] = ["shop\(index)": .int(Int64(index)), "shop\(index + 1)": .int(0)]
            let maker: [String: Value] = ["name": .string("m\(index)"), "since": .timestamp(Timestamp(seconds: 1_600_000_000))]
            return [
                "_id": .string("p\(index)"), "kind": .objectId(ObjectIdentifierBytes(high: 5, low: UInt32(index % 4))), "price": price,
                "tags": .list([.string("a"), .string("b")]), "stock": .dictionary(stock), "maker": .dictionary(maker),
            ]
        }
        let guest: JSON = [
            "_id": "64b000000000000000000002", "type": "normal",
            "identities": [["id": "64b000000000000000000002-x", "provider_type": "anon-user"]],
        ]
        return MigratedExport(
            files: files, documents: ["store.kinds": kinds, "store.products": products], users: [guest, Self.user(Self.eve)],
            isWithoutClasses: true)
    }
}
