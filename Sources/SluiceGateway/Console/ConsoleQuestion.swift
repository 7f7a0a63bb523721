import SluiceCore
import SluicePipeline

/// A question about a user: a form and the lines of its answer.
struct ConsoleQuestion: Sendable {
    struct Field: Sendable {
        var name: String
        var label: HTML
        var isNeeded = true
    }

    /// The time limit of an answer, in nanoseconds.
    static let patience: UInt64 = 30_000_000_000

    let path: String
    let title: String
    let fields: [Field]
    let environment: any Environment
    /// Returns the answer for the fields with a value.
    let answer: @Sendable ([String: String]) async throws -> [String]

    /// - Parameter asked: The values by field name. If all are empty, the page has only the form.
    /// - Returns: The page, and the error that it shows.
    func page(_ asked: [String: String]) async -> (page: ConsolePage, error: SluiceError?) {
        let asked = asked.filter { !$0.value.isEmpty }
        var result: HTML = ""
        var problem: SluiceError?
        if !asked.isEmpty {
            switch await lines(asked) {
            case .success(let lines): result = "<pre>\(lines.joined(separator: "\n"))</pre>\n"
            case .failure(let error):
                problem = error
                result = ConsoleError.paragraph(error)
            }
            result = ConsolePage.section("answer", "Answer", result)
        }
        let body: HTML = """
            <h1>\(title)</h1>
            <nav><p><a href="/console">Back to the console</a></p></nav>
            <form method="get" action="\(path)">
            \(fields.map { input($0, asked[$0.name] ?? "") })<p><button type="submit">Ask</button></p>
            </form>
            \(result)
            """
        return (ConsolePage(title: "\(title) – Sluice", body: body), problem)
    }

    private func lines(_ asked: [String: String]) async -> Result<[String], SluiceError> {
        let missing = fields.filter { $0.isNeeded && asked[$0.name] == nil }.map { "'\($0.name)'" }
        guard missing.isEmpty else {
            return .failure(SluiceError(.badRequest, "Missing: \(missing.joined(separator: ", ")).", fix: "Fill in the form."))
        }
        return await PartReader("The answer", patience: Self.patience, environment: environment) { [answer] in try await answer(asked) }
            .read()
    }

    private func input(_ field: Field, _ value: String) -> HTML {
        let needed: HTML = field.isNeeded ? " required" : ""
        return "<label>\(field.label) <input name=\"\(field.name)\" value=\"\(value)\" autocomplete=\"off\"\(needed)></label>\n"
    }
}

extension ConsoleQuestion {
    static func why(_ explainer: ObjectExplainer) -> ConsoleQuestion {
        ConsoleQuestion(
            path: "/console/why", title: "Why does a user have an object, or not?",
            fields: [
                Field(name: "user", label: "User, by id or e-mail"), Field(name: "type", label: "Class"),
                Field(name: "id", label: "Primary key of the object"),
            ], environment: explainer.services.environment
        ) { asked in
            try await explainer.explain(user: asked["user"] ?? "", type: asked["type"] ?? "", id: asked["id"] ?? "").reasons
        }
    }

    static func explain(_ explainer: SubscriptionExplainer) -> ConsoleQuestion {
        ConsoleQuestion(
            path: "/console/explain", title: "How is a subscription processed?",
            fields: [
                Field(name: "user", label: "User, by id or e-mail"),
                Field(name: "type", label: "Class, unless only one has the query's properties", isNeeded: false),
                Field(name: "query", label: "Query"),
            ], environment: explainer.services.environment
        ) { asked in
            let query = asked["query"] ?? ""
            let type = try asked["type"] ?? explainer.onlyType(for: query)
            return try await explainer.explain(user: asked["user"] ?? "", type: type, query: query).lines
        }
    }
}
