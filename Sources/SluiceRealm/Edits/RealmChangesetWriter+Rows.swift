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
        if lastClass?.plan !== plan { lastClass = (plan, name(of: plan)) }
        place.removeAll()
        place.integer(lastClass?.name ?? 0)
        guard case .string(let text) = object.key else { return try place.key(object.key) }
        place.integer(RealmTypeTag.string.rawValue)
        place.integer(number(of: text))
    }

    /// Returns the number of a class's name.
    private mutating func name(of plan: RealmClassPlan) -> Int64 {
        while classes.count <= plan.index { classes.append(nil) }
        // Another schema may have another class at the index.
        if let known = classes[plan.index], known.plan === plan { return known.name }
        let name = number(of: plan.type.name)
        classes[plan.index] = ClassNumbers(plan: plan, name: name, properties: Array(repeating: nil, count: plan.forms.count))
        return name
    }

    /// Writes the tag of an instruction, the place, and the property's number.
    private mutating func begin(_ tag: RealmInstructionTag, _ index: Int, _ plan: RealmClassPlan) {
        self.tag(tag)
        body.raw(place)
        if let known = classes[plan.index]?.properties[index] { return body.integer(known) }
        let number = number(of: plan.type.properties[index].name)
        classes[plan.index]?.properties[index] = number
        body.integer(number)
    }
}
