import SluiceCore
import SluiceReplica
import SluiceSDK
import Testing

class Buoy: Object {
    @Persisted(primaryKey: true) var _id: String
}

class Anchor: EmbeddedObject {
    @Persisted var buoy: Buoy?
    @Persisted var others: List<Buoy>
}

class Depot: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var route: List<Buoy>
    @Persisted var spots: Map<String, Buoy?>
    @Persisted var marks: MutableSet<Buoy>
    @Persisted var spares: MutableSet<Buoy>
    @Persisted var anchor: Anchor?
    @Persisted var any: AnyRealmValue
    @Persisted var things: List<AnyRealmValue>
}

/// Links whose objects are not on the device are told from those that are nil wherever they can be.
@Suite struct LinkStatusTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Depot.self, Buoy.self, Anchor.self]))
    }

    /// As the server's rows are, whose links may lead to what it has not sent.
    private func depot(_ values: [String: Value]) throws -> Depot {
        let replica = _replica(of: realm)
        let (depots, buoys) = (try #require(replica.schema.index(of: "Depot")), try #require(replica.schema.index(of: "Buoy")))
        let transaction = try replica.beginWrite()
        try transaction.create(type: buoys, key: .string("here"), values: [:])
        try transaction.create(type: depots, key: .string("d"), values: values)
        try transaction.commit()
        realm.refresh()
        return try #require(realm.object(ofType: Depot.self, forPrimaryKey: "d"))
    }

    @Test func `in a list, which loses them when all is removed`() throws {
        let links = Value.list(["elsewhere", "here", "there"].map { .string($0) })
        let depot = try depot(["route": links, "anchor": .dictionary(["buoy": .null, "others": links])])
        let anchor = try #require(depot.anchor)
        #expect(depot.route.map(\._id) == ["here"] && anchor.others.map(\._id) == ["here"])
        #expect(depot.primaryKeysNotLocal(in: "route") == [.string("elsewhere"), .string("there")])
        try realm.write {
            depot.route.removeAll()
            anchor.others.removeAll()
        }
        #expect(depot.primaryKeysNotLocal(in: "route").isEmpty && depot.route.isEmpty)
        #expect(anchor.primaryKeysNotLocal(in: "others").isEmpty && anchor.others.isEmpty)
    }

    @Test func `in a map`() throws {
        let depot = try depot([
            "spots": .dictionary(["b": .string("there"), "a": .string("elsewhere"), "c": .string("here"), "d": .null])
        ])
        #expect(depot.primaryKeysNotLocal(in: "spots") == [.string("elsewhere"), .string("there")])
    }

    @Test func `in a set, which keeps them when it is assigned`() throws {
        let depot = try depot(["marks": .set([.string("elsewhere"), .string("here")])])
        try realm.write {
            depot.spares = depot.marks
            depot.marks = depot.marks
        }
        for name in ["marks", "spares"] { #expect(depot.primaryKeysNotLocal(in: name) == [.string("elsewhere")], "\(name)") }
    }

    @Test func `in an embedded object`() throws {
        let others = Value.list([.string("here"), .string("elsewhere")])
        let depot = try depot(["anchor": .dictionary(["buoy": .string("there"), "others": others])])
        let anchor = try #require(depot.anchor)
        #expect(anchor.buoy == nil && anchor.linkStatus(of: "buoy") == .notLocal(primaryKey: .string("there")))
        #expect(anchor.primaryKeysNotLocal(in: "others") == [.string("elsewhere")])
        try realm.write { anchor.buoy = realm.object(ofType: Buoy.self, forPrimaryKey: "here") }
        #expect(anchor.linkStatus(of: "buoy") == .local)
        try realm.write { anchor.buoy = nil }
        #expect(anchor.linkStatus(of: "buoy") == .empty)
        #expect(Anchor().linkStatus(of: "buoy") == .empty)
    }

    @Test func `in mixed values, nested ones too`() throws {
        func link(_ key: String, of type: String = "Buoy") -> Value { .link(type: type, key: .string(key)) }
        let depot = try depot([
            "any": link("there"),
            "things": .list([link("here"), .string("no link"), .dictionary(["a": link("elsewhere")]), link("x", of: "Unknown")]),
        ])
        #expect(depot.any == .none && depot.linkStatus(of: "any") == .notLocal(primaryKey: .string("there")))
        #expect(depot.primaryKeysNotLocal(in: "things") == [.string("elsewhere"), .string("x")])
        try realm.write { depot.any = .int(5) }
        #expect(depot.linkStatus(of: "any") == .empty)
    }
}
