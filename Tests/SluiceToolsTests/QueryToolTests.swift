import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import Testing

struct QueryToolTests {
    private static func explanation(_ query: String, indexed: String? = nil) throws -> QueryExplanation {
        let tool = try QueryTool(schema: try Kennel.schema(), type: "Dog", arguments: [.int(4)])
        return try QueryExplanation(query, tool, try tool.fields(queryable: nil, indexed: indexed))
    }

    private static func refusal(_ query: String, type: String = "Dog", queryable: [String]?, indexed: String? = nil) throws -> SluiceError?
    {
        let tool = try QueryTool(schema: try Kennel.schema(), type: type)
        let fields = try tool.fields(queryable: queryable, indexed: indexed)
        do throws(SluiceError) { _ = try tool.check(query, fields) } catch { return error }
        return nil
    }

    @Test func `checks what a gateway would check`() throws {
        #expect(try Self.refusal("age > 3", queryable: ["age"]) == nil)
        #expect(try Self.refusal("_id == nil", queryable: []) == nil)
        #expect(try Self.refusal("age > 3 and 'x' IN tags", queryable: nil) == nil)
        #expect(try Self.refusal("age > 3", queryable: ["name"])?.code == .queryNotQueryable)
        #expect(try Self.refusal("name == 'x'", queryable: ["name"], indexed: "age")?.code == .queryIndexedFieldMissing)
        #expect(try Self.refusal("age IN {1, 2} and name == 'x'", queryable: ["name"], indexed: "age") == nil)
        #expect(try Self.refusal("owner.name == 'x'", queryable: nil)?.code == .queryLinkPath)
        #expect(try Self.refusal("owner == nil", queryable: nil)?.code == .queryNotQueryable)
        #expect(try Self.refusal("loudness > 1", type: "Bark", queryable: nil)?.code == .queryAsymmetric)
        #expect(try Self.refusal("city == 'x'", type: "Address", queryable: nil)?.code == .queryEmbedded)
        let long = "name == '\(String(repeating: "x", count: Limits.queryBytes))'"
        #expect(try Self.refusal(long, queryable: nil)?.code == .queryTooLarge)
    }

    @Test func `knows no field that the class does not have, and no index of a link or a list`() throws {
        for (queryable, indexed) in [(["agee"], nil), (nil, "agee"), (nil, "owner"), (nil, "tags"), (nil, "weight")]
            as [([String]?, String?)]
        {
            let error = #expect(throws: SluiceError.self) { try Self.refusal("age > 3", queryable: queryable, indexed: indexed) }
            #expect(error?.code == .configInvalid)
        }
        let word = #expect(throws: SluiceError.self) { try Self.refusal("age > 3", queryable: ["age", "Sort"]) }
        #expect(word?.code == .configInvalid && word?.message == "'Sort' is a word of the query language.")
        let error = #expect(throws: SluiceError.self) { try QueryTool(schema: try Kennel.schema(), type: "Dogg") }
        #expect(error?.fix == "Did you mean 'Dog'?")
    }

    @Test func `explains a query by tree, types, SQL and index form`() throws {
        let text = try Self.explanation("age IN {1, 2} and weight > $0", indexed: "age").text
        for part in [
            "age IN {1, 2} and weight > 4", "Dog.weight (double)", "PostgreSQL\n    SELECT * FROM \"Dog\" AS t0\n    WHERE ",
            "$2 = 4.0 (double)", "SQLite\n    SELECT * FROM",
            "index form, by age\n    key 1: weight > 4.0\n    key 2: weight > 4.0",
        ] {
            #expect(text.contains(part), "\(text)")
        }
    }

    @Test func `explains a query that cannot be subscribed to`() throws {
        let explanation = try Self.explanation("owner.name == 'Ann' SORT(age ASC)")
        #expect(explanation.text.contains("sort by Dog.age ascending"), "\(explanation.text)")
        #expect(explanation.text.contains("none, as it cannot be subscribed to: query-link-path (326)"), "\(explanation.text)")
        #expect(explanation.answer["ok"] == true)
        #expect(explanation.answer["index"]?["code"] == 326)
        #expect(explanation.answer["sqlite"]?["exact"] == true)
    }

    @Test func `says what SQL leaves to be done, and when it says nothing`() throws {
        let text = try Self.explanation("age > 3 and thing == 5 SORT(age ASC)").text
        #expect(text.contains("applied by the gateway to the rows: testing each row by the condition"), "\(text)")
        let nothing = try Self.explanation("home.city == 'Rome'").text
        #expect(nothing.contains("not expressible in SQL: every row of \"Dog\" is read and tested"), "\(nothing)")
    }

    @Test func `ends with 3 for refusals, 2 for wrong queries, 1 for the rest`() {
        let codes: [(ErrorCode, Bool, Int32)] = [
            (.querySyntax, true, 2), (.queryTypeMismatch, true, 2), (.querySort, true, 3), (.queryTooLarge, true, 3),
            (.queryUnsupported, false, 2), (.unknownType, false, 2), (.configMissing, true, 1), (.badJSON, false, 1),
        ]
        for (code, isCheck, exit) in codes { #expect(SluiceError(code, "").exitCode(isCheck: isCheck) == exit, "\(code)") }
    }

    @Test func `answers a program with code, sentence and place apart`() throws {
        let error = #expect(throws: SluiceError.self) { try QueryTool.canonicalText("a == 1 and\n  \"\u{1F415}\" == == 2") }
        let answer = try #require(error?.answer)
        #expect(answer["ok"] == false)
        #expect(answer["code"] == 300)
        #expect(answer["name"] == "query-syntax")
        #expect(answer["line"] == 2)
        #expect(answer["column"] == 10)
        #expect(answer["message"]?.string?.contains("expected") == true)
        #expect(answer["message"]?.string?.contains("\n") == false)
        let whole = SluiceError(.queryAsymmetric, "No.").answer
        #expect(whole["line"] == 1)
        #expect(whole["message"] == "No.")
    }

    @Test func `writes keys in one form a type`() {
        #expect(Value.string("a b").keyText == "a b")
        #expect(Value.int(-7).keyText == "-7")
        #expect(Value.objectId(ObjectIdentifierBytes(high: 0, low: 0xAB)).keyText == "0000000000000000000000ab")
        #expect(Value.uuid(UUIDBytes(high: 0xAB << 56, low: 1)).keyText == "ab000000-0000-0000-0000-000000000001")
    }
}
