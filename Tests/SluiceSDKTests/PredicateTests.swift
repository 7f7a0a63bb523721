import Foundation
import SluiceSDK
import Testing

/// Predicates and type-safe queries over objects in a Realm.
@Suite struct PredicateTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    static func fill(_ folder: TemporaryFolder) throws -> Realm {
        let realm = try Realm(configuration: folder.configuration([Walker.self, Terrier.self]))
        try realm.write {
            let hounds = [("Rex", 3, 30.5), ("Ärmel", 5, 12), ("bello", 3, nil), ("Zoë", 9, 44)].enumerated().map { index, hound in
                realm.create(
                    Terrier.self,
                    value: [
                        "_id": index, "name": hound.0, "age": hound.1, "weight": hound.2 as Any, "good": index % 2 == 0,
                        "size": index == 0 ? 2 : NSNull(), "chip": ["city": "Ulm", "beds": index],
                    ] as [String: Any])
            }
            let first = Walker()
            first._id = 1
            first.name = "Jo"
            first.nick = "J"
            first.age = 20
            first.awake = true
            first.favourite = hounds[0]
            first.hounds.append(objectsIn: [hounds[0], hounds[1], hounds[0]])
            first.pack.insert(objectsIn: [hounds[1], hounds[2]])
            first.byName["a"] = hounds[0]
            first.byName["b"] = hounds[3]
            first.scores.append(objectsIn: [3, 1, 2, 3])
            first.words.insert(objectsIn: ["uno", "duo"])
            first.points["x"] = 4
            first.points["y"] = 7
            first.kennels.append(objectsIn: [Cage(value: ["Bonn", 3]), Cage(value: ["Aachen", 5])])
            first.home = GeoPlace(value: ["Point", [10.0, 48.0]] as [Any])
            first.mixed = .fromArray([.int(3), .string("x")])
            first.decimal = 1.5
            first.temperature = Celsius(degrees: 30)
            first.size = .large
            let second = Walker(value: ["_id": 2, "name": "Bo", "mother": "Bo", "age": 30, "favourite": hounds[3]])
            second.hounds.append(hounds[3])
            realm.add([first, second])
        }
        return realm
    }

    @Test func `both forms find the same and have one text`() throws {
        let realm = try PredicateTests.fill(folder)
        let walkers = realm.objects(Walker.self)
        func expect(
            _ ids: [Int], _ format: String, _ arguments: [Any], at place: SourceLocation = #_sourceLocation,
            _ query: (Query<Walker>) -> Query<Bool>
        ) {
            let typed = walkers.where(query)
            let predicate = walkers.filter(NSPredicate(format: format, argumentArray: arguments))
            #expect(typed.map(\._id) == ids, sourceLocation: place)
            #expect(predicate.map(\._id) == ids, sourceLocation: place)
            #expect(
                _subscriptionText(QuerySubscription<Walker>(query: query))
                    == _subscriptionText(QuerySubscription<Walker>(where: NSPredicate(format: format, argumentArray: arguments))),
                sourceLocation: place)
        }
        expect([1], "age < %@", [25]) { $0.age < 25 }
        expect([1], "age == %d && awake == YES", [20]) { $0.age == 20 && $0.awake == true }
        expect([1], "nick == 'J'", []) { $0.nick == "J" }
        expect([2], "nick == nil", []) { $0.nick == nil }
        expect([1], "favourite.name == %@", ["Rex"]) { $0.favourite.name == "Rex" }
        expect([2], "favourite.age > %ld", [5]) { $0.favourite.age > 5 }
        expect([1], "ANY hounds.age == 5", []) { $0.hounds.age == 5 }
        expect([1], "hounds.@count > 1", []) { $0.hounds.count > 1 }
        expect([1], "hounds.@min.age == 3", []) { $0.hounds.age.min == 3 }
        expect([2], "hounds.@avg.age > %d", [5]) { $0.hounds.age.avg > 5 }
        expect([1], "ANY scores > 2", []) { $0.scores > 2 }
        expect([1], "%@ IN scores", [2]) { $0.scores.contains(2) }
        expect([1], "ANY words IN %@", [["uno", "x"]]) { $0.words.containsAny(in: ["uno", "x"]) }
        expect([1], "points[%@] == 4", ["x"]) { $0.points["x"] == 4 }
        expect([1], "ANY points.@allKeys == %@", ["y"]) { $0.points.keys == "y" }
        expect([1], "ANY points.@allValues > 6", []) { $0.points.values > 6 }
        expect([1], "mixed[%@] == 3", [0]) { $0.mixed[0] == .int(3) }
        expect([1], "mixed[%K] == 'x'", ["#any"]) { $0.mixed.any == .string("x") }
        expect([2], "name == mother", []) { $0.name == $0.mother }
        expect([1], "SUBQUERY(hounds, $col1, $col1.age == 3 && $col1.name == 'Rex').@count > 1", []) {
            ($0.hounds.age == 3 && $0.hounds.name == "Rex").count > 1
        }
        expect([1], "size == 2", []) { $0.size == .large }
        expect([1], "temperature > 25.0", []) { $0.temperature.persistableValue > 25 }
        expect([1], "age BETWEEN {19, 21}", []) { $0.age.contains(19...21) }
        expect([1], "decimal == %@", [Decimal128(1.5)]) { $0.decimal == 1.5 }
        expect([1, 2], "NOT (age == 1)", []) { !($0.age == 1) }
        expect([1], "ANY kennels.beds == 5", []) { $0.kennels.beds == 5 }
        let circle = try #require(GeoCircle(center: (48, 10), radiusInRadians: 0.01))
        expect([1], "home IN %@", [circle]) { $0.home.geoWithin(circle) }
    }

    @Test func `predicates have a grammar of their own`() throws {
        let realm = try PredicateTests.fill(folder)
        let hounds = realm.objects(Terrier.self)
        func ids(_ format: String, _ arguments: Any...) -> [Int] {
            hounds.filter(NSPredicate(format: format, argumentArray: arguments)).map(\._id)
        }
        #expect(ids("name CONTAINS[c] 'BELL'") == [2] && ids("name contains[c] %@", "BELL") == [2])
        #expect(ids("name BEGINSWITH[d] 'A'") == [1] && ids("name ==[cd] 'zoe'") == [3] && ids("name IN[d] {'Armel', 'Zoe'}") == [1, 3])
        #expect(ids("age == 3 AND name BEGINSWITH[cd] 'B'") == [2] && ids("name ENDSWITH[d] 'e' OR age == 5") == [1, 3])
        #expect(ids("NOT name CONTAINS[d] 'e'") == [])
        #expect(ids("%K == %@", "chip.city", "Ulm") == [0, 1, 2, 3] && ids("chip.beds > 2") == [3])
        #expect(ids("weight == NULL") == [2] && ids("weight != nil AND weight < 20") == [1])
        #expect(ids("ANY walkers.name == 'Jo'") == [0, 1] && ids("walkers.@count == 0") == [2])
        #expect(ids("SELF == %@", hounds[1]) == [1] && ids("SELF IN %@", [hounds[1], hounds[3]]) == [1, 3])
        #expect(ids("SELF.age > 5") == [3] && ids("#age > 5") == [3])
        #expect(ids("name == 'Re\\x'") == [0] && ids("name == \"Rex\"") == [0])
        #expect(ids("age IN {3, 9}") == [0, 2, 3] && ids("age IN %@", [3, 9]) == [0, 2, 3] && ids("age BETWEEN %@", [4, 6]) == [1])
        #expect(ids("TRUEPREDICATE").count == 4 && ids("FALSEPREDICATE") == [] && ids("good == NO") == [1, 3])
        #expect(realm.objects(Walker.self).filter("favourite == %@", hounds[3]).map(\._id) == [2])
        #expect(realm.objects(Walker.self).filter("%@ IN hounds", hounds[1]).map(\._id) == [1])
        #expect(realm.objects(Walker.self).where { $0.hounds.contains(hounds[1]) }.map(\._id) == [1])
        #expect(realm.objects(Walker.self).filter("nickname == 'J'").count == 1)
    }

    @Test func `predicates are joined and may have blocks`() throws {
        let realm = try PredicateTests.fill(folder)
        let hounds = realm.objects(Terrier.self)
        let old = NSPredicate(format: "age > %@", 3)
        let block = NSPredicate { object, _ in (object as? Terrier)?.name.count == 3 }
        #expect(hounds.filter(block).map(\._id) == [0, 3])
        #expect(hounds.filter(NSCompoundPredicate(andPredicateWithSubpredicates: [old, block])).map(\._id) == [3])
        #expect(hounds.filter(NSCompoundPredicate(orPredicateWithSubpredicates: [old, block])).map(\._id) == [0, 1, 3])
        #expect(hounds.filter(NSCompoundPredicate(notPredicateWithSubpredicate: old)).map(\._id) == [0, 2])
        #expect(hounds.filter(block).sorted(byKeyPath: "age", ascending: false).map(\._id) == [3, 0])
        #expect(hounds.filter(block).where { $0.age == 3 }.map(\._id) == [0])
        #expect(hounds.index(matching: block) == 0 && hounds.index(matching: old) == 1 && hounds.index(matching: { $0.age == 9 }) == 3)
        #expect(old.evaluate(with: hounds[1]) && !old.evaluate(with: hounds[0]))
    }

    @Test func `subscriptions refuse what only a device can do`() async {
        func ends(_ text: String, _ result: ExitTest.Result?) { #expect(message(result).contains(text)) }
        ends(
            "Block predicates and diacritic insensitive comparisons are not supported in subscriptions.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = QuerySubscription<Terrier> { $0.name.contains("a", options: .diacriticInsensitive) }
            })
        ends(
            "MATCHES is not supported",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = QuerySubscription<Terrier>(where: "name MATCHES 'a.*'")
            })
    }
}
