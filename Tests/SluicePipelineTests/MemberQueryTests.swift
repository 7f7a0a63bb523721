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
                Property(id: 3, name: "name", type: .string), Property(id: 4, name: "sign", type: .binary),
                Property(id: 5, name: "ships", type: .link(to: "Ship"), collection: .list),
            ]),
        ObjectType(
            name: "Land",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "king", type: .link(to: "Land"), isOptional: true),
            ]),
    ])

    /// How many steps of each path are left, and by what is ordered.
    private static func members(hiding names: Set<String>) throws -> (steps: [Int], order: [Int]) {
        var ships = PBQuery()
        ships.include = ["port", "port.land"]
        ships.limit = 5
        ships.sort = ["size", "_id"].map { name in
            var key = PBSortKey()
            key.path = name
            return key
        }
        var ports = PBQuery()
        ports.include = ["@links.Ship.port.port.land"]
        let hidden: (ObjectType) -> Set<Int> = { type in
            Set(type.properties.indices.filter { names.contains("\(type.name).\(type.properties[$0].name)") })
        }
        let members = try [(ships, 0), (ports, 1)].map { query, type in try Self.members(query, type, hidden) }
        return (members.flatMap(\.includes).map(\.count), members[0].first?.order.map(\.path.property) ?? [])
    }

    private static func members(_ query: PBQuery, _ type: Int, _ hidden: @escaping (ObjectType) -> Set<Int>) throws -> MemberQuery {
        try MemberQuery(
            query, type: type, predicate: .true(schema.types[type]), schema: schema, hidden: hidden,
            readable: { .true(schema.types[$0]) })
    }

    /// The choice of the first ten ships by paths, one for each combination of values of the DISTINCT paths.
    private static func choice(
        _ sort: [String], distinct: [[String]] = [], limit: UInt32 = 10, hiding names: Set<String> = []
    ) throws
        -> ObjectChoice?
    {
        var query = PBQuery()
        query.limit = limit
        query.sort = sort.map { path in
            var key = PBSortKey()
            key.path = path
            return key
        }
        for paths in distinct {
            var part = PBDistinct()
            (part.paths, part.sort) = (paths, query.sort)
            query.distinct.append(part)
        }
        return try members(query, 0) { type in
            Set(type.properties.indices.filter { names.contains("\(type.name).\(type.properties[$0].name)") })
        }.first
    }

    private static func text(_ paths: [ObjectChoice.Path]) -> String {
        paths.map { ($0.links.map { "\($0.property)" } + ["\($0.property)"]).joined(separator: ".") }.joined(separator: " ")
    }

    /// A path of 60,000 links kept the gateway busy for 17 s.
    @Test func `follow a bounded number of paths and links, and say which one is too long`() throws {
        func code(_ paths: [String]) -> ErrorCode? {
            var query = PBQuery()
            query.include = paths
            do {
                try MemberQuery.checkSize(ofSet: [query])
                _ = try MemberQuery.classes(query, from: 2, Self.schema)
                _ = try Self.members(query, 2) { _ in [] }
                return nil
            } catch {
                let refusal = error as? SluiceError
                #expect(refusal.map { $0.message.utf8.count < 400 } == true, "\(error)")
                return refusal?.code
            }
        }
        func path(_ links: Int, _ link: String = "king") -> String { Array(repeating: link, count: links).joined(separator: ".") }
        #expect(code([path(Limits.includeLinks)]) == nil)
        #expect(code([path(Limits.includeLinks, "@links.Land.king")]) == nil)
        for links in [Limits.includeLinks + 1, Limits.includeLinks * 3, Limits.includeLinks * 3 + 2, 60_000] {
            #expect(code([path(links)]) == .queryTooLarge, "\(links)")
            #expect(code([path(links, "@links.Land.king")]) == .queryTooLarge, "\(links)")
        }
        #expect(code([String(repeating: ".", count: 100_000)]) == .queryUnknownProperty)
        #expect(code(Array(repeating: "king", count: Limits.includePaths)) == nil)
        #expect(code(Array(repeating: "king", count: Limits.includePaths + 1)) == .queryTooLarge)
        // Many subscriptions of an app may include the same links.
        var usual = PBQuery()
        usual.include = Array(repeating: "king", count: 20)
        #expect(throws: Never.self) { try MemberQuery.checkSize(ofSet: Array(repeating: usual, count: Limits.setIncludePaths / 20)) }
        #expect(throws: SluiceError.self) {
            try MemberQuery.checkSize(ofSet: Array(repeating: usual, count: Limits.setIncludePaths / 20 + 1))
        }
        let queries = Array(repeating: PBQuery(), count: Limits.setQueries + 1)
        let error = #expect(throws: SluiceError.self) { try MemberQuery.checkSize(ofSet: queries) }
        #expect(error?.code == .queryTooLarge)
    }

    @Test func `count by paths through links, and by none that leads through what the user does not see`() throws {
        let paths = ["port.name", "port.land._id", "size"]
        func order(hiding names: Set<String>) throws -> String {
            let choice = try #require(try Self.choice(paths, distinct: [["port.name", "port._id"], ["port.land._id"]], hiding: names))
            for distinct in choice.distinct { #expect(distinct.order == choice.order) }
            return "\(Self.text(choice.order.map(\.path))) / \(choice.distinct.map { Self.text($0.paths) }.joined(separator: " / "))"
        }
        #expect(try order(hiding: []) == "2.2 2.1.0 1 / 2.2 2.0 / 2.1.0")
        #expect(try order(hiding: ["Port.name"]) == "2.1.0 1 / 2.0 / 2.1.0")
        // A hidden path is null in all objects, so all objects are equal by it.
        #expect(try order(hiding: ["Port.land", "Ship.size"]) == "2.2 / 2.2 2.0 / ")
        #expect(try order(hiding: ["Ship.port"]) == "1 /  / ")
    }

    @Test func `are refused by paths that a limit cannot count by`() throws {
        let cases: [(sort: [String], distinct: [[String]], code: ErrorCode, text: String)] = [
            (["port"], [], .querySort, "Ship.port is link to Port"), (["port.sign"], [], .querySort, "Port.sign is "),
            (["port.ships"], [], .querySort, "Port.ships is "), (["port.ships.size"], [], .queryLinkPath, "Port.ships is "),
            (["size.name"], [], .queryLinkPath, "Ship.size is "), (["port.nome"], [], .queryUnknownProperty, "Port has no property nome"),
            ([""], [], .queryUnknownProperty, "Ship has no property "), (["port."], [], .queryUnknownProperty, "Port has no property "),
            (["port.land.king.king.king._id"], [], .queryTooLarge, "more than 4 links"),
            ([], [["port"]], .queryDistinct, "Ship.port is link to Port"), ([], [[]], .queryDistinct, "names no property"),
            ([], [["size", "port.nome"]], .queryUnknownProperty, "Port has no property nome"),
            (Array(repeating: "size", count: 33), [], .queryTooLarge, "33 sort keys"),
            (Array(repeating: "size", count: 12), [["size"], ["size"]], .queryTooLarge, "38 sort keys"),
        ]
        for (sort, distinct, code, text) in cases {
            let error = #expect(throws: SluiceError.self, "\(sort) \(distinct)") { try Self.choice(sort, distinct: distinct) }
            #expect(error?.code == code && error?.message.contains(text) == true, "\(sort) \(distinct): \(error as Any)")
        }
        let error = #expect(throws: SluiceError.self) { try Self.choice([], distinct: [["size"]], limit: 0) }
        #expect(error?.code == .queryDistinct)
        let long = #expect(throws: SluiceError.self) { try Self.choice([String(repeating: "x", count: 1 << 20)]) }
        #expect(long.map { $0.message.utf8.count < 1_000 } == true)
        let deep = #expect(throws: SluiceError.self) { try Self.choice([String(repeating: ".", count: 1 << 20)]) }
        #expect(deep?.code == .queryTooLarge && deep.map { $0.message.utf8.count < 1_000 } == true)
        // At the bounds.
        #expect(try Self.choice(Array(repeating: "size", count: 32))?.order.count == 32)
        #expect(try Self.choice(["port.land.king.king._id"])?.links.count == 4)
    }

    @Test func `go where the user sees the link, and no farther`() throws {
        #expect(try Self.members(hiding: []) == ([1, 2, 3], [1, 0]))
        #expect(try Self.members(hiding: ["Ship.port"]) == ([0, 0, 0], [1, 0]))
        #expect(try Self.members(hiding: ["Port.land"]) == ([1, 1, 2], [1, 0]))
        #expect(try Self.members(hiding: ["Ship.size"]) == ([1, 2, 3], [0]))
    }
}
