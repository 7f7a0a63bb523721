import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceQuery
import SluiceValues
import TestSupport

/// A random app: classes with properties of all kinds, which of them are queryable, and who may see what.
struct OracleApp {
    enum Role: CaseIterable {
        /// Sees everything, or the objects of the zones that are open.
        case everybody
        /// Sees the objects of one zone.
        case keeper
        /// Sees what everybody does, without some of the fields.
        case guest
    }

    /// The app directory.
    let files: [String: String]
    /// As the gateway reads it.
    let configuration: AppConfiguration
    var schema: Schema { configuration.schema }
    /// The classes that have tables.
    var classes: [ObjectType] { schema.types.filter { $0.kind == .topLevel } }
    /// What some objects hold inside.
    static let place = ObjectType(
        name: "Place", kind: .embedded,
        properties: [
            Property(id: 1, name: "x", type: .int, isOptional: true), Property(id: 2, name: "label", type: .string, isOptional: true),
            Property(id: 3, name: "marks", type: .int, collection: .list),
        ], primaryKey: nil)
    let fields: QueryableFields
    /// Whether its classes are those of which apps have objects, `OracleClasses.swift`.
    let isDeclared: Bool
    /// What else the roles give, by class: what they let write may be read as well.
    private let access: [String: OracleAccess]

    static let zones = ["north", "south", "west", "a*"]

    init(_ random: inout SplitMix64) throws {
        let classes = ["Alpha", "Beta"]
        isDeclared = random.chance(25)
        let drafts = isDeclared ? OracleObjects.types : classes.map { OracleApp.type($0, classes, &random) }
        let draft = Schema(drafts + [OracleApp.place])
        let names = Set(drafts.flatMap { $0.properties.map(\.name) })
        fields = QueryableFields(global: OracleApp.queryable.intersection(names), indexed: random.chance(60) ? "zone" : nil)
        var access: [String: OracleAccess] = [:]
        for type in drafts { access[type.name] = OracleAccess(type, &random) }
        self.access = access
        files = OracleApp.files(draft, fields, access)
        configuration = try AppDirectory.read(files: files)
    }

    private static func type(_ name: String, _ names: [String], _ random: inout SplitMix64) -> ObjectType {
        let key = Property(id: 1, name: "_id", type: random.pick([.string, .int, .objectId, .uuid]))
        let zone = Property(id: 2, name: "zone", type: .string)
        let pool = Samples.type.properties.filter { $0.name != "_id" && $0.name != "friend" && $0.name != "place" }
        let picked = pool.shuffled(using: &random).prefix(3 + random.below(6))
        var properties = [key, zone] + picked
        if random.chance(50) { properties.append(Property(id: 0, name: "peer", type: .link(to: random.pick(names)), isOptional: true)) }
        if random.chance(60) { properties.append(Property(id: 0, name: "place", type: .embedded("Place"), isOptional: true)) }
        for index in properties.indices { properties[index].id = UInt32(index + 1) }
        return ObjectType(name: name, properties: properties)
    }

    /// What queries may name: no field holds any kind of value.
    private static let queryable: Set<String> = Set(
        Samples.type.properties.filter { $0.type != .mixed && $0.collection != .dictionary && $0.name != "friend" && $0.name != "place" }
            .map(\.name) + ["zone"])

    // MARK: What roles give

    /// The zones of which a user sees the objects of a class, nil being all.
    /// - Parameters:
    ///   - zone: a keeper's.
    ///   - open: those that are open to others, nil being all.
    func visible(_ type: String, to role: Role, zone: String, open: Set<String>?) -> Set<String>? {
        let read: Set<String>? = role == .keeper ? [zone] : open
        guard let access = access[type] else { return read }
        return access.visible(role, read: read)
    }

    /// The fields of a class that guests are not shown.
    func masked(_ type: String, isVeiled: Bool) -> Set<String> {
        guard let access = access[type] else { return [] }
        return isVeiled ? [access.hidden, access.veiled] : [access.hidden]
    }

    // MARK: Queries

    /// A query that a subscription may have.
    func query(_ random: inout SplitMix64, on type: ObjectType) -> String {
        let names = type.properties.map(\.name).filter { fields.contains($0, of: type.name) && $0 != "zone" && $0 != "_id" }
        for _ in 0..<50 {
            var text = random.chance(25) || names.isEmpty ? "TRUEPREDICATE" : writer(names, &random)
            if fields.indexed != nil || random.chance(40) { text = "\(pin(&random)) AND (\(text))" }
            guard let query = try? Query.parse(text), (try? Subscription.check(type: type, query: query, in: schema, fields: fields)) != nil
            else {
                continue
            }
            return text
        }
        return pin(&random)
    }

    /// One about the zone alone, or about nothing.
    func plainQuery(_ random: inout SplitMix64) -> String {
        fields.indexed == nil && random.chance(50) ? "TRUEPREDICATE" : pin(&random)
    }

    private func writer(_ names: [String], _ random: inout SplitMix64) -> String {
        var writer = QueryWriter(random: random, names: names)
        defer { random = writer.random }
        return writer.query(depth: 2)
    }

    private func pin(_ random: inout SplitMix64) -> String {
        if random.chance(50) { return "zone == '\(random.pick(Self.zones))'" }
        return "zone IN {'\(random.pick(Self.zones))', '\(random.pick(Self.zones))'}"
    }

    // MARK: Values

    static func key(_ number: Int, _ type: ObjectType) -> Value {
        switch type.properties[0].type {
        case .string: .string(["", "é", "k'2", "k\"3"].dropFirst(number).first ?? "k\(number)")
        case .objectId: .objectId(ObjectIdentifierBytes(high: 7, low: UInt32(number)))
        case .uuid: .uuid(UUIDBytes(high: 1, low: UInt64(number)))
        default: .int(Int64(number) - 3)
        }
    }

