import SluiceCore
import SluiceQuery
import SluiceWire
import Testing

@testable import SluicePipeline

@Suite struct `Queries with members` {
    private static let schema = Schema([
        ObjectType(
            name: "Ship",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "size", type: .int),
                Property(id: 3, name: "port", type: .link(to: "Port"), isOptional: true),
            ]),
        ObjectType(
            name: "Port",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "land", type: .link(to: "Land"), isOptional: true),
            ]),
        ObjectType(name: "Land", properties: [Property(id: 1, name: "_id", type: .string)]),
    ])

    /// How many steps of each path are left, and by what is ordered.
    private static func members(hiding names: Set<String>) throws -> (steps: [Int], order: [Int]) {
        var ships = PBQuery()
        ships.include = ["port", "port.land"]
        ships.limit = 5
        ships.sort = ["size", "_id"].map { name in
            var key = PBSortKey()
            key.property = name
            return key
        }
        var ports = PBQuery()
        ports.include = ["@links.Ship.port.port.land"]
        let hidden: (ObjectType) -> Set<Int> = { type in
            Set(type.properties.indices.filter { names.contains("\(type.name).\(type.properties[$0].name)") })
        }
        let members = try [(ships, 0), (ports, 1)].map { query, type in
            try MemberQuery(query, type: type, predicate: .true(schema.types[type]), schema: schema, hidden: hidden)
        }
        return (members.flatMap(\.includes).map(\.count), members[0].first?.order.map(\.property) ?? [])
    }

    @Test func `go where the user sees the link, and no farther`() throws {
        #expect(try Self.members(hiding: []) == ([1, 2, 3], [1, 0]))
        #expect(try Self.members(hiding: ["Ship.port"]) == ([0, 0, 0], [1, 0]))
        #expect(try Self.members(hiding: ["Port.land"]) == ([1, 1, 2], [1, 0]))
        #expect(try Self.members(hiding: ["Ship.size"]) == ([1, 2, 3], [0]))
    }
}
