package import SluiceCore

/// New values of an object that the client holds, and its row. They become the same bytes as the instructions of
/// `RealmObjectWriter.replace`.
package struct RealmChangedObject: Sendable {
    package let object: ObjectKey
    let plan: RealmClassPlan
    let row: Row
    /// The instructions before all values.
    let opening: [RealmInstruction]
    /// The indices of the properties with new values, ascending.
    private(set) var properties: [Int] = []
    /// In the order of their properties.
    private(set) var inside: [RealmEnteringObject.Inside] = []
    /// An estimate of the encoded bytes, which is no less.
    package private(set) var cost: Int

    fileprivate init(_ object: ObjectKey, _ row: Row, _ plan: RealmClassPlan, opening: [RealmInstruction]) {
        (self.object, self.row, self.plan, self.opening) = (object, row, plan, opening)
        cost = opening.cost + object.key.textCost
    }

    /// `true` if the instructions of `prepareContainers` precede the values.
    package var hasContainers: Bool { !opening.isEmpty }
    /// `true` if nothing is written.
    package var isEmpty: Bool { opening.isEmpty && properties.isEmpty }

    fileprivate mutating func add(_ index: Int, _ value: Value, _ schema: Schema) throws(SluiceError) {
        properties.append(index)
        if let bytes = plan.forms[index].cost(changing: value, object.key.placeCost) {
            cost += bytes
            return
        }
        var emitter = RealmEmitter(typing: RealmTyping(schema: schema), object: object)
        try emitter.replace(plan.type.properties[index], value)
        cost += emitter.instructions.reduce(0) { $0 + $1.cost }
        inside.append(RealmEnteringObject.Inside(property: index, instructions: emitter.instructions))
    }
}

extension RealmObjectWriter {
    /// Returns new values of an object, whatever the client's copy holds.
    /// - Parameters:
    ///   - names: The properties that change, as far as the row shows them. Nil for all: those that the row does not show become empty.
    ///   - number: The number for `prepareContainers`.
    /// - Throws: `internalError` for a value that does not fit the app's schema.
    package func replace(
        _ object: ObjectKey, _ row: Row, _ names: Set<String>?, number: UInt64
    ) throws(SluiceError) -> RealmChangedObject {
        let plan = try plan(of: object)
        let properties = plan.type.properties
        var row = row
        if names == nil { row.values = properties.enumerated().map { row[$0] ?? $1.emptyValue } }
        let changed = properties.indices.filter { index in
            index != plan.type.primaryKey && row[index] != nil && names?.contains(properties[index].name) ?? true
        }
        let hasContainer = changed.contains { properties[$0].isMixed && row[$0]?.isContainer == true }
        var object = RealmChangedObject(object, row, plan, opening: hasContainer ? prepareContainers(in: plan.type, number) : [])
        for index in changed { if let value = row[index] { try object.add(index, value, schema) } }
        return object
    }
}

extension OutgoingOperation {
    /// Returns the operations of new values of an object, those of its instructions.
    /// - Throws: `internalError` for a key that is no primary key, or a number that is no index of a list.
    package static func operations(_ changed: RealmChangedObject) throws(SluiceError) -> [OutgoingOperation] {
        var operations: [OutgoingOperation] = []
        for instruction in changed.opening { operations.append(try OutgoingOperation(instruction)) }
        let object = try Object(changed.object)
        var inside = changed.inside[...]
        for index in changed.properties {
            if inside.first?.property == index, let next = inside.popFirst() {
                for instruction in next.instructions { operations.append(try OutgoingOperation(instruction)) }
            } else {
                operations.append(.update(Path(object: object, property: changed.plan.type.properties[index].name), .value))
            }
        }
        return operations
    }
}
