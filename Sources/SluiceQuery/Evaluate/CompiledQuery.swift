package import SluiceCore

/// A bound query compiled to run over many rows, with the results of `BoundQuery.matches`.
///
/// Every part that reads only the row itself is a `Program` and runs first, in place. If that is the whole condition, a match allocates
/// nothing. The other parts walk the graph value by value and stop at the first that decides.
package struct CompiledQuery: Sendable {
    let type: ObjectType
    let code: GraphCode

    /// The whole condition, if it reads only a row's own values.
    package var program: Program? {
        guard code.instructions.count == 1, case .program(let program, _) = code.instructions[0].test, code.entry == 0 else { return nil }
        return program
    }

    /// `true` if the condition holds for the row with the key. `false` if the graph has no such row.
    package func matches(_ key: Value, in graph: some ObjectGraph) -> Bool {
        graph.withView(key, of: type) { matches($0, key: key, in: graph) } ?? false
    }

    /// `true` if the condition holds for a row read in place.
    package func matches(_ row: RowView, key: Value, in graph: some ObjectGraph) -> Bool {
        if let program { return program.matches(row) }
        return GraphMachine(graph: graph, schema: code.schema).run(code, [GraphObject(type: type, content: .view(key: key, row))])
    }
}

extension BoundQuery {
    package func compile() -> CompiledQuery {
        CompiledQuery(type: type, code: GraphCompiler.compile(condition, type, schema, variable: 0))
    }
}

/// Instructions with two successors each, so that AND, OR and NOT cost nothing at run time.
struct GraphCode: Sendable {
    var schema: Schema
    var instructions: [GraphInstruction]
    /// The first instruction, or `accept` or `reject` if the condition is constant.
    var entry: Int

    static let accept = -1
    static let reject = -2
}

struct GraphInstruction: Sendable {
    var test: Test
    var onTrue: Int
    var onFalse: Int

    indirect enum Test: Sendable {
        /// Tests the row of the innermost object. The predicate is for an embedded object, which has no row.
        case program(Program, Predicate)
        case compare(CompiledOperand, Quantifier, PairTest, Quantifier, CompiledOperand)
        /// Compares pair by pair. Sets are sorted.
        case pairs(CompiledOperand, PairTest, CompiledOperand, isSet: Bool)
        case fullText(CompiledOperand, Quantifier, TextSearch)
        case within(BoundPath, Quantifier, Geometry)
    }
}

indirect enum CompiledOperand: Sendable {
    case constants([Value])
    case path(BoundPath)
    case aggregate(BoundAggregate)
    case arithmetic(CompiledOperand, Arithmetic, CompiledOperand)
    case subqueryCount(BoundPath, depth: Int, GraphCode)
}

struct GraphCompiler {
    private let schema: Schema
    /// The class of the innermost object.
    private let type: ObjectType
    /// The number of the innermost object among those in scope.
    private let variable: Int
    /// The instructions from the last to the first, so that every successor is known before its predecessor.
    private var instructions: [GraphInstruction] = []

    private init(_ type: ObjectType, _ schema: Schema, variable: Int) {
        self.type = type
        self.schema = schema
        self.variable = variable
    }

    /// - Parameters:
    ///   - type: The class of the innermost object.
    ///   - variable: Its number among the objects in scope.
    static func compile(_ condition: BoundCondition, _ type: ObjectType, _ schema: Schema, variable: Int) -> GraphCode {
        var compiler = GraphCompiler(type, schema, variable: variable)
        let entry = compiler.emit(compiler.part(condition), GraphCode.accept, GraphCode.reject)
        let last = compiler.instructions.count - 1
        // Reverses numbers, as instructions were emitted from the last to the first.
        func turned(_ target: Int) -> Int { target < 0 ? target : last - target }
        let ordered = compiler.instructions.reversed().map { instruction in
            GraphInstruction(test: instruction.test, onTrue: turned(instruction.onTrue), onFalse: turned(instruction.onFalse))
        }
        return GraphCode(schema: schema, instructions: ordered, entry: turned(entry))
    }

    /// A condition with every part lowered that the row of the innermost object decides.
    private indirect enum Part {
        case row(BoundPredicate)
        case and([Part])
        case or([Part])
        case not(Part)
        case graph(GraphInstruction.Test)
    }

