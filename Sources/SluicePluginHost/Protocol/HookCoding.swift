import SluiceCore
import SluicePorts
import SluiceValues

/// A subscription as plugins see it: a class and a query in canonical text.
package struct TypeQuery: Hashable, Sendable {
    package var type: String
    package var query: String

    package init(type: String, query: String) {
        self.type = type
        self.query = query
    }
}

/// Converts between the gateway's types and the JSON of sluice_plugin.h. Writes and objects are rows (`RowFrame`).
/// Answers are decoded strictly, because an unknown key may be a misspelt restriction.
enum HookCoding {
    static func json(_ user: UserContext) -> JSON {
        var members: [JSON.Member] = [
            .init("id", .string(user.id)), .init("type", .string(user.type)), .init("data", user.data),
            .init("custom_data", user.customData), .init("identities", user.identities),
        ]
        if !user.functions.isEmpty { members.append(.init("functions", .array(user.functions.map(json)))) }
        return .object(members)
    }

    private static func json(_ call: RuleFunctionResult) -> JSON {
        ["name": .string(call.name), "arguments": .array(call.arguments), "result": call.result]
    }

    static func json(_ query: TypeQuery) -> JSON { ["type": .string(query.type), "query": .string(query.query)] }

    // MARK: Answers

    /// Decodes the permissions of a session. Classes that were not asked about are ignored; absent ones are denied.
    static func sessionPlan(_ answer: Answer, types: [String]) throws(SluiceError) -> SessionPlan {
        try answer.allow(["types"], in: answer.json, at: "the answer")
        guard let members = answer.json["types"]?.members else { throw answer.bad("it lacks \"types\"") }
        var plan = SessionPlan(types: [:])
        for member in members where types.contains(member.key) { plan.types[member.key] = try typePlan(answer, member) }
        return plan
    }

    private static func typePlan(_ answer: Answer, _ member: JSON.Member) throws(SluiceError) -> TypePlan {
        let (json, place) = (member.value, "types.\(member.key)")
        try answer.allow(
            ["read", "write", "insert", "delete", "readable_fields", "writable_fields", "role", "check_write", "grants"], in: json,
            at: place)
        let checkWrite = try json["check_write"].map { value throws(SluiceError) in try answer.bool(value, at: "\(place).check_write") }
        let grants = try json["grants"].map { value throws(SluiceError) in try answer.bool(value, at: "\(place).grants") }
        return TypePlan(
            read: try answer.text(json, "read", at: place), write: try answer.text(json, "write", at: place),
            insert: try answer.bool(json["insert"], at: "\(place).insert"),
            delete: try answer.bool(json["delete"], at: "\(place).delete"),
            fields: FieldRights(
                readable: try fields(answer, json["readable_fields"], at: "\(place).readable_fields"),
                writable: try fields(answer, json["writable_fields"], at: "\(place).writable_fields")),
            role: json["role"]?.string ?? answer.plugin, checkWrite: checkWrite ?? false,
            grants: grants ?? true)
    }

    private static func fields(_ answer: Answer, _ json: JSON?, at place: String) throws(SluiceError) -> Set<String>? {
        // Null means all fields.
        guard let json, json != .null else { return nil }
        guard let names = json.array?.map(\.string), !names.contains(nil) else { throw answer.bad("\(place) is no list of names") }
        return Set(names.compactMap { $0 })
    }

    /// Decodes the queries to AND to the requested ones.
    /// - Throws: `pluginBadAnswer`, also for a class that was not asked about.
    static func narrowing(_ answer: Answer, asked: [TypeQuery]) throws(SluiceError) -> [TypeQuery] {
        guard answer.json != .null else { return [] }
        try answer.allow(["queries"], in: answer.json, at: "the answer")
        guard let queries = answer.json["queries"]?.array else { throw answer.bad("it lacks \"queries\"") }
        var narrowed: [TypeQuery] = []
        for (index, query) in queries.enumerated() {
            let place = "queries[\(index)]"
            try answer.allow(["type", "query"], in: query, at: place)
            let type = try answer.text(query, "type", at: place)
            // A restriction of another class would have no effect, so it is an error.
            guard asked.contains(where: { $0.type == type }) else {
                throw answer.bad("\(place): the gateway did not ask for class \(type)")
            }
            narrowed.append(TypeQuery(type: type, query: try answer.text(query, "query", at: place)))
        }
        return narrowed
    }

