import GatewayTestSupport
import SluiceCore
import SluicePostgres
import SluiceQuery
import TestSupport
import Testing

// The clients of Realm's protocol.
extension OracleStage {
    mutating func realmClients() async throws -> [OracleRealmClient] {
        var clients: [OracleRealmClient] = []
        for (number, role) in [.everybody, random.pick(OracleApp.Role.allCases)].enumerated() {
            clients.append(try await OracleRealmClient(gateways, app, role, number, SplitMix64(seed: random.next())))
        }
        return clients
    }

    mutating func act(_ client: OracleRealmClient) async throws {
        switch random.below(24) {
        case 0, 1: try await client.subscribe()
        case 2: client.goOffline()
        case 3...6: try await client.comeBack()
        case 7: try await client.restart()
        case 8, 9: try await client.catchUp()
        case 10: try await client.changeRole()
        default: try await client.write()
        }
    }

    /// Compares the objects of clients with the database once they have everything.
    ///
    /// An entry that puts an object right can follow the answer to a mark. A commit between two marks makes the second one wait for it.
    func barrier(_ clients: [OracleRealmClient], _ connection: PostgresConnection, _ comment: String) async throws {
        for client in clients {
            try await client.comeBack()
            try await client.catchUp()
        }
        let rows = try await table(connection)
        let graph = MemoryGraph(schema: app.schema, rows: rows.map { ($0.type.name, $0.row) })
        for client in clients {
            let expected = try expected(OracleViewer(client), rows, graph)
            var differences: [String] = []
            for _ in 0..<10 {
                try await client.catchUp()
                differences = self.differences(client, expected)
                if differences.isEmpty { break }
                _ = try await connection.script("SELECT pg_logical_emit_message(true, 'oracle', '')")
            }
            for difference in differences { Issue.record("\(comment): \(client.name) \(difference)") }
            #expect(client.failures.isEmpty, "\(comment): \(client.name)")
        }
    }

    private func differences(_ client: OracleRealmClient, _ expected: [String: [Value: [String: Value]]]) -> [String] {
        var differences: [String] = []
        let shown = client.rows
        for type in app.classes {
            let (want, have) = (expected[type.name] ?? [:], shown[type.name] ?? [:])
            for key in Set(want.keys).symmetricDifference(have.keys) {
                differences.append("\(want[key] == nil ? "has" : "lacks") \(type.name) \(key): \(want[key] ?? have[key] ?? [:])")
            }
            for (key, values) in want {
                guard let object = have[key] else { continue }
                for property in type.properties.dropFirst() {
                    let has = object[property.name] ?? .null
                    let wants = Self.completed(values[property.name] ?? .null, property)
                    if isSame(has, wants) { continue }
                    differences.append("shows \(property.name) of \(type.name) \(key) as \(has), not \(wants)")
                }
            }
        }
        return differences
    }

    /// An embedded object of a client has all fields, and one of the database those that were written.
    private static func completed(_ value: Value, _ property: Property) -> Value {
        guard case .embedded = property.type, case .dictionary(let fields) = value else { return value }
        let empty = OracleApp.place.properties.map { ($0.name, $0.emptyValue) }
        return .dictionary(Dictionary(uniqueKeysWithValues: empty).merging(fields) { $1 })
    }
}
