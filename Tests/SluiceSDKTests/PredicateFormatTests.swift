import Foundation
import SluiceSDK
import Testing

/// What predicates become in the query language, and the grammar that they have beyond it.
@Suite struct PredicateFormatTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// What a subscription with the predicate asks the server.
    private func text(_ format: String, _ arguments: Any...) -> String {
        _subscriptionText(QuerySubscription<Walker>(where: NSPredicate(format: format, argumentArray: arguments)))
    }

    @Test func `words of predicates become those of the language`() {
        #expect(
            text("ANY points.@allKeys == 'y'") == text("ANY points.@keys == 'y'") && text("ANY points.@allKeys == 'y'").contains("@keys"))
        #expect(text("ANY points.@allValues > 6").contains("points.@values > 6"))
        #expect(text("mixed[%K] == 'x'", "#any") == #"mixed[*] == "x""# && text("mixed[%@][%@] == 1", "k", 2) == #"mixed["k"][2] == 1"#)
        #expect(text("NOT age == 3") == "!(age == 3)" && text("age == 3 && NOT (name == 'x')") == #"age == 3 and !(name == "x")"#)
        #expect(
            text("age == 3 || awake == YES") == "age == 3 or awake == true" && text("awake == NO OR age < 1") == "awake == false or age < 1"
        )
        #expect(text("age BETWEEN {1, 3}") == "age BETWEEN {1, 3}" && text("age BETWEEN %@", [1, 3]) == "age BETWEEN {1, 3}")
        #expect(text("TRUEPREDICATE") == "TRUEPREDICATE")
    }

    @Test func `quantifiers are kept, and SOME is ANY`() {
        for word in ["ANY", "ALL", "NONE"] { #expect(text("\(word) hounds.age > 3") == "\(word) hounds.age > 3") }
        #expect(text("SOME hounds.age > 3") == text("ANY hounds.age > 3"))
    }

    @Test func `names are those of the file`() {
        #expect(text("nick == 'J'") == #"nickname == "J""# && text("nickname == 'J'") == #"nickname == "J""#)
        #expect(text("ANY hounds.walkers.nick == 'J'").contains("nickname"))
        #expect(_subscriptionText(QuerySubscription<Terrier>(where: "ANY walkers.age == 3")).contains("@links.Walker.hounds.age == 3"))
    }

    @Test func `arguments are written by their types`() throws {
        let date = Date(timeIntervalSince1970: 5)
        let uuid = try #require(UUID(uuidString: "00000000-0000-0000-0000-00000000000a"))
        #expect(text("age == %d AND age < %i AND age > %ld AND age != %lld", 1, 2, 3, 4) == "age == 1 and age < 2 and age > 3 and age != 4")
        #expect(text("favourite.weight > %f", 1.5) == "favourite.weight > 1.5" && text("%K == %@", "name", "x") == #"name == "x""#)
        #expect(text("name == $1 AND age == $0", 7, "x") == #"name == "x" and age == 7"#)
        #expect(text("awake == %@ AND nick == %@", true, NSNull()) == "awake == true and nickname == NULL")
        #expect(text("favourite.born > %@", date) == "favourite.born > T5:0")
        #expect(text("mixed == %@", uuid) == "mixed == uuid(00000000-0000-0000-0000-00000000000a)")
        #expect(text("decimal == %@", Decimal128(1.5)).hasPrefix("decimal == 1.5") && text("age IN %@", [1, 2]) == "age IN {1, 2}")
        #expect(text("data == %@", Data([1])) == #"data == binary(B64"AQ==")"#)
    }

    @Test func `more is understood than RealmSwift's predicates are`() throws {
        let realm = try PredicateTests.fill(folder)
        func ids(_ format: String, _ arguments: Any...) -> [Int] {
            realm.objects(Walker.self).filter(NSPredicate(format: format, argumentArray: arguments)).map(\._id)
        }
        #expect(ids("ALL hounds.age > 3") == [2] && ids("NONE hounds.age > 5") == [1] && ids("SOME hounds.age > 5") == [2])
        // Without a quantifier any element will do, and the other way round.
        #expect(ids("hounds.age == 5") == [1] && ids("5 == hounds.age") == [1])
        #expect(ids("age + 5 == 25") == [1] && ids("age * 2 > %@", 50) == [2] && ids("hounds.@max.age > hounds.@count") == [1, 2])
        #expect(realm.objects(Terrier.self).filter("@links.Walker.hounds.age == 30").map(\._id) == [3])
        #expect(realm.objects(Terrier.self).filter("@links.@count == 0").map(\._id) == [])
    }

    @Test func `texts ignore case where they are asked to`() throws {
        let realm = try PredicateTests.fill(folder)
        let names = realm.objects(Terrier.self)
        #expect(names.filter("name ==[c] 'REX'").count == 1 && names.filter("name BEGINSWITH[c] 'r'").count == 1)
        #expect(names.filter("name LIKE[c] 'r?x'").count == 1 && names.filter("name LIKE 'r?x'").isEmpty)
        #expect(names.filter("name ==[c] 'ärmel'").count == 1, "letters of Latin-1 too")
        #expect(names.filter("name > 'a'").map(\.name) == ["Ärmel", "bello"] && names.filter("name >= 'Rex' AND name < 'S'").count == 1)
    }

    @Test func `what is no condition ends the program`() async {
        func ends(_ text: String, _ result: ExitTest.Result?, at place: SourceLocation = #_sourceLocation) {
            #expect(message(result).contains(text), "\(message(result).suffix(300))", sourceLocation: place)
        }
        ends(
            "The placeholder %@ has no argument; there are 0.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { try PredicateFormatTests.ask("age == %@") })
        ends(
            "naem",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { try PredicateFormatTests.ask("naem == 'x'") })
        ends(
            "BETWEEN",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("age BETWEEN {1}")
            })
        ends(
            "IN",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { try PredicateFormatTests.ask("age IN 3") })
        ends(
            "keys",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("ANY hounds.@allKeys == 'x'")
            })
        ends(
            "A text in the predicate has no end.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { try PredicateFormatTests.ask("name == 'x") })
        ends(
            "SORT",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("age > 3 SORT(age ASC)")
            })
        ends(
            "is not a value that a query can hold",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("age == %@", NSObject())
            })
    }

    /// More is understood than RealmSwift's predicates are, but what it refuses for its types is no condition here either.
    @Test func `what does not fit its property ends the program`() async {
        func ends(_ text: String, _ result: ExitTest.Result?, at place: SourceLocation = #_sourceLocation) {
            #expect(message(result).contains(text), "\(message(result).suffix(300))", sourceLocation: place)
        }
        ends(
            "Unsupported comparison between type 'int' of 'age' and type 'string'",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("age BETWEEN {'a', 'b'}")
            })
        ends(
            "'<' does not take [c]",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("name <[c] 'a'")
            })
        ends(
            "expected a comparison operator",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("hounds.@max.age.@count > 1")
            })
        ends(
            "expected .@count after SUBQUERY(…)",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("SUBQUERY(hounds, $x, $x.age > 3) > 1")
            })
        ends(
            "of 'SUBQUERY(hounds, $x, $x.age > 3).@count' and type 'string'",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("SUBQUERY(hounds, $x, $x.age > 3).@count > 'a'")
            })
        ends(
            "Unsupported comparison between type 'string' of 'name' and type 'int'",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("name == 3")
            })
        ends(
            "Operation '@sum' is not supported on 'hounds.name'",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("hounds.@sum.name > 3")
            })
        ends(
            "Operation '@count' is not supported on 'age'",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("age.@count > 3")
            })
        ends(
            "A predicate has no SORT, DISTINCT or LIMIT.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("age > 3 LIMIT(2)")
            })
        ends(
            "A predicate has no SORT, DISTINCT or LIMIT.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = QuerySubscription<Walker>(where: "age > 3 LIMIT(2)")
            })
        ends(
            "Operator 'LIKE' is not supported with [d].",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("name LIKE[d] 'a'")
            })
        ends(
            "'nmae'",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("nmae CONTAINS[d] 'a'")
            })
        ends(
            "Cannot compare two constants",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try PredicateFormatTests.ask("1 == 1")
            })
    }

    private static func ask(_ format: String, _ arguments: Any...) throws {
        let realm = try Realm(configuration: TemporaryFolder().configuration([Walker.self]))
        _ = realm.objects(Walker.self).filter(NSPredicate(format: format, argumentArray: arguments)).count
    }
}