    /// Decodes the verdicts on writes, one for each write.
    static func writeVerdicts(_ answer: Answer, writes: [ProposedWrite], schema: Schema) throws(SluiceError) -> [WriteVerdict] {
        if try answer.isOne("allow", for: "writes") { return writes.map { _ in .allow } }
        let list = try answer.verdicts("writes", count: writes.count)
        var verdicts: [WriteVerdict] = []
        for (index, json) in list.enumerated() {
            verdicts.append(try writeVerdict(answer, json, write: writes[index], schema: schema, at: "writes[\(index)]"))
        }
        return verdicts
    }

    /// Returns the properties named by a denial, in the order of the class.
    private static func faulty(_ answer: Answer, _ json: JSON?, of type: ObjectType, at place: String) throws(SluiceError) -> [String] {
        guard let names = try fields(answer, json, at: place) else { return [] }
        if let odd = names.filter({ type.index(of: $0) == nil }).min() { throw answer.bad("\(place): \(type.name) has no property \(odd)") }
        return type.properties.map(\.name).filter(names.contains)
    }

    private static func writeVerdict(
        _ answer: Answer, _ json: JSON, write: ProposedWrite, schema: Schema, at place: String
    ) throws(SluiceError) -> WriteVerdict {
        try answer.allow(["verdict", "reason", "rule", "fields", "set"], in: json, at: place)
        switch json["verdict"]?.string {
        case "allow": return .allow
        case "deny":
            return .deny(
                reason: json["reason"]?.string ?? "The rules of the server do not allow this write; it was undone.",
                rule: "plugin \(answer.plugin)" + (json["rule"]?.string.map { ", \($0)" } ?? ""),
                fields: try faulty(answer, json["fields"], of: write.type, at: "\(place).fields"))
        case "amend":
            guard let type = schema[write.type.name], write.operation != .delete else {
                throw answer.bad("\(place) amends a \(write.operation) of \(write.type.name)")
            }
            return .amend(try amendments(answer, json["set"], type: type, schema: schema, at: "\(place).set"))
        default: throw answer.bad("\(place).verdict is not allow, deny or amend")
        }
    }

    private static func amendments(
        _ answer: Answer, _ json: JSON?, type: ObjectType, schema: Schema, at place: String
    ) throws(SluiceError) -> [String: Value] {
        guard let members = json?.members else { throw answer.bad("\(place) is no object") }
        var values: [String: Value] = [:]
        for member in members {
            // The key identifies the row that was checked, so an amendment must not change it.
            guard let index = type.index(of: member.key), index != type.primaryKey else {
                throw answer.bad("\(place).\(member.key) is no property that can be set")
            }
            do { values[member.key] = try ExtendedJSON.value(member.value, property: type.properties[index], schema: schema) } catch {
                throw answer.bad("\(place): \(error.message)")
            }
        }
        return values
    }

    /// Decodes the verdicts on asymmetric objects, one for each object.
    static func ingestVerdicts(
        _ answer: Answer, count: Int, type: ObjectType, schema: Schema
    ) throws(SluiceError) -> [IngestVerdict] {
        if try answer.isOne("accept", for: "objects") { return Array(repeating: .accept, count: count) }
        var verdicts: [IngestVerdict] = []
        for (index, json) in try answer.verdicts("objects", count: count).enumerated() {
            verdicts.append(try ingestVerdict(answer, json, type: type, schema: schema, at: "objects[\(index)]"))
        }
        return verdicts
    }

