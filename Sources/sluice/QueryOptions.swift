import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

/// The options for the schema, the class and the arguments of a query.
struct QuerySubject: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            An app directory, or a file of classes: {"schemas": [a JSON schema for each class, as in an app directory], "relationships": {Class: {field: {"ref": \
            Class, "foreign_key": "_id", "is_list": false}}}}. 'ref' may also be #/relationship/source/database/collection.
            """, valueName: "path"))
    var schema: String

    @Option(help: "The class whose rows the query selects.")
    var type: String

    @Option(
        name: .customLong("arg"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The value of $0, $1, … or the path of $K0, …, in extended JSON; repeat it for more.", valueName: "JSON"))
    var arguments: [String] = []

    func tool() throws -> QueryTool {
        let known = try QuerySchemaFile.load(at: schema)
        return try QueryTool(
            schema: known.schema, declared: known.fields, type: type, arguments: try QueryArguments.read(arguments))
    }
}

/// The fields of `sync/config.json` that subscriptions may use.
struct QueryFields: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The queryable fields, separated by commas. Default: those of the app directory; of a file, every field that can be one.",
            valueName: "a,b"))
    var queryable: String?

    @Option(help: ArgumentHelp("The indexed queryable field.", valueName: "field"))
    var indexed: String?

    func fields(of tool: QueryTool) throws -> QueryableFields {
        let names = queryable?.split(separator: ",").map { $0.trimmingPrefix { $0 == " " } }.map(String.init)
        return try tool.fields(queryable: names, indexed: indexed)
    }
}

struct QueryText: ParsableArguments {
    /// The query as one word. Unrecognized arguments are included because a query may start with a minus.
    @Argument(
        parsing: .allUnrecognized, help: ArgumentHelp("The query; '-' for one a line on standard input.", valueName: "query"))
    var queries: [String]

    func validate() throws {
        if words.count == 1 { return }
        if let option = words.first(where: { $0.hasPrefix("--") }) { throw ValidationError("Unknown option '\(option)'.") }
        throw ValidationError("Give one query, in quotes, not \(words.count) words.")
    }

    /// The words without a leading `--`, which the parser passes on.
    private var words: ArraySlice<String> { queries.count == 2 && queries[0] == "--" ? queries[1...] : queries[...] }
    private var query: String { words.first ?? "" }

    /// Answers the query, or every line of standard input if the query is `-`. Errors of a line are printed as its answer; the other
    /// lines continue.
    func answer(
        isCheck: Bool, one: (String, inout LineWriter) throws -> Void, each: (String) throws -> JSON
    ) throws {
        try ending(isCheck: isCheck) {
            guard query == "-" else {
                var output = LineWriter(holdsBack: true)
                do { try one(query, &output) } catch let error as SluiceError {
                    try output.flush()
                    throw error
                }
                return try output.flush()
            }
            var output = LineWriter(holdsBack: false)
            let input = LineReader.standardInput
            while let line = try input.next() {
                do {
                    guard let text = String(validating: line, as: UTF8.self) else {
                        throw SluiceError(.querySyntax, "The line is not UTF-8.")
                    }
                    try output.write(try each(text))
                } catch let error as SluiceError where error.code != .internalError {
                    try output.write(error.answer)
                }
            }
        }
    }
}

/// Runs the body of `sluice query` and reports its errors as text on standard error and an exit code. A closed standard output exits with
/// 0.
func ending(isCheck: Bool = false, _ body: () throws -> Void) throws {
    do {
        try body()
    } catch let error as SluiceError {
        StandardError.write(error.shown)
        throw ExitCode(error.exitCode(isCheck: isCheck))
    } catch let error as AppDirectoryError {
        for problem in error.problems { StandardError.write(problem.error.shown) }
        throw ExitCode(1)
    } catch is LineWriter.Closed {
        throw ExitCode(0)
    }
}
