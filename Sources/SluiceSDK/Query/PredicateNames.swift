import SluiceCore
import SluiceQuery
import SluiceReplica

/// The element type of a condition.
enum ElementModel {
    case object(ModelSchema)
    /// Scalar values: `SELF` is the value.
    case scalar
    /// An unknown class: names are kept unchanged.
    case unknown

    /// Returns the model of a class by its name, `unknown` if the class is not loaded. Cost: linear in the number of classes.
    static func named(_ name: String) -> ElementModel {
        KnownClasses.all.first { $0.className() == name }.map { .object(ModelSchema.of($0)) } ?? .unknown
    }

    /// The name of a scalar value in conditions.
    static let selfName = "SELF"
}

/// Translates names in a condition from the class to the file: properties to columns, `LinkingObjects` properties to inverse links,
/// and `SELF` to the primary key.
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
        // Objects compared with the object itself become keys, because `SELF` becomes a key too.
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
            // Inside the subquery, names without a variable resolve against the class of the collection's elements.
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

    /// Translates a path. Also returns the class of its last step; nil if that is not a class or is unknown.
    func path(_ path: SyntaxPath) -> (path: SyntaxPath, schema: ModelSchema?) {
        var result = path
        var schema = scopes.last?.schema
        var steps = path.steps[...]
        result.steps = []
        if case .name(let first)? = steps.first?.kind {
            if let scope = scopes.last(where: { $0.variable == first }) {
                // A variable of a subquery stays; the innermost scope wins.
                schema = scope.schema
                result.steps.append(steps.removeFirst())
            } else if first == ElementModel.selfName, !isScalar, scopes[0].schema != nil {
                // `SELF` before further names is redundant and goes; alone it is the primary key.
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
                // After an unknown name all further steps stay unchanged.
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
