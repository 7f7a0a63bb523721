import SluiceCore
import SluiceGateway
import SluiceValues

/// The collection of custom user data, as an export names it.
struct CustomDataPlace: Hashable, Sendable {
    var database: String
    var collection: String
    /// The field with the user's id.
    var userID: String
}

/// The parts of an export that partition-based sync is made of.
struct PartitionExport {
    /// The settings of sync: the file, and the path of keys in it.
    struct Place: Hashable {
        var file: String
        /// The key in `config` of a data source; nil for `sync/config.json`.
        var key: String?
    }

    let files: [String: String]
    let trees: [String: JSON]
    let place: Place
    /// The settings of sync.
    let settings: JSON
    /// The data source.
    let source: String
    /// The partition key.
    let key: String

    /// - Parameter files: The texts by path, as `AppDirectory` reads them.
    /// - Throws: `configInvalid` if the app does not use partition-based sync.
    init(files: [String: String]) throws(SluiceError) {
        self.files = files
        trees = files.compactMapValues { $0.isEmpty ? nil : try? JSON.located(Array($0.utf8)) }
        guard let (place, settings) = Self.settings(trees) else {
            throw SluiceError(
                .configInvalid, "The app does not use partition-based sync.",
                fix: "Run `sluice migrate check`, which says what the export needs.")
        }
        (self.place, self.settings) = (place, settings)
        guard let key = settings["partition"]?["key"]?.string, !key.isEmpty else {
            throw SluiceError(
                .configInvalid, "\(place.file) names no partition key.",
                fix: "Add \"key\" to \"partition\": the field that apps open realms by.")
        }
        self.key = key
        let folder = place.file.split(separator: "/").map(String.init)
        let sources = Set(
            trees.keys.compactMap { path -> String? in
                let parts = path.split(separator: "/").map(String.init)
                return parts.count > 2 && parts[0] == "data_sources" || parts.count == 4 && parts[2] == "rules" ? parts[1] : nil
            })
        source =
            place.key != nil ? folder[1] : settings["service_name"]?.string ?? (sources.count == 1 ? sources.first : nil) ?? "mongodb-atlas"
    }

    /// Finds the settings with a partition. `sync/config.json` wins over those in a data source.
    private static func settings(_ trees: [String: JSON]) -> (Place, JSON)? {
        if let sync = trees["sync/config.json"] {
            let isPartitioned = sync["partition"].map { $0 != .null } == true || sync["type"]?.string == "partition"
            return isPartitioned ? (Place(file: "sync/config.json"), sync) : nil
        }
        for (path, tree) in trees.sorted(by: { $0.key < $1.key }) {
            let parts = path.split(separator: "/")
            guard parts.count == 3, parts[2] == "config.json", ["data_sources", "services"].contains(parts[0]) else { continue }
            for key in ["sync", "flexible_sync"] {
                guard let found = tree["config"]?[key], found["partition"]?.members?.isEmpty == false else { continue }
                return (Place(file: path, key: key), found)
            }
        }
        return nil
    }

    /// The value of the partition key that is no true value in JavaScript; nil if its type has none.
    var emptyPartition: JSON? {
        switch settings["partition"]?["type"]?.string {
        case "string", nil: ""
        case "int", "long": 0
        default: nil
        }
    }

    /// The permission of an operation, `read` or `write`; nil if there is none.
    func permission(_ name: String) -> JSON? {
        (settings["partition"]?["permissions"] ?? settings["permissions"])?[name].flatMap { $0 == .null ? nil : $0 }
    }

    // MARK: Custom user data

    /// The settings of custom user data, and `true` if they stand in the main file, as in older exports.
    var customData: (json: JSON, isOld: Bool)? {
        if let json = trees["auth/custom_user_data.json"], json["collection_name"]?.string != nil { return (json, false) }
        for file in AppFiles.anyMain {
            if let json = trees[file]?["custom_user_data_config"], json["collection_name"]?.string?.isEmpty == false { return (json, true) }
        }
        return nil
    }

    var customDataPlace: CustomDataPlace? {
        guard let json = customData?.json, json["enabled"]?.bool != false, let database = json["database_name"]?.string,
            let collection = json["collection_name"]?.string, let field = json["user_id_field"]?.string
        else { return nil }
        return CustomDataPlace(database: database, collection: collection, userID: field)
    }

    /// Returns the type of a member of custom data by the schema of their collection, which is `array` also inside of a list; nil if it
    /// does not say.
    func type(_ path: [String]) -> String? {
        guard let place = customDataPlace, var schema = schema(place.database, place.collection) else { return nil }
        var type: String? = "object"
        for name in path {
            guard type == "object", let inner = schema["properties"]?[name] else { return nil }
            type = inner["bsonType"]?.string ?? inner["type"]?.string
            if type == "array" { return type }
            schema = inner
        }
        return type == "mixed" ? nil : type
    }

    private func schema(_ database: String, _ collection: String) -> JSON? {
        for (path, tree) in trees {
            if path.hasPrefix("data_sources/"), path.hasSuffix("/\(database)/\(collection)/schema.json") { return tree }
            if path.hasPrefix("services/"), tree["database"]?.string == database, tree["collection"]?.string == collection {
                return tree["schema"]
            }
        }
        return nil
    }
}
