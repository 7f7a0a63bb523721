import SluiceSDK
import Testing

private class Stroll: Projection<Walker> {
    @Projected(\Walker.name) var who
    @Projected(\Walker.favourite?.chip?.city) var city
    @Projected(\Walker.hounds.projectTo.name) var names
}

@Suite struct ProjectionTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `a projection shows and sets an object's properties`() throws {
        let realm = try PredicateTests.fill(folder)
        let strolls = realm.objects(Stroll.self)
        #expect(strolls.map(\.who) == ["Jo", "Bo"] && strolls.first?.city == "Ulm")
        #expect(strolls.first.map { Array($0.names) } == ["Rex", "Ärmel", "Rex"])
        #expect(strolls.filter("age > 25").sorted(byKeyPath: "name").map(\.who) == ["Bo"])
        #expect(realm.objects(Walker.self).filter("age < 25").as(Stroll.self).map(\.who) == ["Jo"])
        let stroll = try #require(strolls.first)
        try realm.write { stroll.who = "Ann" }
        #expect(realm.objects(Walker.self).first?.name == "Ann" && stroll == strolls[0] && stroll != strolls[1] && stroll.realm == realm)
        let frozen = stroll.freeze()
        try realm.write { realm.delete(realm.objects(Walker.self)) }
        #expect(stroll.isInvalidated && frozen.who == "Ann" && strolls.isEmpty)
    }

    @Test func `a projection stands for an object that no Realm manages too`() {
        let walker = Walker(value: ["_id": 1, "name": "Jo"])
        let stroll = Stroll(projecting: walker)
        #expect(stroll.who == "Jo" && stroll.city == nil && stroll.names.isEmpty && stroll.realm == nil)
        stroll.who = "Di"
        #expect(walker.name == "Di")
    }
}