    private static func ingestVerdict(
        _ answer: Answer, _ json: JSON, type: ObjectType, schema: Schema, at place: String
    ) throws(SluiceError) -> IngestVerdict {
        try answer.allow(["verdict", "object", "objects", "set", "type", "reason"], in: json, at: place)
        switch json["verdict"]?.string {
        case "accept": return try accepted(answer, json, type: type, schema: schema, at: place)
        case "route":
            let name = try answer.text(json, "type", at: place)
            // A wrong target concerns this object only: retrying the call would not help.
            guard let target = schema[name], target.kind == .asymmetric, let object = json["object"] else {
                return .reject(reason: "\(answer.plugin) routed it to \(name), which is no asymmetric type")
            }
            return values(answer, object, type: target, schema: schema) { .route(type: name, values: $0) }
        case "split": return try split(answer, json, schema: schema, at: place)
        case "drop": return .drop(reason: json["reason"]?.string ?? "\(answer.plugin) gives no reason")
        case "reject": return .reject(reason: "\(answer.plugin) rejected it: \(json["reason"]?.string ?? "it gives no reason")")
        default: throw answer.bad("\(place).verdict is not accept, route, split, drop or reject")
        }
    }

    /// Decodes an acceptance: unchanged, as another object, or with members set.
    private static func accepted(
        _ answer: Answer, _ json: JSON, type: ObjectType, schema: Schema, at place: String
    ) throws(SluiceError) -> IngestVerdict {
        let (object, set) = (json["object"] ?? .null, json["set"] ?? .null)
        guard object == .null || set == .null else { throw answer.bad("\(place) has an object and what to set in it") }
        if object != .null { return values(answer, object, type: type, schema: schema) { .transform($0) } }
        if set == .null { return .accept }
        guard let members = set.members else { throw answer.bad("\(place).set is no object") }
        var values: [String: Value] = [:]
        do throws(SluiceError) {
            for member in members {
                guard let index = type.index(of: member.key) else {
                    throw SluiceError(.unknownProperty, "class \(type.name) has no property \(member.key).")
                }
                values[member.key] = try ExtendedJSON.value(member.value, property: type.properties[index], schema: schema)
            }
        } catch { return unfit(answer, error) }
        return .amend(values)
    }

    private static func split(_ answer: Answer, _ json: JSON, schema: Schema, at place: String) throws(SluiceError) -> IngestVerdict {
        guard let objects = json["objects"]?.array else { throw answer.bad("\(place).objects is no array") }
        var parts: [IngestPart] = []
        for (index, part) in objects.enumerated() {
            try answer.allow(["type", "object"], in: part, at: "\(place).objects[\(index)]")
            let name = try answer.text(part, "type", at: "\(place).objects[\(index)]")
            guard let target = schema[name], target.kind == .asymmetric, let object = part["object"] else {
                return .reject(reason: "\(answer.plugin) split it into an object of \(name), which is no asymmetric type")
            }
            let verdict = values(answer, object, type: target, schema: schema) { .route(type: name, values: $0) }
            guard case .route(_, let values) = verdict else { return verdict }
            parts.append(IngestPart(type: name, values: values))
        }
        return .split(parts)
    }

    /// Decodes an object. One that misfits its class is rejected, because a retry would not help.
    private static func values(
        _ answer: Answer, _ object: JSON, type: ObjectType, schema: Schema, _ verdict: ([String: Value]) -> IngestVerdict
    ) -> IngestVerdict {
        do { return verdict(try ExtendedJSON.values(object, type: type, schema: schema)) } catch { return unfit(answer, error) }
    }

    private static func unfit(_ answer: Answer, _ error: SluiceError) -> IngestVerdict {
        .reject(reason: "\(answer.plugin) made it unfit: \(error.message)")
    }

    static func warnings(_ answer: Answer) throws(SluiceError) -> [String] {
        guard answer.json != .null else { return [] }
        try answer.allow(["warnings"], in: answer.json, at: "the answer")
        return (answer.json["warnings"]?.array ?? []).compactMap(\.string)
    }
}

