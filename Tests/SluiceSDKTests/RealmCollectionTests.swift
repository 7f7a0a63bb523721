import Foundation
import SluiceSDK
import Testing

/// What all collections can do, over lists, sets, maps, inverse links and classes.
@Suite struct RealmCollectionTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> (Realm, Walker) {
        let realm = try PredicateTests.fill(folder)
        guard let walker = realm.object(ofType: Walker.self, forPrimaryKey: 1) else { throw CancellationError() }
        return (realm, walker)
    }

    @Test func `lists of objects are narrowed, ordered and followed`() throws {
        let (realm, walker) = try open()
        #expect(walker.hounds.filter("age == 3").map(\._id) == [0, 0])
        #expect(walker.hounds.where { $0.age > 3 }.map(\._id) == [1])
        #expect(walker.hounds.sorted(by: \.age, ascending: false).map(\._id) == [1, 0, 0])
        #expect(walker.hounds.distinct(by: [\.age]).map(\._id) == [0, 1] && walker.hounds.distinct(by: ["name"]).count == 2)
        #expect(walker.pack.sorted(byKeyPath: "name").map(\._id) == [2, 1])
        #expect(walker.byName.filter("age > 5").compactMap { $0?._id } == [3])
        #expect(walker.byName.sorted(byKeyPath: "age", ascending: false).compactMap { $0?._id } == [3, 0])
        #expect(walker.byName.where { $0.age == 3 }.compactMap { $0?._id } == [0])
        let hound = try #require(realm.object(ofType: Terrier.self, forPrimaryKey: 1))
        #expect(hound.walkers.filter("age == 20").map(\._id) == [1] && hound.walkers.where { $0.age > 20 }.isEmpty)
        let young = walker.hounds.filter("age < 5").sorted(byKeyPath: "_id")
        try realm.write { walker.hounds.append(try #require(realm.object(ofType: Terrier.self, forPrimaryKey: 2))) }
        #expect(young.map(\._id) == [0, 0, 2])
        try realm.write { walker.hounds[1].age = 1 }
        #expect(young.map(\._id) == [0, 0, 1, 2] && young.filter("name == 'bello'").first?._id == 2)
        try realm.write { realm.delete(walker) }
        #expect(young.isEmpty && young.isInvalidated && young.first == nil)
    }

    @Test func `what the data come to is cut to the width that is asked for, as a property's value is`() throws {
        let realm = try Realm(configuration: folder.local)
        let all = realm.objects(Every.self)
        try realm.write {
            for id in 1...2 { realm.create(Every.self, value: ["_id": id, "int8": 100, "int": Int.max, "int64": 300, "double": 1e300]) }
            realm.create(Every.self, value: ["_id": 3, "int8": 100, "int": Int.max, "int64": 300, "float": Float.nan])
        }
        #expect(all.sum(of: \.int8) == 44 && all.sum(ofProperty: "int8") == 300 && all.max(of: \.int8) == 100)
        let (largest, least): (Int8?, Int16?) = (all.max(ofProperty: "int64"), all.min(ofProperty: "int64"))
        #expect(largest == 44 && least == 300)
        let mean: Int? = all.filter("_id == 1").average(ofProperty: "int")
        #expect(mean == .max, "it rounds to 2⁶³")
        let (far, none): (Int?, Int?) = (all.max(ofProperty: "double"), all.sum(ofProperty: "float"))
        #expect(far == .max && none == 0)
    }

    @Test func `values are narrowed and ordered`() throws {
        let (realm, walker) = try open()
        #expect(Array(walker.scores.sorted(ascending: true)) == [1, 2, 3, 3] && Array(walker.scores.distinct()) == [3, 1, 2])
        #expect(Array(walker.scores.filter("SELF > 1")) == [3, 2, 3] && Array(walker.scores.where { $0 < 3 }) == [1, 2])
        #expect(Array(walker.scores.distinct().sorted(ascending: false)) == [3, 2, 1])
        #expect(Array(walker.words.filter("SELF BEGINSWITH 'u'")) == ["uno"] && Array(walker.words.where { $0.contains("d") }) == ["duo"])
        #expect(Array(walker.points.sorted(ascending: false)) == [7, 4] && Array(walker.points.where { $0 > 4 }) == [7])
        #expect(walker.scores.filter(NSPredicate { value, _ in value as? Int == 1 }).count == 1)
        #expect(walker.scores.index(matching: "SELF == 2") == 2 && walker.scores.index(matching: { $0 == 5 }) == nil)
        let sorted: Results<Int> = walker.scores.sorted(ascending: true)
        #expect(sorted.first == 1 && sorted.last == 3 && sorted[1] == 2 && sorted.index(of: 3) == 2 && sorted.index(of: 9) == nil)
        try realm.write { walker.scores.append(0) }
        #expect(Array(sorted) == [0, 1, 2, 3, 3])
    }

    @Test func `embedded objects are narrowed, ordered and changed`() throws {
        let (realm, walker) = try open()
        let sorted = walker.kennels.sorted(by: \.city)
        #expect(sorted.map(\.city) == ["Aachen", "Bonn"] && walker.kennels.filter("beds > 3").map(\.city) == ["Aachen"])
        #expect(walker.kennels.where { $0.city == "Bonn" }.first?.beds == 3)
        try realm.write { sorted[0].city = "Celle" }
        #expect(sorted.map(\.city) == ["Bonn", "Celle"] && walker.kennels[1].city == "Celle")
        #expect(walker.kennels.sum(of: \.beds) == 8 && walker.kennels.max(ofProperty: "beds") == 5)
    }

    @Test func `orders go through links`() throws {
        let (realm, _) = try open()
        #expect(realm.objects(Walker.self).sorted(byKeyPath: "favourite.age", ascending: false).map(\._id) == [2, 1])
        #expect(
            realm.objects(Terrier.self).sorted(by: [SortDescriptor(keyPath: "age"), SortDescriptor(keyPath: "_id", ascending: false)])
                .map(\._id) == [2, 0, 1, 3])
        #expect(realm.objects(Walker.self).sorted(by: \.nick).map(\._id) == [2, 1])
        #expect(realm.objects(Terrier.self).distinct(by: ["age"]).sorted(by: ["age"]).map(\._id) == [0, 1, 3])
        #expect(Array(realm.objects(Terrier.self).objects(at: [0, 2])).map(\._id) == [0, 2])
    }

    @Test func `numbers come to something`() throws {
        let (realm, walker) = try open()
        let hounds = realm.objects(Terrier.self)
        #expect(hounds.min(ofProperty: "age") == 3 && hounds.max(ofProperty: "age") == 9 && hounds.sum(ofProperty: "age") == 20)
        #expect(hounds.average(ofProperty: "age") == 5.0 && hounds.min(of: \.weight) == 12.0 && hounds.sum(of: \.weight) == 86.5)
        #expect(hounds.average(of: \.weight).flatMap { $0.map { Int($0) } } == 28)
        #expect(hounds.filter("age > 100").min(of: \.age) == nil && hounds.filter("age > 100").sum(of: \.age) == 0)
        #expect(walker.hounds.sum(of: \.age) == 11 && walker.hounds.filter("age == 3").sum(ofProperty: "age") == 6)
        #expect(walker.scores.sum() == 9 && walker.scores.min() == 1 && walker.scores.max() == 3 && walker.scores.average() == 2.25)
        #expect(walker.points.sum() == 11 && walker.points.max() == 7)
        #expect(walker.scores.filter("SELF < 3").sum() == 3)
        let alone = List<Int>()
        alone.append(objectsIn: [1, 2])
        let nobody: Double? = List<Int>().average()
        #expect(alone.sum() == 3 && alone.average() == 1.5 && nobody == nil)
    }

    @Test func `values are read and set by name`() throws {
        let (realm, walker) = try open()
        #expect(
            walker.hounds.value(forKey: "age") as? [Int] == [3, 5, 3] && walker.scores.value(forKey: "self") as? [Int] == [3, 1, 2, 3])
        #expect(walker.hounds.value(forKeyPath: "chip.city") as? [String] == ["Ulm", "Ulm", "Ulm"])
        #expect(walker.hounds.value(forKeyPath: "@sum.age") as? Int == 11 && walker.hounds.value(forKeyPath: "@count") as? Int == 3)
        #expect(walker.scores.value(forKeyPath: "@max.self") as? Int == 3)
        try realm.write { realm.objects(Terrier.self).filter("age == 3").setValue(4, forKey: "age") }
        #expect(realm.objects(Terrier.self).map(\.age) == [4, 5, 4, 9])
    }

    @Test func `what collections hold is deleted`() throws {
        let (realm, walker) = try open()
        try realm.write { realm.delete(walker.kennels.filter("beds < 4")) }
        #expect(walker.kennels.map(\.city) == ["Aachen"])
        try realm.write { realm.delete(walker.kennels) }
        #expect(walker.kennels.isEmpty)
        try realm.write { realm.delete(walker.hounds.filter("age == 3")) }
        #expect(walker.hounds.map(\._id) == [1] && realm.objects(Terrier.self).count == 3)
        try realm.write { realm.delete(realm.dynamicObjects("Terrier").filter("age > 5")) }
        #expect(realm.objects(Terrier.self).map(\._id) == [1, 2])
        try realm.write { realm.delete(AnyRealmCollection(walker.pack)) }
        #expect(realm.objects(Terrier.self).isEmpty)
    }

    @Test func `any collection stands for the others`() throws {
        let (realm, walker) = try open()
        let hound = try #require(realm.object(ofType: Terrier.self, forPrimaryKey: 1))
        let all: [AnyRealmCollection<Terrier>] = [
            AnyRealmCollection(realm.objects(Terrier.self)), AnyRealmCollection(walker.hounds), AnyRealmCollection(walker.pack),
            AnyRealmCollection(walker.hounds.sorted(byKeyPath: "age")),
        ]
        #expect(all.map(\.count) == [4, 3, 2, 3] && all.allSatisfy { $0.realm == realm && !$0.isInvalidated })
        #expect(
            all.map { $0.filter("age == 5").count } == [1, 1, 1, 1] && all.map { $0.index(of: hound) != nil } == [true, true, true, true])
        #expect(all[0] == all[0] && all[0] != all[1] && all[1].first?._id == 0)
        #expect(AnyRealmCollection(hound.walkers).map(\._id) == [1])
    }

    @Test func `what a collection cannot do ends the program`() async {
        func ends(_ text: String, _ result: ExitTest.Result?) { #expect(message(result).contains(text)) }
        ends(
            "Only collections which are managed by a Realm support change notifications",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = List<Int>().observe { _ in } })
        ends(
            "Invalid property name: property 'nothing' not found in object of type 'Terrier'",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let realm = try PredicateTests.fill(try TemporaryFolder())
                _ = realm.objects(Terrier.self).observe(keyPaths: ["nothing"]) { _ in }
            })
        ends(
            "There must be at least one SortDescriptor when using SectionedResults.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let realm = try PredicateTests.fill(try TemporaryFolder())
                _ = realm.objects(Terrier.self).sectioned(by: \.age, sortDescriptors: [])
            })
        ends(
            "This method may only be called on List<Int> instances retrieved from a Realm.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = List<Int>().filter("SELF == 1") })
        ends(
            "Cannot sort on key path 'nothing': property 'Terrier.nothing' does not exist.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let realm = try PredicateTests.fill(try TemporaryFolder())
                _ = realm.objects(Terrier.self).sorted(byKeyPath: "nothing")
            })
        ends(
            "Property 'nothing' not found in object of type 'Terrier'",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let realm = try PredicateTests.fill(try TemporaryFolder())
                let _: Int? = realm.objects(Terrier.self).min(ofProperty: "nothing")
            })
    }
}
