package import SluiceCore

extension ObjectState {
    /// Puts zeros where embedded objects lack what they must have: the model of whoever made them may not have it (SCH-10). Nobody wrote
    /// them, so everything beats them.
    /// - Parameter names: of the properties that were written.
    package mutating func fill(_ names: Set<String>, of type: ObjectType, in schema: Schema, now: LSN) {
        let filling = Filling(schema: schema, now: now)
        for name in names {
            guard let property = type[name], case .embedded = property.type, var value = values?[name],
                var clock = clocks.properties[property.id], filling.fill(&value, property, &clock)
            else { continue }
            clock.valueHash = ValueHash(value)
            values?[name] = value
            clocks.properties[property.id] = clock
        }
    }
}

private struct Filling {
    let schema: Schema
    let now: LSN

    /// - Parameter clock: Of the place. Elements of collections came as wholes: what is put into them has no clock.
    /// - Returns: whether anything was missing.
    func fill(_ value: inout Value, _ property: Property, _ clock: inout PropertyClock) -> Bool {
        guard case .embedded(let name) = property.type, let type = schema[name] else { return false }
        var isChanged = false
        switch (property.collection, value) {
        case (.none, .dictionary(var fields)):
            isChanged = fill(&fields, type, &clock)
            if isChanged { value = .dictionary(fields) }
        case (.list, .list(var elements)):
            for index in elements.indices { isChanged = fill(element: &elements[index], type) || isChanged }
            if isChanged { value = .list(elements) }
        case (.dictionary, .dictionary(var entries)):
            for key in Array(entries.keys) { isChanged = fill(element: &entries[key, default: .null], type) || isChanged }
            if isChanged { value = .dictionary(entries) }
        default: break
        }
        return isChanged
    }

    private func fill(element: inout Value, _ type: ObjectType) -> Bool {
        guard case .dictionary(var fields) = element else { return false }
        var nobody = PropertyClock.unwritten
        guard fill(&fields, type, &nobody) else { return false }
        element = .dictionary(fields)
        return true
    }

    private func fill(_ fields: inout [String: Value], _ type: ObjectType, _ clock: inout PropertyClock) -> Bool {
        var isChanged = false
        for property in type.properties {
            let entry = clock.entry(property.name)
            if var value = fields[property.name] {
                var inner = entry ?? .unwritten
                guard fill(&value, property, &inner) else { continue }
                fields[property.name] = value
                if entry != nil { clock.keep(inner, at: property.name, now) }
            } else {
                guard property.isRequired else { continue }
                fields[property.name] = property.emptyValue
                if entry == nil { clock.keep(.unwritten, at: property.name, now) }
            }
            isChanged = true
        }
        return isChanged
    }
}

extension PropertyClock {
    /// The clock of a key, where nobody did anything inside of the value.
    fileprivate mutating func keep(_ clock: PropertyClock, at key: String, _ lsn: LSN) {
        var entries: [String: Contents.Entry] = [:]
        if case .keyed(let known)? = contents { entries = known }
        entries[key] = Contents.Entry(clock: clock, lsn: entries[key]?.lsn ?? lsn)
        contents = .keyed(entries)
    }
}
