import SluiceCore

/// The SQL of a path.
struct SQLPath {
    /// The items of a FROM clause. Empty for a value of the row itself.
    var sources: [SQLText] = []
    /// The conditions that join the sources.
    var conditions: [SQLText] = []
    /// The value for each row of the sources.
    var value: SQLText
    var type: PropertyType
    /// `true` if the sources may have any number of rows. Otherwise they have one, or none for a broken link.
    var isMany = false
    /// The value if the sources have no row.
    var missing = Value.null

    /// Returns the expression of a path with one value, for use in the row.
    func expression(_ printer: SQLPrinter) -> SQLText {
        if sources.isEmpty { return value }
        let selected: SQLText = "(\(printer.select(value, from: sources, conditions)))"
        return missing.isNull ? selected : "coalesce(\(selected), 0)"
    }
}

/// A number of rows.
struct SQLCount {
    var sources: [SQLText]
    var conditions: [SQLText]
    /// Returns a further condition on a row, or its complement.
    var inner: ((Bool) -> SQLPiece)?
}

/// The objects in scope: the row, then those of the enclosing SUBQUERYs.
struct SQLScope {
    var objects: [(name: SQLText, type: ObjectType)]
}

/// Generates aliases for the tables of sub-selects, unique in a statement.
final class SQLNames {
    private var count = 0

    func next(_ letter: StaticString) -> String {
        count += 1
        return "\(letter)\(count)"
    }
}

/// Follows paths through tables. A nil result is a path into a document, or into a type that the dialect stores as one.
struct SQLPathPrinter {
    let layout: SQLLayout
    let names: SQLNames
    let scope: SQLScope
    /// `true` if the number of rows of the sources matters.
    var countsRows = false

    private enum Place {
        case object(SQLText, ObjectType)
        case value(SQLText, PropertyType)
        case array(SQLText, PropertyType, isSet: Bool)
    }

    private struct Walk {
        var sources: [SQLText] = []
        var conditions: [SQLText] = []
        var isMany = false
        var place: Place
    }

    private var printer: SQLPrinter { SQLPrinter(dialect: layout.dialect) }

    // MARK: Results

    func path(_ path: BoundPath) -> SQLPath? {
        guard let walk = walk(path.steps) else { return nil }
        switch (path.result, walk.place) {
        case (.values, .object(let object, let type)):
            guard let key = type.primaryKey, let column = column(object, type, key) else { return nil }
            return finish(walk, column, .link(to: type.name))
        case (.values, .value(let value, let type)): return finish(walk, value, type)
        case (.size, .value(let value, .string)), (.size, .value(let value, .binary)):
            return finish(walk, "coalesce(\(bytes(of: value)), 0)", .int, missing: .int(0))
        case (.size, .array(let array, let type, let isSet)):
            return printer.size(of: array, type, isSet: isSet).map { finish(walk, $0, .int, missing: .int(0)) }
        default: return nil
        }
    }

    private func finish(_ walk: Walk, _ value: SQLText, _ type: PropertyType, missing: Value = .null) -> SQLPath {
        SQLPath(
            sources: walk.sources, conditions: walk.conditions, value: value, type: type, isMany: walk.isMany, missing: missing)
    }

    /// Returns the number of things that a path reaches.
    func count(_ path: BoundPath) -> SQLCount? {
        guard path.result == .objectCount, let walk = walk(path.steps), !walk.sources.isEmpty else { return nil }
        var conditions = walk.conditions
        switch walk.place {
        case .object: break
        case .value(let value, .link): if path.steps.last != .every { conditions.append("\(value) IS NOT NULL") }
        case .value, .array: return nil
        }
        return SQLCount(sources: walk.sources, conditions: conditions)
    }

    /// Returns `link.@count` for the row's own link.
    func ownCount(_ path: BoundPath) -> SQLText? {
        guard path.result == .objectCount, let walk = walk(path.steps), walk.sources.isEmpty else { return nil }
        guard case .value(let value, .link) = walk.place else { return nil }
        return "CASE WHEN \(value) IS NULL THEN 0 ELSE 1 END"
    }

    /// Returns the objects that a path reaches.
    func objects(_ path: BoundPath) -> (count: SQLCount, name: SQLText, type: ObjectType)? {
        guard let walk = walk(path.steps), walk.isMany, case .object(let name, let type) = walk.place else { return nil }
        return (SQLCount(sources: walk.sources, conditions: walk.conditions), name, type)
    }

    /// Returns `@min` or `@max` if the database orders the type as the language does.
    func aggregate(_ aggregate: BoundAggregate) -> SQLPath? {
        guard aggregate.function == .min || aggregate.function == .max, aggregate.type == .int || aggregate.type == .timestamp else {
            return nil
        }
        let steps = aggregate.element.map { aggregate.collection.steps + $0.steps } ?? aggregate.collection.steps + [.every]
        guard aggregate.element != nil || !aggregate.collection.isMany, let walk = walk(steps),
            case .value(let value, let type) = walk.place
        else { return nil }
        let function: SQLText = aggregate.function == .min ? "min" : "max"
        let selected = printer.select("\(function)(\(value))", from: walk.sources, walk.conditions)
        return SQLPath(value: "(\(selected))", type: type)
    }