/// A plugin's answer with the context for errors.
struct Answer {
    let plugin: String
    let hook: Hook
    let json: JSON

    /// Parses an answer.
    /// - Throws: `pluginRefused` or `pluginFailed` with the plugin's reason if the status is not `ok`; `pluginBadAnswer` if the text is
    ///   not JSON.
    init(_ answer: HookAnswer, plugin: String, hook: Hook) throws(SluiceError) {
        self.plugin = plugin
        self.hook = hook
        switch answer.status {
        case .ok: break
        case .denied:
            throw SluiceError(.pluginRefused, "\(plugin) refused: \(answer.bytes.isEmpty ? "it gives no reason" : answer.text)")
        case .unusable: throw SluiceError(hostedBytes: answer.bytes)
        case .failed, .late, .overrun:
            throw SluiceError(
                .pluginFailed, "\(plugin) failed in \(hook.name): \(answer.bytes.isEmpty ? "it gives no reason" : answer.text)")
        }
        // Empty output is null: a plugin without restrictions need not write anything.
        do { json = answer.bytes.isEmpty ? .null : try JSON.parse(answer.bytes) } catch {
            throw SluiceError(.pluginBadAnswer, "\(plugin) answered \(hook.name) with a text that is not JSON: \(error.message)")
        }
    }

    func bad(_ what: String) -> SluiceError {
        SluiceError(.pluginBadAnswer, "\(plugin) answered \(hook.name) in a form that cannot be used: \(what)")
    }

    /// Throws `pluginBadAnswer` if `json` is no object or has another key.
    func allow(_ keys: Set<String>, in json: JSON, at place: String) throws(SluiceError) {
        guard let members = json.members else { throw bad("\(place) is no object") }
        if let unknown = members.first(where: { !keys.contains($0.key) }) { throw bad("\(place) has an unknown key \"\(unknown.key)\"") }
    }

    func text(_ json: JSON, _ key: String, at place: String) throws(SluiceError) -> String {
        guard let text = json[key]?.string else { throw bad("\(place).\(key) is no text") }
        return text
    }

    func bool(_ json: JSON?, at place: String) throws(SluiceError) -> Bool {
        guard let bool = json?.bool else { throw bad("\(place) is not true or false") }
        return bool
    }

    /// Returns `true` if the answer is one word for all verdicts.
    func isOne(_ word: String, for key: String) throws(SluiceError) -> Bool {
        guard json[key]?.string == word else { return false }
        try allow([key, "records"], in: json, at: "the answer")
        return true
    }

    /// Returns the list of verdicts. Throws `pluginBadAnswer` unless it has `count` elements.
    func verdicts(_ key: String, count: Int) throws(SluiceError) -> [JSON] {
        try allow([key, "records"], in: json, at: "the answer")
        guard let list = json[key]?.array, list.count == count else {
            throw bad("\"\(key)\" has \(json[key]?.array?.count ?? 0) verdicts instead of \(count)")
        }
        return list
    }
}

extension HookCoding {
    /// Decodes the records of an answer of check_write or ingest.
    /// - Throws: `pluginBadAnswer`.
    static func records(_ answer: Answer) throws(SluiceError) -> [PluginRecord] {
        guard let json = answer.json["records"], json != .null else { return [] }
        guard let list = json.array else { throw answer.bad("\"records\" is no list") }
        var records: [PluginRecord] = []
        for (index, record) in list.enumerated() {
            let place = "records[\(index)]"
            try answer.allow(["stream", "key", "record"], in: record, at: place)
            let stream = try answer.text(record, "stream", at: place)
            guard (1...100).contains(stream.utf8.count), stream.utf8.allSatisfy(isOfName) else {
                throw answer.bad("\(place).stream is no name: letters, digits, - and _")
            }
            records.append(
                PluginRecord(plugin: answer.plugin, stream: stream, key: record["key"]?.string, record: record["record"] ?? .null))
        }
        return records
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        byte == 45 || byte == 95 || (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
    }
}
