import SluiceCore
import SluiceValues

extension QueryBinder {
    /// Binds a path with its suffix. A collection at its end yields its elements.
    func path(_ path: SyntaxPath) throws(SluiceError) -> BoundPath {
        var walk = PathWalk(binder: self, path: path)
        try walk.walk()
        let bound = try walk.finish()
        if let quantifier = path.quantifier, !walk.reachesMany {
            throw mismatch(
                "The keypath following '\(quantifier.rawValue)' must contain a list. Found '\(written(path))'", at: path.position)
        }
        return bound
    }

    /// Returns the path to many objects, or nil if it leads to anything else.
    func objects(_ path: SyntaxPath) throws(SluiceError) -> (BoundPath, ObjectType)? {
        var walk = PathWalk(binder: self, path: path)
        try walk.walk()
        guard try walk.enterObject(), walk.reachesMany, let type = walk.objectType else { return nil }
        let bound = BoundPath(
            steps: walk.steps, result: .values, type: .value(.link(to: type.name)), isMany: true, sequence: .objects)
        return (bound, type)
    }

    /// Returns the path to a stored collection of values, or nil if it leads to anything else.
    func collection(_ path: SyntaxPath) throws(SluiceError) -> (BoundPath, PropertyType)? {
        var walk = PathWalk(binder: self, path: path)
        try walk.walk()
        guard case .stored(let type, let collection) = walk.place, collection != .none else { return nil }
        let bound = BoundPath(
            steps: walk.steps, result: .values, type: .value(type), isMany: walk.steps.contains(where: \.isMany), sequence: .none)
        return (bound, type)
    }

    /// Returns the path of one property, relative to an object of the class.
    func element(_ name: String, of type: ObjectType, at position: SourcePosition) throws(SluiceError) -> BoundPath {
        guard let index = type.index(of: name) else { throw unknown(name, in: type, at: position) }
        return BoundPath(
            steps: [.property(index)], result: .values, type: .value(type.properties[index].type),
            isMany: type.properties[index].collection != .none, sequence: .none)
    }

    func argument(_ number: Int, at position: SourcePosition) throws(SluiceError) -> QueryArgument {
        guard number < arguments.count else { throw diagnostic.missingArgument(number, of: arguments.count, at: position) }
        return arguments[number]
    }
}

/// Follows a path through the schema and records the steps.
struct PathWalk {
    let binder: QueryBinder
    let path: SyntaxPath
    var steps: [BoundStep] = []
    var place: Place
    private var sequence = BoundPath.Sequence.none
    /// `true` if a step has led to many objects.
    private var passesObjects = false
    private var aliasCount = 0
    /// The position in the text of the present step.
    private var here: SourcePosition

    enum Place {
        case object(ObjectType)
        /// A property's value, or a part of it, as stored.
        case stored(PropertyType, CollectionKind)
    }

    init(binder: QueryBinder, path: SyntaxPath) {
        self.binder = binder
        self.path = path
        here = path.position
        place = .object(binder.innermost.type)
    }

    var reachesMany: Bool {
        if case .stored(_, let collection) = place, collection != .none { return true }
        return steps.contains(where: \.isMany)
    }

    var objectType: ObjectType? { if case .object(let type) = place { type } else { nil } }

    // MARK: Steps

    mutating func walk() throws(SluiceError) {
        var rest = try expanded()[...]
        begin(&rest)
        while let step = rest.popFirst() {
            here = step.position
            switch step.kind {
            case .name(let name): try name_(name, &rest)
            case .backlinks: try backlinks(&rest)
            case .index, .first, .last, .every, .key, .keyArgument, .keys, .values: try subscripted(step.kind)
            case .argument: throw mixesArgument
            }
        }
    }

    private var mixesArgument: SluiceError {
        binder.mismatch("A path given as an argument cannot be mixed with other elements", at: path.position)
    }

    /// Returns the steps with `$K0` replaced by the path in the argument.
    private func expanded() throws(SluiceError) -> [PathStep] {
        guard case .argument(let number)? = path.steps.first?.kind else { return path.steps }
        guard path.steps.count == 1 else { throw mixesArgument }
        guard case .value(.string(let text)) = try binder.argument(number, at: path.position) else {
            throw binder.diagnostic.error(.queryArgument, "$K\(number) takes the path of a property as a string", at: path.position)
        }
        return SyntaxPath.steps(of: text, at: path.position).steps
    }

