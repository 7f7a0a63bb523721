import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceValues
import TestSupport
import Testing

/// Texts that are equal to Swift and different to PostgreSQL and to queries: rules compare bytes, too.
@Suite struct `Texts in rules` {
    private static let texts = [
        "K", "\u{212A}", "k", "Kim@corp.example", "\u{212A}im@corp.example", "kim@corp.example", "é", "e\u{301}", "É", "Å", "\u{212B}",
        "A\u{30A}",
        "Ω", "\u{2126}", "q\u{307}\u{323}", "q\u{323}\u{307}", "ß", "ss", "가", "\u{1100}\u{1161}", ";", "\u{37E}", "", "a", "a\u{200D}",
    ]

    /// Pairs that are equal as `String`s.
    private static let pairs = [
        ("\u{212A}im@corp.example", "Kim@corp.example"), ("e\u{301}", "é"), ("\u{212B}", "A\u{30A}"), ("\u{2126}", "Ω"), ("\u{37E}", ";"),
        ("q\u{307}\u{323}", "q\u{323}\u{307}"), ("\u{1100}\u{1161}", "가"),
    ]

    private static func quoted(_ text: String) -> String { JSON.string(text).text }

    private static func user(_ id: String, email: String, custom: JSON = .object([])) -> UserContext {
        UserContext(id: id, type: "normal", data: ["email": .string(email)], customData: custom)
    }

    private static func role(when: String) -> App {
        App(
            roles: """
                [{"name": "boss", "apply_when": \(when), "read": true, "write": true, "document_filters": {"read": true, "write": true}}]
                """)
    }

    @Test(arguments: pairs) func `give a role to the one who has the very bytes`(other: String, own: String) async throws {
        for (asked, isGiven) in [(own, true), (other, false)] {
            let user = Self.user("x", email: asked, custom: .object([.init(asked, .bool(true)), .init("team", .string(asked))]))
            let conditions = [
                #"{"%%user.data.email": \#(Self.quoted(own))}"#, #"{"%%user.data.email": {"$in": [\#(Self.quoted(own)), "other"]}}"#,
                #"{"%%user.custom_data.team": \#(Self.quoted(own))}"#, #"{"%%user.custom_data.\#(own)": true}"#,
            ]
            for condition in conditions where !(condition.contains(";") || condition.contains("custom_data.Kim")) {
                let plan = try await Self.role(when: condition).task(for: user)
                #expect((plan.role == "boss") == isGiven, "\(condition) of \(asked.unicodeScalars.map(\.value))")
            }
            // Negated, the other one has the role.
            let negated = try await Self.role(when: #"{"%%user.data.email": {"$ne": \#(Self.quoted(own))}}"#).task(for: user)
            #expect((negated.role == "boss") == !isGiven)
        }
    }

    @Test(arguments: pairs) func `keep what may not change, to the byte`(other: String, own: String) async throws {
        let app = App(
            roles: """
                [{"name": "r", "apply_when": true, "document_filters": {"read": true, "write": true}, "read": true, "write": true,
                  "fields": {"owner_id": {"immutable": true}}, "check_write": {"%%root.title": "%%prevRoot.title"}}]
                """)
        func write(_ before: [String: Value], _ after: [String: Value]) -> ProposedWrite {
            ProposedWrite(type: App.task, operation: .update, before: before, after: after)
        }
        let row: [String: Value] = ["owner_id": .string(own), "title": .string(own)]
        let writes = [
            write(row, row), write(row, row.merging(["owner_id": .string(other)]) { $1 }),
            write(row, row.merging(["title": .string(other)]) { $1 }),
        ]
        #expect(try await app.verdicts(on: writes, by: Self.user("x", email: "a")).map { $0 == .allow } == [true, false, false])
    }

    private static func condition(_ random: inout SplitMix64) -> String {
        func one() -> String { quoted(random.pick(texts)) }
        return switch random.below(4) {
        case 0: one()
        case 1: #"{"$in": [\#(one()), \#(one())]}"#
        default: #"{"\#(random.pick(["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"]))": \#(one())}"#
        }
    }

    private static func question(_ random: inout SplitMix64) -> App.Question {
        let name = random.pick(["owner_id", "collaborators"])
        let filter = #"{"\#(name)": \#(Self.condition(&random))}"#
        let values = (0..<20).map { _ -> Value in
            let texts = (0..<(1 + random.below(2))).map { _ in Value.string(random.pick(Self.texts)) }
            return name == "collaborators" ? .list(texts) : texts[0]
        }
        return App.Question(property: name, filter: filter, values: values)
    }

    @Test(arguments: seeds(3)) func `insert comes to what the filter comes to, as a query and in SQL`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let library = try SQLiteLibrary()
        for _ in 0..<2 {
            let questions = (0..<20).map { _ in Self.question(&random) }
            for (question, answer) in zip(questions, try await App.answers(to: questions)) {
                let predicate = try Query.parse(answer.query).predicate(on: App.task, in: App.schema)
                for (value, verdict) in zip(question.values, answer.verdicts) {
                    #expect(
                        (verdict == .allow) == predicate.matches([question.property: value]),
                        "seed \(seed): \(question.filter), which is \(answer.query), of \(value)")
                }
                guard question.property == "owner_id" else { continue }
                let sql = predicate.split(.sqlite) { _ in "v" }
                guard sql.residual == nil else { continue }
                for value in question.values {
                    let rows = try library.run(
                        "SELECT 1 FROM (SELECT ?\(sql.condition.parameters.count + 1) AS v) WHERE \(sql.condition.text)",
                        sql.condition.parameters.map(\.value) + [value])
                    #expect(
                        rows.count == (predicate.matches(["owner_id": value]) ? 1 : 0), "seed \(seed): \(sql.condition.text) of \(value)")
                }
            }
        }
    }
}
