package import SluiceCore

extension RealmObjectWriter {
    /// Returns the instructions that give properties of an object new values, whatever the client's copy holds.
    ///
    /// Collections and containers are emptied first. Names that the class lacks and the primary key are left out. A container in a mixed
    /// property follows `prepareContainers`.
    /// - Parameter number: The number for `prepareContainers`.
    /// - Throws: `internalError` for a value that does not fit the app's schema.
    package func replace(_ object: ObjectKey, _ values: [String: Value], number: UInt64) throws(SluiceError) -> [RealmInstruction] {
        let type = try type(of: object)
        var emitter = RealmEmitter(typing: RealmTyping(schema: schema), object: object)
        if type.properties.contains(where: { $0.isMixed && values[$0.name]?.isContainer == true }) {
            emitter.instructions = prepareContainers(in: type, number)
        }
        for (index, property) in type.properties.enumerated() where index != type.primaryKey {
            guard let value = values[property.name] else { continue }
            try emitter.replace(property, value)
        }
        return emitter.instructions
    }
}

extension RealmEmitter {
    /// Writes the new value of a property, whatever the client's copy holds.
    mutating func replace(_ property: Property, _ value: Value) throws(SluiceError) {
        let cursor = RealmCursor(property)
        guard property.collection == .none else {
            instructions.append(.clear(path(cursor), property.collection))
            return try fill(cursor, with: value)
        }
        // A container at the place would keep its content.
        if value.isContainer { instructions.append(.update(path(cursor), .value(.null))) }
        try set(cursor, to: value)
    }
}

extension Value {
    /// `true` for a list, set, dictionary or embedded object.
    var isContainer: Bool {
        switch self {
        case .list, .dictionary: true
        default: false
        }
    }
}
