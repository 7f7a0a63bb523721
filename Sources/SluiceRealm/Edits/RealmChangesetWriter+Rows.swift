package import SluiceCore

// Rows, written without instructions. The bytes are those of the instructions that `RealmObjectWriter` returns for the values.
extension RealmChangesetWriter {
    /// Writes an object that enters.
    /// - Throws: `internalError` for a value that the protocol cannot express. Nothing usable is written then.
    package mutating func append(_ entering: RealmEnteringObject) throws(SluiceError) {
        let plan = entering.plan
        try begin(entering.object, plan)
        tag(.eraseObject)
        body.raw(place)
        tag(.createObject)
        body.raw(place)
        var inside = entering.inside[...]
        for index in plan.forms.indices {
            if inside.first?.property == index, let next = inside.popFirst() {
                for instruction in next.instructions { try append(instruction) }
            } else {
                try append(entering.row[index], index, plan)
            }
        }
    }

    /// Writes an object that enters, from the cells of its row. The bytes are those of `RealmEnteringObject`.
    /// - Returns: The object for the model of the client.
    /// - Throws: `internalError` for a value that the protocol cannot express. Nothing usable is written then.
    package mutating func append(
        _ object: ObjectKey, _ row: RowView, _ writer: RealmObjectWriter
    ) throws(SluiceError) -> OutgoingOperation.Entered {
        let plan = try writer.plan(of: object)
        try begin(object, plan)
        tag(.eraseObject)
        body.raw(place)
        tag(.createObject)
        body.raw(place)
        for index in plan.forms.indices {
            let cell = row[index]
            if case .scalar = plan.forms[index] {
                if cell.tag == .absent || cell.tag == .null { continue }
                let start = body.bytes.count
                begin(.update, index, plan)
                // No steps.
                body.integer(0)
                if body.value(cell, of: row) {
                    // No default.
                    body.integer(0)
                    continue
                }
                body.truncate(to: start)
            }
            try append(row.value(of: cell), index, of: object, plan, writer)
        }
        return try entered(object, row, plan)
    }

    /// Writes the value of a property of a new object in its general form.
    private mutating func append(
        _ value: Value?, _ index: Int, of object: ObjectKey, _ plan: RealmClassPlan, _ writer: RealmObjectWriter
    ) throws(SluiceError) {
        if plan.forms[index].cost(entering: value, 0) != nil { return try append(value, index, plan) }
        var emitter = RealmEmitter(typing: RealmTyping(schema: writer.schema), object: object)
        try emitter.enter(plan.type.properties[index], value)
        for instruction in emitter.instructions { try append(instruction) }
    }

    private func entered(_ object: ObjectKey, _ row: RowView, _ plan: RealmClassPlan) throws(SluiceError) -> OutgoingOperation.Entered {
        var lists: [OutgoingOperation.List] = []
        for index in plan.lists {
            guard row[index].tag == .list, case .list(let elements)? = row.value(index), !elements.isEmpty else { continue }
            lists.append(try OutgoingOperation.List(plan.type.properties[index], elements))
        }
        // Behind the number of the class, the place is the key as the model has it, unless the key is a text.
        if case .string = object.key { return .init(try .init(object), lists) }
        return .init(hash: ClientModel.hash(place.bytes.dropFirst(classBytes), plan.start), lists)
    }

    /// Writes new values of an object.
    /// - Throws: `internalError` for a value that the protocol cannot express. Nothing usable is written then.
    package mutating func append(_ changed: RealmChangedObject) throws(SluiceError) {
        let plan = changed.plan
        for instruction in changed.opening { try append(instruction) }
        var inside = changed.inside[...]
        // The first instruction of an object declares its names.
        var isBegun = false
        for index in changed.properties {
            if inside.first?.property == index, let next = inside.popFirst() {
                for instruction in next.instructions { try append(instruction) }
                continue
            }
            if !isBegun { try begin(changed.object, plan) }
            isBegun = true
            guard let value = changed.row[index] else { continue }
            if case .link(let target) = plan.forms[index] {
                try update(value, target, index, plan)
            } else {
                try update(value, nil, index, plan)
            }
        }
    }

    /// Writes the value of a property of a new object, whose properties are empty.
    private mutating func append(_ value: Value?, _ index: Int, _ plan: RealmClassPlan) throws(SluiceError) {
        switch plan.forms[index] {
        // The place has the primary key, and general values have instructions.
        case .primaryKey, .general: break
        case .scalar: if let value, !value.isNull { try update(value, nil, index, plan) }
        case .link(let target): if let value, !value.isNull { try update(value, target, index, plan) }
        case .list: if case .list(let elements)? = value { try insert(elements, nil, index, plan) }
        case .links(let target): if case .list(let keys)? = value { try insert(keys, target, index, plan) }
        case .mixed:
            begin(.update, index, plan)
            // No steps, and no default.
            body.integer(0)
            type(Edit.Container.dictionary.realmTag)
            body.integer(0)
            try update(value ?? .null, nil, index, plan)
        }
    }

    /// Writes a value to a property without collection.
    /// - Parameter target: The class of a link's target; nil for other values.
    private mutating func update(_ value: Value, _ target: String?, _ index: Int, _ plan: RealmClassPlan) throws(SluiceError) {
        begin(.update, index, plan)
        // No steps.
        body.integer(0)
        try payload(value, target)
        // No default.
        body.integer(0)
    }

    /// Writes the elements of an empty list.
    private mutating func insert(_ elements: [Value], _ target: String?, _ index: Int, _ plan: RealmClassPlan) throws(SluiceError) {
        for (position, element) in elements.enumerated() {
            begin(.arrayInsert, index, plan)
            // One step.
            body.integer(1)
            body.integer(Int64(position))
            try payload(element, target)
            // The prior size.
            body.integer(Int64(position))
        }
    }

    private mutating func payload(_ value: Value, _ target: String?) throws(SluiceError) {
        guard let target, !value.isNull else { return try payload(value) }
        try link(target, value)
    }

    // MARK: Places

    /// Sets `place` to the bytes of an object's class and key.
    private mutating func begin(_ object: ObjectKey, _ plan: RealmClassPlan) throws(SluiceError) {
        // Most objects follow one of their class.
        if lastPlan !== plan { turn(to: plan) }
        place.removeAll()
        place.integer(lastName)
        classBytes = place.bytes.count
        guard case .string(let text) = object.key else { return try place.key(object.key) }
        place.integer(RealmTypeTag.string.rawValue)
        place.integer(number(of: text))
    }

    /// Makes a class that of the last row.
    private mutating func turn(to plan: RealmClassPlan) {
        if let lastPlan { classes[lastIndex] = ClassNumbers(plan: lastPlan, name: lastName, properties: lastProperties) }
        while classes.count <= plan.index { classes.append(nil) }
        (lastPlan, lastIndex) = (plan, plan.index)
        // Another schema may have another class at the index.
        if let known = classes[plan.index], known.plan === plan {
            (lastName, lastProperties) = (known.name, known.properties)
        } else {
            (lastName, lastProperties) = (number(of: plan.type.name), Array(repeating: -1, count: plan.forms.count))
        }
    }

    /// Writes the tag of an instruction, the place, and the property's number.
    private mutating func begin(_ tag: RealmInstructionTag, _ index: Int, _ plan: RealmClassPlan) {
        self.tag(tag)
        body.raw(place)
        if lastProperties[index] < 0 { lastProperties[index] = number(of: plan.type.properties[index].name) }
        body.integer(lastProperties[index])
    }
}
