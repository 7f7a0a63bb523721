import SluiceCore
import SluicePorts
import Testing

/// Fields that roles name and their class lacks.
@Suite struct `Fields that a class lacks` {
    private static let filters = #""document_filters": {"read": true, "write": true}"#

    private static func role(_ members: String) -> String {
        "[{\"name\": \"r\",\n\(members.contains("apply_when") ? "" : "\"apply_when\": true, ")\(members)}]"
    }

    /// A role's members, the text of the mistake, and the place that it names.
    static let mistakes: [(String, String, String)] = [
        (
            #""document_filters": {"read": {"owner_idd": "%%user.id"}, "write": false}"#, #"owner_idd; did you mean "owner_id"?"#,
            "document_filters.read"
        ),
        (
            #""document_filters": {"read": true, "write": {"$or": [{"open": true}, {"temm": "x"}]}}"#, #"temm; did you mean "team"?"#,
            "document_filters.write"
        ),
        (
            #""document_filters": {"read": {"%%user.id": {"$in": ["%%root.ownr_id"]}}, "write": false}"#,
            #"ownr_id; did you mean "owner_id"?"#, "document_filters.read"
        ),
        (
            #""document_filters": {"read": {"place.ctiy": "x"}, "write": false}"#, #"place.ctiy; did you mean "place.city"?"#,
            "document_filters.read"
        ),
        (
            #""document_filters": {"read": {"$not": {"sise": {"$gt": 3}}}, "write": false}"#, #"sise; did you mean "size"?"#,
            "document_filters.read"
        ),
        (#""apply_when": {"owner": "%%user.id"}, \#(filters)"#, "owner", "apply_when"),
        (#""apply_when": {"%%root.ownr_id": "%%user.id"}, \#(filters)"#, #"ownr_id; did you mean "owner_id"?"#, "apply_when"),
        (#""insert": {"owner": "red"}, \#(filters)"#, "owner", "insert"),
        (#""delete": {"%%user.id": "%%prevRoot.ownr_id"}, \#(filters)"#, #"ownr_id; did you mean "owner_id"?"#, "delete"),
        (#""search": {"temm": "x"}, \#(filters)"#, #"temm; did you mean "team"?"#, "search"),
        (#""read": {"temm": "x"}, \#(filters)"#, #"temm; did you mean "team"?"#, "read"),
        (#""check_write": {"%%root.ownr_id": "x"}, \#(filters)"#, #"ownr_id; did you mean "owner_id"?"#, "check_write"),
        (#""check_write": {"%%root.address.spot.z": 1}, \#(filters)"#, #"address.spot.z; did you mean "address.spot.x"?"#, "check_write"),
        (#""check_write": {"%%prevRoot.places.0.ctiy": 1}, \#(filters)"#, #"places.0.ctiy; did you mean "places.0.city"?"#, "check_write"),
        (
            #""fields": {"titel": {"read": false}}, "additional_fields": {"read": true}, \#(filters)"#, #"titel; did you mean "title"?"#,
            "fields"
        ),
        (#""fields": {"place": {"fields": {"ctiy": {"read": true}}}}, \#(filters)"#, #"place.ctiy; did you mean "place.city"?"#, "fields"),
        (#""fields": {"title": {"write": {"temm": 1}}}, \#(filters)"#, #"temm; did you mean "team"?"#, "fields.title.write"),
    ]

    @Test(arguments: mistakes) func `are refused with file, line and suggestion`(members: String, text: String, place: String) async {
        let refusal = await App(roles: Self.role(members)).refusal ?? "not refused"
        #expect(refusal.contains("\(App.rulesPath) line 2: Task has no field \(text)"), "\(refusal)")
        #expect(refusal.contains("(in \(place) of role \"r\")"), "\(refusal)")
    }

    @Test(arguments: mistakes) func `are warnings while the app is developed, since a client may bring them`(
        members: String, text: String, place: String
    ) async throws {
        let app = App(roles: Self.role(members)).inDevelopment
        #expect(await app.refusal == nil)
        #expect(try await app.warnings.contains { $0.contains("Task has no field \(text)") && $0.contains("(in \(place) of role \"r\")") })
    }

    @Test(arguments: [
        #""check_write": {"%%root.extra.anything": 1}, \#(filters)"#, #""check_write": {"%%root.places.city": "x"}, \#(filters)"#,
        #""check_write": {"%%root.collaborators.0": "x"}, \#(filters)"#, #""check_write": {"%%root": {"$exists": true}}, \#(filters)"#,
        #""document_filters": {"read": {"tag": {"$binary": {"base64": "AAAA", "subType": "00"}}}, "write": false}"#,
        #""document_filters": {"read": {"owner_id": "%%user.custom_data.any.thing"}, "write": false}"#,
        #""apply_when": {"%function": {"name": "f", "arguments": [{"none": 1}]}}, \#(filters)"#,
    ]) func `are no fields of other values`(members: String) async {
        let refusal = await App(roles: Self.role(members)).refusal
        #expect(refusal?.contains("has no field") != true, "\(refusal ?? "")")
    }

    @Test func `in a default role are refused when no class that it is for has them`() async throws {
        let role = { (field: String) in
            #"[{"name": "d", "apply_when": true, "read": true, "document_filters": {"read": {"\#(field)": "%%user.id"}, "write": false}}]"#
        }
        let refusal = await App(defaults: role("owner_idd")).refusal ?? "not refused"
        #expect(refusal.contains("data_sources/main/default_rule.json line 1: "), "\(refusal)")
        #expect(refusal.contains(#"has no field owner_idd; did you mean "owner_id"?"#), "\(refusal)")
        // Task has it; the others deny, which is said.
        let some = App(defaults: role("team"))
        #expect(await some.refusal == nil)
        #expect(try await some.plan(for: user("ann"))["Note"].read == "FALSEPREDICATE")
        #expect(try await some.task(for: user("ann")).read.contains("team == "))
        let warnings = try await some.warnings
        for type in ["Note", "Event"] { #expect(warnings.contains { $0.contains("\(type) has no field team") }, "\(warnings)") }
    }

    @Test func `of custom user data are warned of where a table determines them`() async throws {
        var app = App.filters(read: #"{"team": "%%user.custom_data.temm"}"#, write: "false")
        #expect(try await !app.warnings.contains { $0.contains("temm") })
        app.customDataFields = ["_id", "team"]
        let warnings = try await app.warnings
        #expect(warnings.contains { $0.contains(#"has no column temm; did you mean "%%user.custom_data.team"?"#) }, "\(warnings)")
    }
}