    private func part(_ condition: BoundCondition) -> Part {
        switch condition {
        case .constant(let value): return .row(.constant(value))
        case .and(let parts): return GraphCompiler.joined(parts.map(part), isAnd: true)
        case .or(let parts): return GraphCompiler.joined(parts.map(part), isAnd: false)
        case .not(let inner):
            let part = part(inner)
            return if case .row(let predicate) = part { .row(.negation(predicate)) } else { .not(part) }
        case .compare(let comparison):
            return own(condition) ?? .graph(test(comparison))
        case .fullText(let side, let search, _):
            return .graph(.fullText(operand(side.operand), side.quantifier, search))
        case .within(let side, let geometry):
            guard case .path(let path) = side.operand else { return .row(.constant(false)) }
            return own(condition) ?? .graph(.within(path, side.quantifier, geometry))
        }
    }

    /// Returns the condition lowered to the row, or nil if it needs the graph.
    private func own(_ condition: BoundCondition) -> Part? { condition.predicate(on: type, variable: variable).map { .row($0) } }

    /// Joins the parts of an AND or OR. Those on the row itself come first: they need no graph and often decide.
    private static func joined(_ parts: [Part], isAnd: Bool) -> Part {
        var own: [BoundPredicate] = []
        var others: [Part] = []
        for part in parts {
            if case .row(let predicate) = part { own.append(predicate) } else { others.append(part) }
        }
        let row = Part.row(isAnd ? .conjunction(own) : .disjunction(own))
        if others.isEmpty { return row }
        let all = own.isEmpty ? others : [row] + others
        return isAnd ? .and(all) : .or(all)
    }

    private mutating func emit(_ part: Part, _ onTrue: Int, _ onFalse: Int) -> Int {
        switch part {
        case .row(let predicate): return emit(predicate, onTrue, onFalse)
        case .not(let inner): return emit(inner, onFalse, onTrue)
        case .and(let parts):
            var next = onTrue
            for part in parts.reversed() { next = emit(part, next, onFalse) }
            return next
        case .or(let parts):
            var next = onFalse
            for part in parts.reversed() { next = emit(part, onTrue, next) }
            return next
        case .graph(let test): return append(test, onTrue, onFalse)
        }
    }

    private mutating func emit(_ predicate: BoundPredicate, _ onTrue: Int, _ onFalse: Int) -> Int {
        if case .constant(let value) = predicate { return value ? onTrue : onFalse }
        return append(.program(predicate.compile(for: type), Predicate(type: type, bound: predicate)), onTrue, onFalse)
    }

    private mutating func append(_ test: GraphInstruction.Test, _ onTrue: Int, _ onFalse: Int) -> Int {
        instructions.append(GraphInstruction(test: test, onTrue: onTrue, onFalse: onFalse))
        return instructions.count - 1
    }

    private func test(_ comparison: BoundComparison) -> GraphInstruction.Test {
        let test = PairTest(comparison)
        let (left, right) = (operand(comparison.left.operand), operand(comparison.right.operand))
        if case .pairs(_, let isSet) = comparison.meaning { return .pairs(left, test, right, isSet: isSet) }
        return .compare(left, comparison.left.quantifier, test, comparison.right.quantifier, right)
    }

    private func operand(_ operand: BoundOperand) -> CompiledOperand {
        switch operand {
        case .constant(let value): return .constants([value])
        case .constants(let values): return .constants(values)
        case .path(let path): return .path(path)
        case .aggregate(let aggregate): return .aggregate(aggregate)
        case .arithmetic(let left, let arithmetic, let right):
            let (l, r) = (self.operand(left), self.operand(right))
            if case .constants(let a) = l, case .constants(let b) = r, a.count == 1, b.count == 1 {
                return .constants([Calculation.apply(arithmetic, a[0], b[0])])
            }
            return .arithmetic(l, arithmetic, r)
        case .subqueryCount(let path, let depth, let condition):
            guard case .value(.link(let name)) = path.type, let inner = schema[name] else { return .constants([.int(0)]) }
            return .subqueryCount(path, depth: depth, GraphCompiler.compile(condition, inner, schema, variable: depth))
        }
    }
}