    func value(_ property: Property, _ random: inout SplitMix64) -> Value {
        if property.name == "zone" { return .string(random.pick(Self.zones)) }
        switch property.collection {
        case .none:
            if property.isOptional, random.chance(25) { return .null }
            return element(property, &random)
        case .list: return .list((0..<random.below(4)).map { _ in element(property, &random, isElement: true) })
        case .set: return Value.set((0..<random.below(4)).map { _ in element(property, &random) })
        case .dictionary:
            return .dictionary(["a": element(property, &random), "é": element(property, &random)].filter { _ in random.chance(60) })
        }
    }

    /// What a collection may hold.
    func element(_ property: Property, _ random: inout SplitMix64, isElement: Bool = false) -> Value {
        if isElement, property.isOptional, random.chance(25) { return .null }
        if case .embedded = property.type {
            return .dictionary(Dictionary(uniqueKeysWithValues: Self.place.properties.map { ($0.name, value($0, &random)) }))
        }
        if case .link(let name) = property.type, let type = schema[name] { return Self.key(random.below(12), type) }
        return Samples.value(property.type, &random)
    }
}

// MARK: - As an app directory

extension OracleApp {
    private static func files(_ schema: Schema, _ fields: QueryableFields, _ access: [String: OracleAccess]) -> [String: String] {
        var files = ShopApp.files.filter { !$0.key.contains("/public/") }
        files["sync/config.json"] = """
            {
                "type": "flexible", "state": "enabled", "service_name": "postgres", "database_name": "public",
                "queryable_fields_names": [\(fields.global.sorted().map { "\"\($0)\"" }.joined(separator: ", "))],
                "indexed_queryable_fields_names": [\(fields.indexed.map { "\"\($0)\"" } ?? "")]
            }
            """
        for type in schema.types where type.kind == .topLevel {
            files[ShopApp.table(type.name, "schema")] = json(type, schema)
            files[ShopApp.table(type.name, "rules")] = access[type.name].map { rules(type.name, $0) }
            files[ShopApp.table(type.name, "relationships")] = relationships(type)
        }
        return files
    }

    private static func json(_ type: ObjectType, _ schema: Schema) -> String {
        let required = type.properties.filter { $0.collection == .none && !$0.isOptional }.map { "\"\($0.name)\"" }
        return """
            {
                "title": "\(type.name)", "bsonType": "object", "required": [\(required.joined(separator: ", "))],
                "properties": { \(type.properties.map { "\"\($0.name)\": \(json($0, schema))" }.joined(separator: ", ")) }
            }
            """
    }

    private static func json(_ property: Property, _ schema: Schema) -> String {
        if case .embedded(let name) = property.type { return schema[name].map { json($0, schema) } ?? "" }
        let name = name(property.type, schema)
        let isNullable = property.collection != .none && property.isOptional
        let element = #"{ "bsonType": \#(isNullable ? "[\"\(name)\", \"null\"]" : "\"\(name)\"") }"#
        return switch property.collection {
        case .none: element
        case .list: #"{ "bsonType": "array", "items": \#(element) }"#
        case .set: #"{ "bsonType": "array", "uniqueItems": true, "items": \#(element) }"#
        case .dictionary: #"{ "bsonType": "object", "additionalProperties": \#(element) }"#
        }
    }

    private static func name(_ type: PropertyType, _ schema: Schema) -> String {
        switch type {
        case .int: "long"
        case .timestamp: "date"
        case .binary: "binData"
        case .link(let target): schema[target].map { name($0.properties[0].type, schema) } ?? "string"
        default: type.name
        }
    }

    private static func relationships(_ type: ObjectType) -> String {
        let links = type.properties.compactMap { property -> String? in
            guard case .link(let target) = property.type else { return nil }
            return
                ##""\##(property.name)": { "ref": "#/relationship/postgres/public/\##(target)", "foreign_key": "_id", "is_list": false }"##
        }
        return "{ \(links.joined(separator: ", ")) }"
    }

    /// The rules of a class by which everybody but keepers sees the objects of these zones, nil being all, and guests see fewer fields.
    func rules(_ type: String, open: Set<String>?, isVeiled: Bool) -> String {
        access[type].map { OracleApp.rules(type, $0, open: open, isVeiled: isVeiled) } ?? ""
    }

    private static func rules(_ type: String, _ access: OracleAccess, open: Set<String>? = nil, isVeiled: Bool = false) -> String {
        let all = open.map(OracleAccess.among) ?? "true"
        let rest = #""insert": true, "delete": true, "search": true"#
        return """
            {
                "database": "public", "collection": "\(type)",
                "roles": [
                    {
                        "name": "keeper", "apply_when": { "%%user.custom_data.zone": { "%exists": true } },
                        "document_filters": \(access.filters(.keeper, read: #"{ "zone": "%%user.custom_data.zone" }"#)),
                        "read": true, "write": true, \(rest)
                    },
                    {
                        "name": "guest", "apply_when": { "%%user.custom_data.isGuest": true },
                        "document_filters": \(access.filters(.guest, read: all)),
                        "fields": \(access.masks(isVeiled: isVeiled)),
                        "additional_fields": { "read": true, "write": true }, \(rest)
                    },
                    {
                        "name": "everybody", "apply_when": {}, "document_filters": \(access.filters(.everybody, read: all)),
                        "read": true, "write": true, \(rest)
                    }
                ]
            }
            """
    }
}
