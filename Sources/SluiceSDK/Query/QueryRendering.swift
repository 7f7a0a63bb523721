import Foundation
import SluiceQuery

/// Renders a type-safe query as the format of a predicate.
struct QueryRendering {
    /// `true` to write names that are words of predicates or of the query language between backquotes.
    private let quotesWords: Bool
    private var format = ""
    private var arguments: [Any] = []
    private var subqueries = 0
    /// The collection and the variable of the enclosing SUBQUERY.
    private var subquery: (collection: [String], variable: String)?

    /// Renders a node.
    /// - Parameter quotesWords: `true` for `PredicateFormat`, which reads backquotes. `false` gives RealmSwift's renderings.
    static func render(_ node: QueryNode, quotesWords: Bool) -> (String, [Any]) {
        var rendering = QueryRendering(quotesWords: quotesWords)
        rendering.condition(node)
        return (rendering.format, rendering.arguments)
    }

    /// Renders a node as a condition.
    private mutating func condition(_ node: QueryNode) {
        switch node {
        case .path(let path):
            write(path)
            format += " == true"
        case .not(.path(let path)):
            write(path)
            format += " == false"
        default: write(node, negation: "")
        }
    }

    private mutating func write(_ node: QueryNode, negation: String) {
        switch node {
        // Inside a SUBQUERY the variable is one element, so no quantifier is written.
        case .path(let path):
            if path.needsAny && subquery == nil { format += "ANY " }
            write(path)
        case .constant(let value):
            format += "%@"
            arguments.append(value ?? NSNull())
        case .subscripted(let path, let subscripts): write(path, subscripts)
        case .comparison(let left, let operation, let right):
            check(left, right)
            // Only comparisons of elements take a quantifier: in `%@ IN list` the list itself is the operand.
            let isWhole = operation == "IN" && { if case .constant = left { true } else { false } }()
            format += "(\(negation)"
            write(left, negation: "")
            format += " \(operation) "
            if isWhole, case .path(let path) = right { write(path) } else { write(right, negation: "") }
            format += ")"
        case .both(let left, let operation, let right):
            format += "\(negation)("
            condition(left)
            format += " \(operation) "
            condition(right)
            format += ")"
        case .between(let value, let low, let high):
            format += "(\(negation)"
            write(value, negation: "")
            format += " BETWEEN {"
            write(low, negation: "")
            format += ", "
            write(high, negation: "")
            format += "})"
        case .not(let inner):
            if case .path = inner { return condition(node) }
            write(inner, negation: "NOT ")
        case .subqueryCount(let inner): write(subqueryOf: inner)
        }
    }

    private mutating func write(_ path: QueryPath) {
        guard let subquery, path.names.starts(with: subquery.collection) else {
            format += path.names.isEmpty ? ElementModel.selfName : path.names.map { written($0) }.joined(separator: ".")
            return
        }
        let rest = path.names.dropFirst(subquery.collection.count).map { written($0) }
        format += ([subquery.variable] + rest).joined(separator: ".")
    }

    private func written(_ name: String) -> String { quotesWords ? PredicateFormat.quoted(name) : name }

    private mutating func write(_ path: QueryPath, _ subscripts: [QuerySubscript]) {
        write(path)
        for step in subscripts {
            switch step {
            case .index(let index):
                format += "[%@]"
                arguments.append(index)
            case .key(let key):
                format += "[%@]"
                arguments.append(key)
            case .every:
                format += "[%K]"
                arguments.append("#any")
            }
        }
    }

    private func check(_ left: QueryNode, _ right: QueryNode) {
        guard case .path(let left) = left, case .path(let right) = right, left.needsAny, right.needsAny, subquery == nil else { return }
        throwRealmException("Comparing two collection columns is not permitted.")
    }

    private mutating func write(subqueryOf inner: QueryNode) {
        subqueries += 1
        guard let collection = inner.collection else {
            throwRealmException("Subqueries must contain a keypath starting with a collection.")
        }
        let (outer, variable) = (subquery, "$col\(subqueries)")
        format += "SUBQUERY("
        write(QueryPath(names: collection))
        // Paths of the condition start at the variable; the outer subquery's variable is restored afterwards.
        format += ", \(variable), "
        subquery = (collection, variable)
        condition(inner)
        subquery = outer
        format += ").@count"
    }
}

extension QueryNode {
    /// The common collection of all paths of a subquery; nil if no path has one. Several collections end the program.
    fileprivate var collection: [String]? {
        let paths = self.paths
        guard let first = paths.first(where: { $0.collectionEnd > 0 }) else { return nil }
        let collection = Array(first.names.prefix(first.collectionEnd))
        if paths.contains(where: { $0.collectionEnd > 0 && Array($0.names.prefix($0.collectionEnd)) != collection }) {
            throwRealmException("A subquery can be about one collection only; join several subqueries instead.")
        }
        return collection
    }

    private var paths: [QueryPath] {
        switch self {
        case .path(let path), .subscripted(let path, _): [path]
        case .constant: []
        case .comparison(let left, _, let right), .both(let left, _, let right): left.paths + right.paths
        case .between(let value, let low, let high): value.paths + low.paths + high.paths
        case .not(let inner), .subqueryCount(let inner): inner.paths
        }
    }
}