    private func suffix() throws(SluiceError) -> PathSuffix? {
        guard path.suffix == nil, case .argument(let number)? = path.steps.first?.kind,
            case .value(.string(let text)) = try binder.argument(number, at: path.position)
        else { return path.suffix }
        return SyntaxPath.steps(of: text, at: path.position).suffix
    }

    private mutating func begin(_ rest: inout ArraySlice<PathStep>) {
        steps = [.variable(binder.scopes.count - 1)]
        guard case .name(let name)? = rest.first?.kind, name.utf8.first == UInt8(ascii: "$"),
            let depth = binder.scopes.lastIndex(where: { $0.variable?.hasSameBytes(as: name) == true })
        else { return }
        steps = [.variable(depth)]
        place = .object(binder.scopes[depth].type)
        rest.removeFirst()
    }

    private mutating func name_(_ name: String, _ rest: inout ArraySlice<PathStep>) throws(SluiceError) {
        if case .stored(let type, let collection) = place, try enterElement(name, type, collection) { return }
        guard try enterObject(), let type = objectType else { return try key(name) }
        if let alias = binder.aliases.path(of: name, in: type.name) {
            aliasCount += 1
            // An alias may lead to another. The bound turns a loop of aliases into an error.
            guard aliasCount <= QueryAliases.longest else {
                throw binder.mismatch(
                    "Substitution loop detected while processing '\(name)' -> '\(alias)' found in type '\(type.name)'", at: here)
            }
            rest = (SyntaxPath.steps(of: alias, at: here).steps + rest)[...]
            return
        }
        guard let index = type.index(of: name) else { throw binder.unknown(name, in: type, at: here) }
        let property = type.properties[index]
        steps.append(.property(index))
        place = .stored(property.type, property.collection)
    }

    /// Reads `dict.key` on values and `list.length`. Returns `false` if the name is that of a property.
    private mutating func enterElement(_ name: String, _ type: PropertyType, _ collection: CollectionKind) throws(SluiceError) -> Bool {
        switch (type, collection) {
        case (.link, _), (.embedded, _): return false
        case (_, .dictionary), (.mixed, .none):
            try key(name)
            return true
        case (.string, .list), (.string, .set), (.binary, .list), (.binary, .set):
            guard name.utf8.count == 6, name.lowercased() == "length" else { throw noObject }
            steps += [.every, .length]
            place = .stored(.int, .none)
            return true
        default: throw noObject
        }
    }

    private var noObject: SluiceError {
        guard case .stored(let type, _) = place else { return binder.mismatch("not an object", at: path.position) }
        return binder.mismatch(
            "'\(binder.written(path))' goes on behind a property of type '\(type.name)', which is not an object; "
                + "Only Property of type 'any' can have nested collections", at: path.position)
    }

    /// Steps from a stored link or embedded object to the object. Returns `false` for any other value.
    mutating func enterObject() throws(SluiceError) -> Bool {
        guard case .stored(let type, let collection) = place else { return true }
        let target: String
        switch type {
        case .link(let name), .embedded(let name): target = name
        default: return false
        }
        if collection != .none { steps.append(.every) }
        // `dogs[*].name` means `dogs.name`.
        if steps.contains(where: \.isMany) { passesObjects = true }
        let index = try binder.typeIndex(target, at: path.position)
        if case .link = type { steps.append(.follow(index)) } else { steps.append(.embedded(index)) }
        place = .object(binder.schema.types[index])
        return true
    }

    // MARK: Brackets

    private mutating func key(_ key: String) throws(SluiceError) {
        switch place {
        case .stored(let type, .dictionary): place = .stored(type, .none)
        case .stored(.mixed, .none): break
        default: throw noObject
        }
        steps.append(.key(key))
    }

