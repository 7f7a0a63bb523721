package import SluiceCore
import SluiceValues

/// The classes that a client's changeset declares. In development mode the app adopts those that it lacks.
package struct RealmDeclarations {
    /// A class and its properties by name.
    private struct Class {
        var table: RealmTable
        var columns: [RealmColumn] = []
        var numbers: [RealmText: Int] = [:]
    }

    private let known: Schema
    private var classes: [Class] = []
    private var numbers: [RealmText: Int] = [:]
    private var properties = 0

    private init(known: Schema) { self.known = known }

    /// Returns the declared classes in the order of their first declaration. Property numbers are 0.
    ///
    /// A class that only gets properties has the kind and the key that the app knows, and no other properties.
    /// - Parameter known: The app's schema. It decides which links lead to embedded objects, unless the changeset declares the target.
    /// - Throws: `limitsExceeded` beyond `Limits.helloClasses` or `Limits.helloProperties`. `invalidSchemaChange` if two declarations
    ///   contradict each other, or if one refers to an unknown class. For a deletion, the error of `RealmSchemaCheck`.
    package static func types(
        in instructions: some Sequence<RealmInstruction>, known: Schema
    ) throws(SluiceError) -> [ObjectType] {
        var declarations = RealmDeclarations(known: known)
        for instruction in instructions {
            switch instruction {
            case .addTable(let table): try declarations.add(table)
            case .addColumn(let column): try declarations.add(column)
            case .eraseTable, .eraseColumn: try RealmSchemaCheck(known).check(instruction)
            default: break
            }
        }
        return try declarations.types()
    }

    // MARK: Collecting

    private mutating func add(_ table: RealmTable) throws(SluiceError) {
        let name = RealmText(table.name)
        guard let number = numbers[name] else {
            guard classes.count < Limits.helloClasses else {
                throw SluiceError(.limitsExceeded, "The client declares more than \(Limits.helloClasses) classes.")
            }
            numbers[name] = classes.count
            return classes.append(Class(table: table))
        }
        guard classes[number].table != table else { return }
        throw SluiceError(.invalidSchemaChange, "The client declares class '\(table.name.excerpt)' in two ways.")
    }

    private mutating func add(_ column: RealmColumn) throws(SluiceError) {
        if numbers[RealmText(column.table)] == nil {
            guard let type = known[column.table] else {
                throw SluiceError(.invalidSchemaChange, "The client declares a property of the unknown class '\(column.table.excerpt)'.")
            }
            try add(type.realmTable)
        }
        guard let number = numbers[RealmText(column.table)] else { return }
        let name = RealmText(column.name)
        if let same = classes[number].numbers[name] {
            guard classes[number].columns[same] != column else { return }
            throw SluiceError(
                .invalidSchemaChange, "The client declares property '\(column.table.excerpt).\(column.name.excerpt)' in two ways.")
        }
        guard properties < Limits.helloProperties else {
            throw SluiceError(.limitsExceeded, "The client declares more than \(Limits.helloProperties) properties.")
        }
        properties += 1
        classes[number].numbers[name] = classes[number].columns.count
        classes[number].columns.append(column)
    }

    // MARK: Types

    private func types() throws(SluiceError) -> [ObjectType] {
        var types: [ObjectType] = []
        for declared in classes {
            let table = declared.table
            var properties: [Property] = []
            if let key = table.key { properties.append(Property(id: 0, name: key.name, type: key.type, isOptional: key.isNullable)) }
            for column in declared.columns { properties.append(try property(column)) }
            types.append(ObjectType(name: table.name, kind: table.kind, properties: properties, primaryKey: table.key?.name))
        }
        return types
    }

    /// Links, embedded objects and mixed values imply their optionality, as in the SDK's schema.
    private func property(_ column: RealmColumn) throws(SluiceError) -> Property {
        var (type, isOptional) = (column.type, column.isNullable)
        if case .link(let target) = column.type {
            guard let kind = numbers[RealmText(target)].map({ classes[$0].table.kind }) ?? known[target]?.kind else {
                throw SluiceError(
                    .invalidSchemaChange,
                    "Property '\(column.table.excerpt).\(column.name.excerpt)' links to the unknown class '\(target.excerpt)'.")
            }
            if kind == .embedded { type = .embedded(target) }
            isOptional = column.collection == .none
        }
        if type == .mixed { isOptional = column.collection == .none }
        return Property(id: 0, name: column.name, type: type, collection: column.collection, isOptional: isOptional)
    }
}
