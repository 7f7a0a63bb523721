package import SluiceCore

/// An object that enters a client's view, and its row. It becomes the same bytes as the instructions of `RealmObjectWriter.enter`.
///
/// Instructions name the object, the class and the property again for each value. A row needs none of that, and most values are written
/// from where they are.
package struct RealmEnteringObject: Sendable {
    /// The instructions of a property whose value has no simple form.
    struct Inside: Sendable {
        var property: Int
        var instructions: [RealmInstruction]
    }

    package let object: ObjectKey
    let plan: RealmClassPlan
    let row: Row
    /// In the order of their properties.
    private(set) var inside: [Inside] = []
    /// An estimate of the encoded bytes, which is no less. It equals that of the instructions.
    package private(set) var cost: Int

    fileprivate init(_ object: ObjectKey, _ row: Row, _ plan: RealmClassPlan) {
        (self.object, self.row, self.plan) = (object, row, plan)
        cost = object.key.textCost + 2 * object.key.objectCost
    }

    fileprivate mutating func measure(_ schema: Schema) throws(SluiceError) {
        let place = object.key.placeCost
        for index in plan.forms.indices {
            let value = row[index]
            if let bytes = plan.forms[index].cost(entering: value, place) {
                cost += bytes
                continue
            }
            var emitter = RealmEmitter(typing: RealmTyping(schema: schema), object: object)
            try emitter.enter(plan.type.properties[index], value)
            cost += emitter.instructions.reduce(0) { $0 + $1.cost }
            inside.append(Inside(property: index, instructions: emitter.instructions))
        }
    }
}

extension RealmObjectWriter {
    /// Returns an object that enters a client's view, with its visible values. They erase a copy that the client may hold.
    /// - Throws: `internalError` for a value that does not fit the app's schema.
    package func enter(_ object: ObjectKey, _ row: Row) throws(SluiceError) -> RealmEnteringObject {
        var entering = RealmEnteringObject(object, row, try plan(of: object))
        try entering.measure(schema)
        return entering
    }
}

extension OutgoingOperation {
    /// The operation of an object that enters.
    /// - Throws: `internalError` for a key that is no primary key, or a list that is too long.
    package init(_ entering: RealmEnteringObject) throws(SluiceError) {
        var lists: [List] = []
        for index in entering.plan.lists {
            guard case .list(let elements)? = entering.row[index], !elements.isEmpty else { continue }
            lists.append(try List(entering.plan.type.properties[index], elements))
        }
        self = .enter([Entered(try Object(entering.object), lists)])
    }
}

extension OutgoingOperation.List {
    /// - Throws: `internalError` for a list that is too long.
    init(_ property: Property, _ elements: [Value]) throws(SluiceError) {
        self.init(property: property.name, count: try OutgoingOperation.number(elements.count))
    }
}
