import ArgumentParser
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues

struct QueryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "query",
        abstract: "Test queries: run them over a file of rows, parse them, check them as subscriptions, explain them.",
        discussion: """
            Write '-' in place of the query to read one query a line from standard input; each is answered by one line of JSON on standard
            output, {"ok":true,…} or {"ok":false,"code":…,"name":…,"message":…,"line":…,"column":…,"fix":…}, and the exit code is 0.

            Exit codes: 0; 1 when a file cannot be read or is wrong; 2 for an error in the query, its types or arguments; 3 for a
            subscription that is refused. The error is on standard error: name and number of its code (sluice errors), the place, what to do.
            """,
        subcommands: [QueryRun.self, QueryParse.self, QueryCheck.self, QueryExplain.self])
}

struct QueryParse: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "parse", abstract: "Print a query's canonical text. Needs no schema; names and types are not checked.",
        discussion: #"With '-' each line is answered by {"ok":true,"canonical":…}."#)

    @OptionGroup var text: QueryText

    func run() throws {
        try text.answer(
            isCheck: false,
            one: { query, output in try output.write(QueryTool.canonicalText(query)) },
            each: { query in ["ok": true, "canonical": .string(try QueryTool.canonicalText(query))] })
    }
}

struct QueryRun: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Print the primary keys of the rows that a query selects, one a line.",
        discussion: """
            The rows are lines of JSON: {"_class": "Dog", "_id": 1, "name": "Rex", "owner": 7}. '_class' may be left out for rows of --type. \
            Values are extended JSON ({"$oid": …}, {"$uuid": …}, {"$date": …}, {"$numberDecimal": …}, {"$binary": …}, …), a link is the _id \
            of its target. What a row leaves out is null.

            The order is that of the file, or of the query's SORT. A string is printed as it is, an integer in decimal, an ObjectId and a UUID \
            in small hexadecimal digits. With '-' each query is answered by {"ok":true,"ids":[…]}, whose ids are extended JSON.
            """)

    @OptionGroup var subject: QuerySubject

    @Option(help: ArgumentHelp("The rows, one JSON object a line.", valueName: "rows.jsonl"))
    var data: String

    @OptionGroup var text: QueryText

    func run() throws {
        try ending {
            let tool = try subject.tool()
            let graph = try QueryRows.graph(at: data, schema: tool.schema, type: tool.type)
            try text.answer(
                isCheck: false,
                one: { query, output in for key in try tool.run(query, over: graph) { try output.write(key.keyText) } },
                each: { query in ["ok": true, "ids": .array(try tool.run(query, over: graph).map { ExtendedJSON.json($0) })] })
        }
    }
}

struct QueryCheck: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check that a client may subscribe to a query: prints 'accepted' or the error.",
        discussion: #"With '-' each line is answered by {"ok":true} or the refusal."#)

    @OptionGroup var subject: QuerySubject
    @OptionGroup var fields: QueryFields
    @OptionGroup var text: QueryText

    func run() throws {
        try ending(isCheck: true) {
            let tool = try subject.tool()
            let fields = try fields.fields(of: tool)
            try text.answer(
                isCheck: true,
                one: { query, output in
                    do {
                        _ = try tool.check(query, fields)
                        try output.write("accepted")
                    } catch let error as SluiceError where error.code.refusesSubscription {
                        try output.write("refused: \(error.code.name) (\(error.code.rawValue))")
                        throw error
                    }
                },
                each: { query in
                    _ = try tool.check(query, fields)
                    return ["ok": true]
                })
        }
    }
}

struct QueryExplain: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Print a query's tree with its types, its SQL for PostgreSQL and SQLite, and its index form.",
        discussion: """
            The SQL is a condition; every constant is a parameter. The index form is what a gateway keeps of a subscription: keys of the \
            indexed field, and what remains to be tested under each. With '-' each line is answered by one object with the same parts.
            """)

    @OptionGroup var subject: QuerySubject
    @OptionGroup var fields: QueryFields
    @OptionGroup var text: QueryText

    func run() throws {
        try ending {
            let tool = try subject.tool()
            let fields = try fields.fields(of: tool)
            try text.answer(
                isCheck: false,
                one: { query, output in try output.write(try QueryExplanation(query, tool, fields).text) },
                each: { query in try QueryExplanation(query, tool, fields).answer })
        }
    }
}
