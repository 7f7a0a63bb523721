import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceValues
import Testing

@Suite struct `Filters as queries` {
    @Test(arguments: [
        (#"{"size": 3}"#, "size == 3"), (#"{"size": {"$ne": 3}}"#, "size != 3"),
        (#"{"size": {"$gt": 1, "$lte": 5}}"#, "size > 1 AND size <= 5"),
        (#"{"size": {"$gte": 1}, "open": true}"#, "size >= 1 AND open == true"), (#"{"size": {"$in": [1, 2]}}"#, "size IN {1, 2}"),
        (#"{"size": {"$in": []}}"#, "FALSEPREDICATE"), (#"{"size": {"$nin": [1, 2]}}"#, "NOT (size IN {1, 2})"),
        (#"{"size": {"$nin": []}}"#, "TRUEPREDICATE"), (#"{"size": {"$exists": true}}"#, "size != NULL"),
        (#"{"size": null}"#, "size == NULL"),
        (#"{"collaborators": {"$exists": false}}"#, "collaborators.@size == 0"),
        (#"{"collaborators": {"$ne": "x"}}"#, #"NOT (ANY collaborators == "x")"#),
        (#"{"collaborators": {"$in": ["x", "y"]}}"#, #"ANY collaborators == "x" OR ANY collaborators == "y""#),
        (#"{"collaborators": {"$all": ["%%user.id"]}}"#, #"ANY collaborators == "ann""#),
        (#"{"collaborators": {"$all": ["x", "y"]}}"#, #"ANY collaborators == "x" AND ANY collaborators == "y""#),
        (#"{"collaborators": {"$not": {"$all": ["x", "y"]}}}"#, #"NOT (ANY collaborators == "x" AND ANY collaborators == "y")"#),
        (#"{"collaborators": {"$all": []}}"#, "FALSEPREDICATE"), (#"{"size": {"$all": [1]}}"#, "size == 1"),
        (#"{"$nor": [{"size": 1}, {"size": 2}]}"#, "NOT (size == 1 OR size == 2)"), (#"{"%not": {"%not": {"size": 1}}}"#, "size == 1"),
        (#"{"$and": [{"size": 1}, {"$or": [{"open": true}, {"team": "a"}]}]}"#, #"size == 1 AND (open == true OR team == "a")"#),
        (#"{"size": {"$not": {"$lt": 4}}}"#, "NOT (size < 4)"),
        (#"{"ref": {"$oid": "507f1f77bcf86cd799439011"}}"#, "ref == oid(507f1f77bcf86cd799439011)"),
        (#"{"tag": {"%stringToUuid": "D6B5A2C0-1111-4222-8333-444455556666"}}"#, "tag == uuid(d6b5a2c0-1111-4222-8333-444455556666)"),
        (#"{"day": {"$gt": {"$date": "2024-02-29T12:00:00.25Z"}}}"#, "day > T1709208000:250000000"),
        (#"{"day": {"$lt": {"$date": {"$numberLong": "-1500"}}}}"#, "day < T-1:-500000000"),
        (#"{"account": {"$gte": {"$numberDecimal": "0.10"}}}"#, "account >= 0.10"),
        (#"{"%%user.id": "ann", "size": 1}"#, "size == 1"), (#"{"%%user.id": "bob", "size": 1}"#, "FALSEPREDICATE"),
        (#"{"$or": [{"%%user.id": "ann"}, {"size": 1}]}"#, "TRUEPREDICATE"),
        (#"{"team": "%%user.custom_data.none"}"#, "FALSEPREDICATE"), (#"{"team": {"$ne": "%%user.custom_data.none"}}"#, "FALSEPREDICATE"),
        (#"{"%not": {"team": "%%user.custom_data.none"}}"#, "FALSEPREDICATE"),
        (#"{"team": {"$nin": "%%user.custom_data.none"}}"#, "FALSEPREDICATE"),
        (#"{"team": {"$in": ["a", "%%user.custom_data.none"]}}"#, #"team == "a""#),
        (#"{"team": {"$nin": ["a", "%%user.custom_data.none"]}}"#, "FALSEPREDICATE"),
        (#"{"$or": [{"team": "%%user.custom_data.none"}, {"owner_id": "%%user.id"}]}"#, #"owner_id == "ann""#),
        (#"{"ref": {"%stringToOid": "%%user.id"}}"#, "FALSEPREDICATE"), (#"{"size": "%%user.id"}"#, "FALSEPREDICATE"),
        (#"{"tag": {"%stringToUuid": "d6b5a2c0-1111-4222-8333-44445555666"}}"#, "FALSEPREDICATE"),
        (#"{"%not": {"tag": {"%stringToUuid": "d6b5"}}}"#, "FALSEPREDICATE"),
        (#"{"team": "%%user.data.email"}"#, #"team == "ann@example.com""#), (#"{"team": {"$ne": "%%user.data.name"}}"#, "FALSEPREDICATE"),
        (#"{"%%user.type": "normal", "size": 1}"#, "size == 1"), (#"{"%%user.type": "server", "size": 1}"#, "FALSEPREDICATE"),
        (#"{"team": {"$in": ["%%user.type"]}}"#, #"team == "normal""#),
        (#"{"open": "%%true"}"#, "open == true"), (#"{"open": {"$ne": "%%false"}}"#, "open != false"),
        (#"{"size": "%%true"}"#, "FALSEPREDICATE"),
        (#"{"%%true": true, "size": 1}"#, "size == 1"), (#"{"%%false": true}"#, "FALSEPREDICATE"),
        (#"{"%%true": "%%false"}"#, "FALSEPREDICATE"),
        (#"{"$or": [{"%%false": false}, {"size": 1}]}"#, "TRUEPREDICATE"),
    ])
    func `say the same`(filter: String, query: String) async throws {
        let text = try await App.query(filter)
        #expect(text == query)
        // The gateway takes it as it is.
        let type = try #require(App.schema["Task"])
        _ = try Query.parse(text).predicate(on: type, in: App.schema)
    }

    /// Beyond App Services: texts that the partition values of older apps were made of.
    @Test(arguments: [
        (#"{"team": {"%concat": ["user=", "%%user.id"]}}"#, #"team == "user=ann""#),
        (#"{"team": {"$ne": {"%concat": ["%%user.id", "-", "%%user.type"]}}}"#, #"team != "ann-normal""#),
        (#"{"team": {"$in": {"%concat": ["team=", "%%user.custom_data.teams", "!"]}}}"#, #"team IN {"team=a!", "team=b!"}"#),
        (#"{"team": {"$in": ["PUBLIC", {"%concat": ["user=", "%%user.id"]}]}}"#, #"team IN {"PUBLIC", "user=ann"}"#),
        (#"{"team": {"%concat": ["user=", "%%user.custom_data.none"]}}"#, "FALSEPREDICATE"),
        (#"{"%not": {"team": {"%concat": ["user=", "%%user.custom_data.none"]}}}"#, "FALSEPREDICATE"),
        (#"{"team": {"$nin": {"%concat": ["t", "%%user.custom_data.mixed"]}}}"#, "FALSEPREDICATE"),
        (#"{"team": {"$in": {"%concat": ["t", "%%user.custom_data.mixed"]}}}"#, #"team == "ta""#),
        (#"{"team": {"%concat": ["n", "%%user.custom_data.number"]}}"#, "FALSEPREDICATE"),
        (#"{"team": {"$in": {"%concat": ["%%user.custom_data.teams", "%%user.custom_data.teams"]}}}"#, "FALSEPREDICATE"),
        (#"{"team": {"$in": {"%concat": ["t", "%%user.custom_data.empty"]}}}"#, "FALSEPREDICATE"),
    ])
    func `join texts by %concat`(filter: String, query: String) async throws {
        let data = #"{"teams": ["a", "b"], "mixed": ["a", 1], "number": 3, "empty": []}"#
        #expect(try await App.query(filter, for: user("ann", data)) == query)
    }

    @Test(
        arguments: [
            (#"a\"b"#, #"B64"YSJi""#), (#"a'b"#, #"B64"YSdi""#), (#"a\\b"#, #"B64"YVxi""#), (#"a\nb"#, #"B64"YQpi""#), ("", #""""#),
            ("x OR TRUEPREDICATE", #""x OR TRUEPREDICATE""#), ("Zoë 日本", #""Zoë 日本""#), (#"\") OR TRUEPREDICATE OR (team == \""#, nil),
        ] as [(String, String?)])
    func `a user's text cannot become query language`(text: String, literal: String?) async throws {
        let query = try await App.query(#"{"team": "%%user.custom_data.team"}"#, for: user("ann", #"{"team": "\#(text)"}"#))
        let parsed = try Query.parse(query).predicate(on: try #require(App.schema["Task"]), in: App.schema)
        let decoded = try JSON.parse("\"\(text)\"").string ?? ""
        #expect(parsed.bound == .test(.property(2), Test(.equal, .string(decoded))))
        if let literal {
            #expect(query == "team == \(literal)")
        } else {
            #expect(query.hasPrefix("team == B64\""))
            #expect(!query.contains("TRUEPREDICATE"))
        }
    }

    @Test func `a user's list may hold what a query cannot compare with`() async throws {
        let query = try await App.query(
            #"{"team": {"$in": "%%user.custom_data.teams"}}"#, for: user("ann", #"{"teams": ["a", null, 3, {"x": 1}, "b"]}"#))
        #expect(query == #"team IN {"a", "b"}"#)
        let negated = try await App.query(
            #"{"team": {"$nin": "%%user.custom_data.teams"}}"#, for: user("ann", #"{"teams": ["a", 3]}"#))
        #expect(negated == "FALSEPREDICATE")
    }

    private static let id = "507f1f77bcf86cd799439011"
    private static let tag = "01234567-89ab-cdef-0123-456789abcdef"

    @Test(arguments: [
        // With the types that a table's columns have, or as the plain JSON that has none.
        ("ref", #"{"$oid": "\#(id)"}"#, "ref == oid(\(id))"), ("ref", #""\#(id.uppercased())""#, "ref == oid(\(id))"),
        ("ref", #""twelve chars""#, nil), ("ref", #"{"$uuid": "\#(tag)"}"#, nil),
        ("tag", #"{"$uuid": "\#(tag)"}"#, "tag == uuid(\(tag))"), ("tag", #""\#(tag)""#, "tag == uuid(\(tag))"), ("tag", #""\#(id)""#, nil),
        ("day", #"{"$date": "2026-03-01T12:30:00.25Z"}"#, "day == T1772368200:250000000"),
        ("day", #""2026-03-01T14:30:00+02:00""#, "day == T1772368200:0"), ("day", #""yesterday""#, nil), ("day", "1772368200", nil),
        ("account", #"{"$numberDecimal": "12.50"}"#, "account == 12.50"), ("account", #""12.50""#, nil),
        ("size", #"{"$numberDecimal": "9007199254740993"}"#, "size == 9007199254740993"),
        ("ratio", #"{"$numberDecimal": "0.10"}"#, "ratio == 0.1"), ("size", #"{"$numberDecimal": "0.1000000000000000001"}"#, nil),
        ("team", #"{"$oid": "\#(id)"}"#, nil), ("extra", #""\#(id)""#, #"extra == "\#(id)""#),
    ])
    func `custom data meet a field by its type`(field: String, value: String, literal: String?) async throws {
        let asking = user("ann", #"{"v": \#(value)}"#)
        let expected = literal ?? "FALSEPREDICATE"
        #expect(try await App.query(#"{"\#(field)": "%%user.custom_data.v"}"#, for: asking) == expected)
        #expect(try await App.query(#"{"\#(field)": {"$in": ["%%user.custom_data.v"]}}"#, for: asking) == expected)
        let listed = user("ann", #"{"v": [\#(value)]}"#)
        #expect(try await App.query(#"{"\#(field)": {"$in": "%%user.custom_data.v"}}"#, for: listed) == expected)
        // What is not known lets nobody in by its negation, either.
        let other = try await App.query(#"{"\#(field)": {"$ne": "%%user.custom_data.v"}}"#, for: asking)
        #expect(other == (literal?.replacing("==", with: "!=") ?? "FALSEPREDICATE"))
    }
}

@Suite struct `Roles that sync cannot use` {
    @Test(arguments: [
        (#"{"title": "x"}"#, "title is not a queryable field"), (#"{"place.city": "x"}"#, "place.city is inside an embedded object"),
        (#"{"place": null}"#, "place is embedded:Place"),
        (#"{"%%root.team": "x"}"#, "%%root.team is not available in sync"),
        (#"{"%%true": {"%function": {"name": "f"}}}"#, "%function \"f\" is not available in sync"),
        (#"{"%function": {"name": "f", "arguments": []}}"#, "%function \"f\" is not available in sync"),
        (#"{"team": {"$eq": {"%function": {"name": "f"}}}}"#, "%function \"f\" is not available in sync"),
        (#"{"$not": {"team": {"%function": {}}}}"#, "%function is not available in sync"),
        (#"{"team": "%%request.remoteIPAddress"}"#, "not available in sync"),
        (#"{"team": "%%args.team"}"#, "%%args.team is not available in sync"), (#"{"%%args": "x"}"#, "%%args is not available in sync"),
        (#"{"team": "%%partition"}"#, "%%partition is not available in sync"),
        (#"{"%%partition": "x"}"#, "%%partition is not available in sync"),
        (#"{"team": "%%prev"}"#, "%%prev is not available in sync"), (#"{"%%prev.team": "x"}"#, "%%prev.team is not available in sync"),
        (#"{"size": "%%this"}"#, "%%this is not available in sync"), (#"{"%%this": 3}"#, "%%this is not available in sync"),
        (#"{"%not": {"team": "%%args.team"}}"#, "%%args.team is not available in sync"),
        (#"{"team": 3}"#, "team is string and is compared with a number"),
        (#"{"ref": "507f1f77bcf86cd799439011"}"#, "ref is objectId and is compared with a string"),
        (#"{"collaborators": ["a"]}"#, "collaborators is string and is compared with a list"),
    ])
    func `for their filters`(filter: String, reason: String) async throws {
        let app = App.filters(read: filter, write: "false")
        let plan = try await app.task(for: user("ann"))
        #expect(plan.read == "FALSEPREDICATE")
        #expect(plan.role.contains(reason), "\(plan.role)")
        #expect(try await app.warnings.contains { $0.contains("role \"all\" is not sync compatible and denies") && $0.contains(reason) })
    }

    @Test(arguments: [
        (#""read": {"%%user.id": "x"}"#, "read is not true or false"), (#""write": "%%true""#, "write is not true or false"),
        (#""fields": {"_id": {"read": true}}"#, "the primary key has no permissions of its own"),
        (#""fields": {"title": {"write": {}}}"#, "fields.title.write is not true or false"),
        (#""fields": {"place": {"fields": {"city": {"read": {}}}}}"#, "fields.place.fields.city.read is not true or false"),
        (#""fields": {"place": {"fields": {}, "additional_fields": {"read": {}}}}"#, "fields.place.additional_fields is not true"),
        (#""insert": {"title": "red"}"#, "insert: title is not a queryable field"),
        (#""insert": {"team": 3}"#, "insert: team is string and is compared with a number"),
        (#""delete": {"%%prevRoot.team": "red"}"#, "%%prevRoot.team is not available"),
    ])
    func `for their permissions`(members: String, reason: String) async throws {
        let app = App(roles: #"[{"name": "r", "apply_when": true, "document_filters": {"read": true, "write": true}, \#(members)}]"#)
        let plan = try await app.task(for: user("ann"))
        #expect(plan.read == "FALSEPREDICATE" && plan.write == "FALSEPREDICATE")
        #expect(plan.role.contains(reason), "\(plan.role)")
    }
}

@Suite struct `Rule files that are refused` {
    private func refusal(_ role: String) async -> String {
        await App(roles: "[\n\(role)\n]").refusal ?? "not refused"
    }

    @Test(arguments: [
        (#"{"name": "a", "apply_when": true, "document_filter": {}}"#, #"unknown key "document_filter"; did you mean "document_filters"?"#),
        (#"{"name": "a", "apply_when": true, "fields": {"title": {"reed": true}}}"#, #"unknown key "reed"; did you mean "read"?"#),
        (#"{"name": "a", "apply_when": true, "document_filters": {"wirte": true}}"#, #"unknown key "wirte"; did you mean "write"?"#),
        (#"{"name": "a", "apply_when": {"%%user.id%%": "x"}}"#, "there is no %%user.id%%"),
        (#"{"name": "a", "apply_when": {"%%user.customdata.x": 1}}"#, #"did you mean "%%user.custom_data"?"#),
        (#"{"name": "a", "apply_when": {"%%usr.id": 1}}"#, #"did you mean "%%user"?"#),
        (#"{"name": "a", "apply_when": {"%%user.id": {"$equals": 1}}}"#, "there is no operator $equals"),
        (#"{"name": "a", "apply_when": {"$ro": []}}"#, "there is no operator $ro"),
        (#"{"name": "a", "apply_when": {"%%values.none": 1}}"#, #"there is no value "none""#),
        (#"{"name": "a", "apply_when": {"%%user.id": {"$in": "x"}}}"#, "$in takes a list"),
        (#"{"name": "a", "apply_when": {"%%user.id": {"$all": "x"}}}"#, "$all takes a list"),
        (#"{"name": "a", "apply_when": {"%%user.id": {"$regex": "x"}}}"#, "the operator $regex of MongoDB is not supported"),
        (#"{"name": "a", "apply_when": {}, "insert": {"$where": "x"}}"#, "the operator $where of MongoDB is not supported"),
        (#"{"name": "a", "apply_when": true, "document_filters": {"read": {"team": "%%environment.x"}}}"#, "there is no %%environment.x"),
        (#"{"name": "a", "apply_when": true, "document_filters": {"read": {"%%environment.x": 1}}}"#, "there is no %%environment.x"),
        (#"{"name": "a", "apply_when": true, "document_filters": {"read": {"%%true.x": 1}}}"#, "there is no %%true.x"),
        ("{\"name\": \"\(String(repeating: "a", count: 101))\", \"apply_when\": true}", #"needs a "name" of 1 to 100 characters"#),
        (#"{"name": "", "apply_when": true}"#, #"needs a "name" of 1 to 100 characters"#),
        (#"{"name": "a", "apply_when": "yes"}"#, "an expression is true, false or an object"),
        (#"{"apply_when": true}"#, #"needs a "name""#), (#"{"name": "a"}"#, #"lacks "apply_when""#),
        (#"{"name": "a", "apply_when": true}, {"name": "a", "apply_when": true}"#, "two roles are called \"a\""),
        (#"{"name": "a", "apply_when": true, "apply_when": false}"#, "is given twice"),
    ])
    func `name the place and the fix`(role: String, text: String) async {
        let message = await refusal(role)
        #expect(message.contains(text), "\(message)")
        #expect(message.contains("\(App.rulesPath) line "), "\(message)")
    }

    @Test func `point at the line`() async {
        let message = await refusal("{\"name\": \"a\",\n\"apply_when\": true,\n\"document_filters\": {\n\"read\": {\"$eqq\": 1}}}")
        #expect(message.contains("\(App.rulesPath) line 5: there is no operator $eqq; did you mean \"$eq\"?"), "\(message)")
    }

    @Test func `name all mistakes at once`() async {
        let message = await refusal(#"{"name": "a", "apply_when": true, "reed": true, "wirte": true}"#)
        #expect(message.contains("reed") && message.contains("wirte"))
    }

    @Test func `two collections cannot have one title`() async {
        let app = App(roles: "[]").with("data_sources/main/app/other/schema.json", #"{"title": "Task"}"#)
        #expect(await app.refusal?.contains("another collection has the title \"Task\"") == true)
    }
}
