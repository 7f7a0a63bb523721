import SluiceCore
import SluiceQuery
import SluiceReplica

/// What a condition is about.
enum ElementModel {
    case object(ModelSchema)
    /// Values: `SELF` is the value.
    case scalar
    /// Names are taken as they are.
    case unknown

    /// The class of a name, as far as it is known.
    static func named(_ name: String) -> ElementModel {
        KnownClasses.all.first { $0.className() == name }.map { .object(ModelSchema.of($0)) } ?? .unknown
    }

    /// The name that the value of a scalar has in conditions.
    static let selfName = "SELF"
}

/// Puts the names that a file has in the place of those that classes have, inverse links in the place of `LinkingObjects`
/// properties, and the primary key in the place of `SELF`.
struct PredicateNames {
    private var scopes: [(variable: String?, schema: ModelSchema?)]
    private let isScalar: Bool

    init(_ model: ElementModel) {
        switch model {
        case .object(let schema):
            scopes = [(nil, schema)]
            isScalar = false
        case .scalar:
            scopes = [(nil, nil)]
            isScalar = true
        case .unknown:
            scopes = [(nil, nil)]
            isScalar = false
        }
    }

    func query(_ query: SyntaxQuery) -> SyntaxQuery { query.mapComparisons(comparison) }

    func comparison(_ comparison: SyntaxComparison) -> SyntaxComparison {
        var result = comparison
        // Where the object itself is compared, other objects are keys as it is one.
        let isIdentity = !isScalar && (isSelf(comparison.left) || isSelf(comparison.right))
        result.left = operand(isIdentity ? keys(comparison.left) : comparison.left)
        result.right = operand(isIdentity ? keys(comparison.right) : comparison.right)
        return result
    }

    private func isSelf(_ operand: SyntaxOperand) -> Bool {
        guard case .path(let path) = operand.kind, path.steps.count == 1, case .name(ElementModel.selfName) = path.steps[0].kind else {
            return false
        }
        return true
    }

    private func keys(_ operand: SyntaxOperand) -> SyntaxOperand {
        var result = operand
        switch operand.kind {
        case .object(_, let key): result = key
        case .list(let members, let quantifier): result.kind = .list(members.map(keys), quantifier)
        default: break
        }
        return result
    }

    private func operand(_ operand: SyntaxOperand) -> SyntaxOperand {
        var result = operand
        switch operand.kind {
        case .path(let path): result.kind = .path(self.path(path).path)
        case .aggregate(let path, let function, let property):
            let (path, schema) = self.path(path)
            result.kind = .aggregate(path, function, property: property.map { SyntaxName(column($0.text, schema), at: $0.position) })
        case .arithmetic(let left, let arithmetic, let right):
            result.kind = .arithmetic(self.operand(left), arithmetic, self.operand(right))
        case .subqueryCount(let path, let variable, let inner):
            let (path, schema) = self.path(path)
            var names = self
            names.scopes.append((variable.text, schema))
            result.kind = .subqueryCount(path, variable: variable, names.query(inner))
        case .literal, .argument, .list, .object, .shape, .rowKey: break
        }
        return result
    }

    private func column(_ name: String, _ schema: ModelSchema?) -> String {
        guard let schema, let slot = schema.slot(named: name) else { return name }
        return schema.properties[slot].column
    }

    /// The path in the file's names, and the class that it leads to; nil when that is none, or unknown.
    func path(_ path: SyntaxPath) -> (path: SyntaxPath, schema: ModelSchema?) {
        var result = path
        var schema = scopes.last?.schema
        var steps = path.steps[...]
        result.steps = []
        if case .name(let first)? = steps.first?.kind {
            if let scope = scopes.last(where: { $0.variable == first }) {
                schema = scope.schema
                result.steps.append(steps.removeFirst())
            } else if first == ElementModel.selfName, !isScalar, scopes[0].schema != nil {
                let place = steps.removeFirst().position
                let isAlone = steps.isEmpty && path.suffix == nil
                if isAlone, let schema {
                    let key = schema.primaryKeySlot.map { schema.properties[$0].column } ?? TableLayout.hiddenKey.name
                    result.steps.append(PathStep(.name(key), at: place))
                }
            }
        }
        for step in steps { append(step, to: &result.steps, &schema) }
        return (result, schema)
    }

    private func append(_ step: PathStep, to steps: inout [PathStep], _ schema: inout ModelSchema?) {
        switch step.kind {
        case .name(let name):
            guard let here = schema, let slot = here.slot(named: name) else {
                schema = nil
                return steps.append(step)
            }
            let property = here.properties[slot]
            let target = property.kind.target.map { ModelSchema.of($0) }
            if property.kind.isComputed, let target, let origin = property.origin {
                steps += [.backlinks, .name(target.name), .name(column(origin, target))].map { PathStep($0, at: step.position) }
            } else {
                steps.append(PathStep(.name(property.column), at: step.position))
            }
            schema = target
        case .backlinks, .keys:
            schema = nil
            steps.append(step)
        case .argument, .index, .first, .last, .every, .key, .keyArgument, .values: steps.append(step)
        }
    }
}
