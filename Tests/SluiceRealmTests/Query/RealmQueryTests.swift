import SluiceCore
import SluiceQuery
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

@Suite struct `Queries of Realm clients` {
    private static let schema = Schema([
        ClientQueryWriter.type, ObjectType(name: "Team", properties: [Property(id: 1, name: "_id", type: .int)]),
    ])

    private func predicates(_ texts: (type: String, text: String)...) throws(SluiceError) -> [Predicate] {
        let body = RealmQueryBody(texts.map { RealmQueryBody.Text($0.type, $0.text) })
        return try body.predicates(in: Self.schema, fields: ClientQueryWriter.fields)
    }

    // MARK: The body

    @Test(
        arguments: [
            ("{}", []), (#"{"Item":"(number > 5)"}"#, [("Item", "(number > 5)")]),
            (
                #"{"Item":"(name == \"A\") OR (name == \"B\")","Team":"(TRUEPREDICATE)"}"#,
                [("Item", #"(name == "A") OR (name == "B")"#), ("Team", "(TRUEPREDICATE)")]
            ),
        ] as [(String, [(String, String)])])
    func `a body has a text for each class`(body: String, texts: [(String, String)]) throws {
        #expect(try RealmQueryBody.parse(Array(body.utf8)) == RealmQueryBody(texts.map { RealmQueryBody.Text($0.0, $0.1) }))
    }

    @Test(arguments: ["", "[]", "{", #"{"Item":5}"#, #"{"Item":"a","Item":"b"}"#, "{\"Item\":\"\u{0}\"}", #""text""#])
    func `a body of another form is a malformed message`(body: String) {
        let error = #expect(throws: SluiceError.self) { try RealmQueryBody.parse(Array(body.utf8)) }
        #expect(error?.code == .badSyntax)
    }

    // MARK: Texts

    @Test(arguments: [
        ("(number > 2)", "number >= 3"), ("(number IN {3, 2, 1})", "number IN {1, 2, 3}"), ("(tags.@size > 1)", "tags.@count > 1"),
        (#"(name == B64"YSJi")"#, #"name == B64"YSJi""#), ("(at == T1672628645:6)", "at == 2023-01-02@03:04:05:6"),
        ("(name == NULL)", "name == nil"), ("!(number == 1 and flag == true)", "NOT (number == 1 && flag == true)"),
        ("(owner == uuid(00000000-0000-0007-0000-000000000000))", "owner = uuid(00000000-0000-0007-0000-000000000000)"),
        ("(store == oid(65bb00000000000000000abc))", "store = oid(65BB00000000000000000ABC)"),
        ("(number between {1, 3})", "number BETWEEN {1, 3}"), ("(number == 1) OR (number == 2)", "number == 1 || number == 2"),
        ("(TRUEPREDICATE)", "TRUEPREDICATE"),
    ])
    func `a client's form means the same as ours`(client: String, ours: String) throws {
        let predicate = try #require(try predicates((type: "Item", text: client)).first)
        let same = try Query.parse(ours).predicate(on: ClientQueryWriter.type, in: Self.schema)
        for number in -1...5 {
            for name in [Value.null, .string("a\"b")] {
                for at in [Timestamp(seconds: 1_672_628_645, nanoseconds: 6), Timestamp(seconds: 0)] {
                    let values: [String: Value] = [
                        "number": .int(Int64(number)), "name": name, "at": .timestamp(at), "flag": .bool(number == 1),
                        "owner": .uuid(UUIDBytes(high: 7, low: 0)), "store": .objectId(ChangesetVector.objectId),
                        "tags": .list(Array(repeating: .string("t"), count: max(0, number))),
                    ]
                    #expect(predicate.matches(values) == same.matches(values), "\(values)")
                }
            }
        }
    }

    @Test(arguments: [
        ("(number > 3 SORT(name ASC) LIMIT(5))", ErrorCode.querySort, "SORT"), ("(number > 3 LIMIT(5))", .queryLimit, "LIMIT"),
        (#"(number > 3) OR (name == "x (SORT(y ASC))" DISTINCT(name))"#, .queryDistinct, "DISTINCT"),
        ("(TRUEPREDICATE limit(1))", .queryLimit, "LIMIT"),
    ])
    func `a suffix inside a subscription is refused by its name`(text: String, code: ErrorCode, word: String) {
        let error = #expect(throws: SluiceError.self) { try predicates((type: "Item", text: text)) }
        #expect(error?.code == code)
        let answer = error.map { RealmQueryBody.queryErrorText($0) }
        #expect(answer == #"Invalid query: unsupported query for table "Item": \#(word) is not allowed in a subscription"#)
    }

    @Test(arguments: [
        ("number > 3 LIMIT(5)", ErrorCode.queryLimit), ("number > 3 SORT(name ASC)", .querySort), ("(number >", .querySyntax),
        (#"(number > "SORT(" 3)"#, .querySyntax), ("(missing == 1)", .queryUnknownProperty), ("(number == oid(x))", .querySyntax),
        ("(@links.@count == 1)", .queryBacklinks),
    ])
    func `any other unusable text is refused by the query language`(text: String, code: ErrorCode) throws {
        let error = try #require(#expect(throws: SluiceError.self) { try predicates((type: "Item", text: text)) })
        #expect(error.code == code)
        let answer = RealmQueryBody.queryErrorText(error)
        #expect(answer.hasPrefix("Invalid query: ") && !answer.contains("\n"), "\(answer)")
    }

    @Test func `an unknown class and a field that is not queryable are named`() throws {
        let unknown = try #require(#expect(throws: SluiceError.self) { try predicates((type: "Itam", text: "(TRUEPREDICATE)")) })
        #expect(unknown.code == .querySubscribedTypeUnknown)
        #expect(RealmQueryBody.queryErrorText(unknown) == "Invalid query: the app has no class 'Itam'. Did you mean 'Item'?")
        let body = RealmQueryBody([RealmQueryBody.Text("Item", "(number > 3)")])
        let error = try #require(
            #expect(throws: SluiceError.self) { try body.predicates(in: Self.schema, fields: QueryableFields(global: ["name"])) })
        #expect(error.code == .queryNotQueryable)
        #expect(
            RealmQueryBody.queryErrorText(error)
                == #"Invalid query: unsupported query for table "Item": key "number" is not a queryable field"#)
    }

    @Test func `a set of texts beyond the limit is refused`() {
        let long = "(name == \"\(String(repeating: "x", count: Limits.queryBytes))\")"
        let error = #expect(throws: SluiceError.self) { try predicates((type: "Item", text: long)) }
        #expect(error?.code == .queryTooLarge)
    }

    // MARK: Properties

    @Test(arguments: seeds(20)) func `a text in a client's form has its meaning`(seed: UInt64) throws {
        var writer = ClientQueryWriter(random: SplitMix64(seed: seed))
        for _ in 0..<rounds(50, soak: 1_000) {
            let parts = (0...writer.random.below(2)).map { _ in writer.condition() }
            let text = parts.map { "(\($0.text))" }.joined(separator: " OR ")
            let predicate = try #require(try predicates((type: "Item", text: text)).first, "seed \(seed): \(text)")
            for _ in 0..<10 {
                let sample = writer.sample()
                let expected = parts.contains { $0.meaning(sample) }
                #expect(predicate.matches(sample.values) == expected, "seed \(seed): \(text) on \(sample)")
            }
        }
    }
}
