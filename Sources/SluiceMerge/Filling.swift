package import SluiceCore

extension ObjectState {
    /// Fills missing required fields of embedded objects with empty values: the writer's model may lack them. The values have no writer, so
    /// every write beats them.
    /// - Parameter names: The names of the written properties.
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

    /// - Parameter clock: The clock of the place.
    /// - Returns: `true` if a field was missing.
    func fill(_ value: inout Value, _ property: Property, _ clock: inout PropertyClock) -> Bool {
        guard case .embedded(let name) = property.type, let type = schema[name] else { return false }
        switch (property.collection, value) {
        case (.none, .dictionary(var fields)):
            guard fill(&fields, type, &clock) else { return false }
            value = .dictionary(fields)
        case (.list, .list(var elements)):
            guard fill(elements: &elements, type, &clock) else { return false }
            value = .list(elements)
        case (.dictionary, .dictionary(var entries)):
            guard fill(entries: &entries, type, &clock) else { return false }
            value = .dictionary(entries)
        default: return false
        }
        return true
    }

    /// Fills the elements and records their original hashes, by which their writers refer to them.
    private func fill(elements: inout [Value], _ type: ObjectType, _ clock: inout PropertyClock) -> Bool {
        var list = clock.list(of: elements.count)
        var isChanged = false
        for (index, element) in list.elements.enumerated() {
            guard case .dictionary(var fields) = elements[index] else { continue }
            let place = list.places[element.first]
            var inner = place.value?.clock ?? PropertyClock(stamp: place.stamp)
            guard fill(&fields, type, &inner) else { continue }
            list.places[element.first].remember(elements[index], until: now)
            list.places[element.first].value = Contents.Entry(clock: inner, lsn: now)
            elements[index] = .dictionary(fields)
            isChanged = true
        }
        if isChanged { clock.contents = .list(list) }
        return isChanged
    }

    private func fill(entries: inout [String: Value], _ type: ObjectType, _ clock: inout PropertyClock) -> Bool {
        var isChanged = false
        for (key, entry) in entries {
            guard case .dictionary(var fields) = entry else { continue }
            var inner = clock.entry(key) ?? .ofWhole
            guard fill(&fields, type, &inner) else { continue }
            entries[key] = .dictionary(fields)
            clock.keep(inner, at: key, now)
            isChanged = true
        }
        return isChanged
    }

    private func fill(_ fields: inout [String: Value], _ type: ObjectType, _ clock: inout PropertyClock) -> Bool {
        var isChanged = false
        for property in type.properties {
            let entry = clock.entry(property.name)
            if var value = fields[property.name] {
                var inner = entry ?? .ofWhole
                guard fill(&value, property, &inner) else { continue }
                fields[property.name] = value
                clock.keep(inner, at: property.name, now)
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
    /// Stores the clock of a key without marking the value as explicit.
    fileprivate mutating func keep(_ clock: PropertyClock, at key: String, _ lsn: LSN) {
        var entries: [String: Contents.Entry] = [:]
        if case .keyed(let known)? = contents { entries = known }
        entries[key] = Contents.Entry(clock: clock, lsn: lsn)
        contents = .keyed(entries)
    }
}