    private mutating func subscripted(_ step: PathStep.Kind) throws(SluiceError) {
        guard case .stored(let type, let collection) = place else { throw noCollection }
        switch step {
        case .key(let key): return try self.key(key)
        case .keyArgument(let number):
            switch try binder.argument(number, at: path.position) {
            case .value(.string(let key)): return try self.key(key)
            case .value(.int(let index)) where index >= 0: return try at(.index(Int(clamping: index)), type, collection)
            default:
                throw binder.diagnostic.error(
                    .queryArgument, "Invalid index parameter: $\(number) is no key and no index", at: path.position)
            }
        case .index(let index): return try at(.index(Int(clamping: index)), type, collection)
        case .first: return try at(.first, type, collection)
        case .last: return try at(.last, type, collection)
        case .every, .values:
            guard collection != .none || type == .mixed, step == .every || collection == .dictionary || collection == .none else {
                throw noCollection
            }
            noteSequence()
            steps.append(.every)
            place = .stored(type, .none)
        case .keys:
            guard collection == .dictionary || (type == .mixed && collection == .none) else { throw noCollection }
            steps.append(.keys)
            place = .stored(.string, .none)
        default: throw noCollection
        }
    }

    private mutating func at(_ step: BoundStep, _ type: PropertyType, _ collection: CollectionKind) throws(SluiceError) {
        guard collection == .list || (type == .mixed && collection == .none) else { throw noCollection }
        steps.append(step)
        place = .stored(type, .none)
    }

    private var noCollection: SluiceError {
        binder.mismatch(
            "'\(binder.written(path))' has an index or key behind what has none; Only Property of type 'any' can have nested collections",
            at: path.position)
    }

    // MARK: Backlinks

    private mutating func backlinks(_ rest: inout ArraySlice<PathStep>) throws(SluiceError) {
        guard try enterObject(), let target = objectType else { throw noObject }
        // `@links.@count` at the end counts links from every class, so no class follows.
        if rest.isEmpty, try suffix() == .count {
            place = .object(target)
            isIncomingCount = true
            return
        }
        guard case .name(let className)? = rest.popFirst()?.kind, case .name(let name)? = rest.popFirst()?.kind else {
            throw binder.mismatch("@links is followed by a class and a property: @links.Class.property", at: path.position)
        }
        let index = try binder.typeIndex(className, at: path.position)
        let source = binder.schema.types[index]
        guard let property = source.index(of: name) else { throw binder.unknown(name, in: source, at: path.position) }
        switch source.properties[property].type {
        case .link(target.name), .embedded(target.name), .mixed: break
        default:
            throw binder.mismatch(
                "No property '\(name)' found in type '\(source.name)' which links to type '\(target.name)'", at: path.position)
        }
        if source.kind == .embedded { throw binder.unsupported("@links of the embedded type '\(source.name)'", at: path.position) }
        steps.append(.incoming(type: index, property: property))
        passesObjects = true
        place = .object(source)
    }

    private var isIncomingCount = false

    // MARK: The end

    private mutating func noteSequence() {
        guard case .stored(_, let collection) = place else { return }
        if passesObjects {
            sequence = .objects
        } else if collection == .list {
            sequence = .list
        } else if collection == .set {
            sequence = .set
        }
    }

    mutating func finish() throws(SluiceError) -> BoundPath {
        let suffix = try suffix()
        if suffix == .count { return try counted() }
        var type = PropertyType.mixed
        switch place {
        case .object(let object):
            type = .link(to: object.name)
            if passesObjects { sequence = .objects }
        case .stored(let stored, let collection):
            type = stored
            if collection != .none {
                noteSequence()
                steps.append(.every)
            } else if passesObjects {
                sequence = .objects
            }
            if case .link(let target) = stored { steps.append(.link(to: target)) }
        }
        let isMany = steps.contains(where: \.isMany)
        if suffix == .type {
            return BoundPath(steps: steps, result: .types, type: .typeName, isMany: isMany, sequence: isMany ? sequence : .none)
        }
        return BoundPath(steps: steps, result: .values, type: .value(type), isMany: isMany, sequence: isMany ? sequence : .none)
    }

    private mutating func counted() throws(SluiceError) -> BoundPath {
        var result = BoundPath.Result.size
        switch place {
        case .object: result = isIncomingCount ? .incomingCount : .objectCount
        case .stored(let type, let collection):
            switch type {
            case .link, .embedded:
                result = .objectCount
                if collection != .none { steps.append(.every) }
            case .string, .binary, .mixed: break
            default:
                if collection == .none {
                    var path = path
                    path.suffix = nil
                    throw binder.mismatch(
                        "Operation '@count' is not supported on '\(binder.written(path))' of type '\(type.name)'", at: path.position)
                }
            }
        }
        let isMany = result == .size && steps.contains(where: \.isMany)
        return BoundPath(steps: steps, result: result, type: .value(.int), isMany: isMany, sequence: isMany ? .objects : .none)
    }
}