    /// Returns a list of the row itself.
    func array(_ path: BoundPath) -> (value: SQLText, type: PropertyType)? {
        guard let walk = walk(path.steps), walk.sources.isEmpty, case .array(let array, let type, _) = walk.place else { return nil }
        return (array, type)
    }

    // MARK: Steps

    private func walk(_ steps: [BoundStep]) -> Walk? {
        guard case .variable(let index)? = steps.first, index < scope.objects.count else { return nil }
        var walk = Walk(place: .object(scope.objects[index].name, scope.objects[index].type))
        for step in steps.dropFirst() {
            guard take(step, &walk) else { return nil }
        }
        return walk
    }

    private func take(_ step: BoundStep, _ walk: inout Walk) -> Bool {
        switch (step, walk.place) {
        case (.property(let index), .object(let object, let type)):
            guard let place = property(object, type, index) else { return false }
            walk.place = place
        case (.follow(let index), .value(let key, .link)): return follow(key, layout.schema.types[index], &walk)
        case (.incoming(let type, let property), .object(let object, let target)):
            return enter(layout.schema.types[type], property, from: object, target, &walk)
        case (.link, .value(let key, _)): if walk.isMany { walk.conditions.append("\(key) IS NOT NULL") }
        case (.every, .array(let array, let type, let isSet)):
            walk.place = .value(elements(of: array, isSet: isSet, &walk), type)
            walk.isMany = true
        case (.index(let index), .array(let array, let type, _)):
            walk.place = .value(index < Int(Int32.max) ? "(\(array))[\(index + 1)]" : "NULL", type)
            if index >= Int(Int32.max) { return false }
        case (.first, .array(let array, let type, _)): walk.place = .value("(\(array))[1]", type)
        case (.last, .array(let array, let type, _)): walk.place = .value("(\(array))[cardinality(\(array))]", type)
        case (.length, .value(let value, .string)), (.length, .value(let value, .binary)): walk.place = .value(bytes(of: value), .int)
        default: return false
        }
        return true
    }

    /// Adds an array's elements to the sources. An array may contain an element of a set twice, so DISTINCT applies if rows are counted.
    private func elements(of array: SQLText, isSet: Bool, _ walk: inout Walk) -> SQLText {
        let name = names.next("e")
        if isSet, countsRows {
            walk.sources.append("LATERAL (SELECT DISTINCT v FROM unnest(\(array)) AS e(v)) AS \(name: name)")
        } else {
            walk.sources.append("unnest(\(array)) AS \(name: name)(v)")
        }
        return "\(name: name).v"
    }

    private func property(_ object: SQLText, _ type: ObjectType, _ index: Int) -> Place? {
        guard let column = column(object, type, index) else { return nil }
        let property = type.properties[index]
        switch property.collection {
        case .none: return .value(column, property.type)
        case .list, .set:
            guard layout.dialect == .postgres, layout.stored(property.type) != nil else { return nil }
            return .array(column, property.type, isSet: property.collection == .set)
        case .dictionary: return nil
        }
    }

    /// Steps from a key to the object. The sources have no row if there is no such object.
    private func follow(_ key: SQLText, _ target: ObjectType, _ walk: inout Walk) -> Bool {
        guard let table = layout.tables[target.name], let primaryKey = target.primaryKey else { return false }
        let name = SQLText(name: names.next("t"))
        guard let column = column(name, target, primaryKey) else { return false }
        walk.sources.append("\(name: table.name) AS \(name)")
        walk.conditions.append(isSame(column, key, target))
        walk.place = .object(name, target)
        return true
    }

    /// Steps from an object to those that link to it.
    private func enter(
        _ source: ObjectType, _ property: Int, from object: SQLText, _ target: ObjectType, _ walk: inout Walk
    ) -> Bool {
        guard let table = layout.tables[source.name], let primaryKey = target.primaryKey,
            let key = column(object, target, primaryKey), source.properties[property].type == .link(to: target.name),
            table.linksBack?.contains(property) ?? true
        else { return false }
        let name = SQLText(name: names.next("t"))
        guard let place = self.property(name, source, property) else { return false }
        walk.sources.append("\(name: table.name) AS \(name)")
        switch place {
        case .value(let link, _): walk.conditions.append(isSame(link, key, target))
        case .array(let links, _, let isSet):
            walk.conditions.append(isSame(elements(of: links, isSet: isSet, &walk), key, target))
        case .object: return false
        }
        walk.isMany = true
        walk.place = .object(name, source)
        return true
    }

    private func isSame(_ left: SQLText, _ right: SQLText, _ target: ObjectType) -> SQLText {
        let type = layout.stored(.link(to: target.name)) ?? .string
        return "\(printer.ordered(left, type)) = \(printer.ordered(right, type))"
    }

    private func column(_ object: SQLText, _ type: ObjectType, _ index: Int) -> SQLText? {
        guard let table = layout.tables[type.name], index < table.columns.count else { return nil }
        return "\(object).\(name: table.columns[index])"
    }

    private func bytes(of value: SQLText) -> SQLText {
        layout.dialect == .postgres ? "octet_length(\(value))" : "length(CAST(\(value) AS BLOB))"
    }
}
