package import SluiceCore

/// The stable numbers of properties (`sluice.property`). A number is never reused, even after its property was removed.
package struct PropertyNumbers: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Returns the classes with their numbers from the database. A property without one receives the next of its class, in the
    /// given order.
    package func number(_ types: [ObjectType]) async throws -> [ObjectType] {
        let numbers = try await pool.transact { session in
            // The lock serializes gateways that number properties at once; it blocks no reader.
            try session.query("LOCK TABLE sluice.property IN SHARE ROW EXCLUSIVE MODE")
            var numbers = Self.read(try session.query("SELECT type, name, id FROM sluice.property"))
            for type in types {
                var known = numbers[type.name] ?? [:]
                for property in type.properties where known[property.name] == nil {
                    // Retired properties are among the known ones, so that their numbers are not reused.
                    let next = (known.values.max() ?? 0) + 1
                    known[property.name] = next
                    try session.execute(
                        "INSERT INTO sluice.property (type, name, id) VALUES ($1, $2, $3)",
                        [.text(type.name), .text(property.name), .int(next)])
                }
                numbers[type.name] = known
            }
            return numbers
        }
        return types.map { type in
            let properties = type.properties.map { property in
                var numbered = property
                numbered.id = numbers[type.name]?[property.name] ?? property.id
                return numbered
            }
            let key = type.primaryKey.map { type.properties[$0].name }
            return ObjectType(name: type.name, kind: type.kind, properties: properties, primaryKey: key)
        }
    }

    private static func read(_ result: PostgresResult) -> [String: [String: UInt32]] {
        var numbers: [String: [String: UInt32]] = [:]
        for row in 0..<result.count {
            guard let type = result[row, 0], let name = result[row, 1], let id = result.int(row, 2) else { continue }
            numbers[type, default: [:]][name] = UInt32(clamping: id)
        }
        return numbers
    }
}
