import Foundation
import SluiceSDK
import Testing

/// What type-safe queries are rendered as: the format of a predicate, and its arguments.
@Suite struct QueryRenderingTests {
    private typealias Build = (Query<Walker>) -> Query<Bool>

    private func render(_ build: Build) -> (String, [String]) {
        let (format, arguments) = build(Query<Walker>._constructForTesting())._constructPredicate()
        return (format, arguments.map { "\($0)" })
    }

    private func expect(_ format: String, _ arguments: [String], at place: SourceLocation = #_sourceLocation, _ build: Build) {
        let rendered = render(build)
        #expect(rendered.0 == format && rendered.1 == arguments, sourceLocation: place)
    }

    @Test func `values are compared`() {
        expect("(age == %@)", ["3"]) { $0.age == 3 }
        expect("(age != %@)", ["3"]) { $0.age != 3 }
        expect("(age > %@)", ["3"]) { $0.age > 3 }
        expect("(age >= %@)", ["3"]) { $0.age >= 3 }
        expect("(age < %@)", ["3"]) { $0.age < 3 }
        expect("(age <= %@)", ["3"]) { $0.age <= 3 }
        expect("(name == mother)", []) { $0.name == $0.mother }
        expect("(age > favourite.age)", []) { $0.age > $0.favourite.age }
        expect("(nick == %@)", ["<null>"]) { $0.nick == nil }
        expect("(age IN %@)", ["[1, 2]"]) { $0.age.in([1, 2]) }
        expect("(age BETWEEN {%@, %@})", ["1", "3"]) { $0.age.contains(1...3) }
        expect("((age >= %@) && (age < %@))", ["1", "3"]) { $0.age.contains(1..<3) }
        expect("(favourite.weight BETWEEN {%@, %@})", ["1.0", "3.0"]) { $0.favourite.weight.contains(1...3) }
        expect("(data == %@)", ["1 bytes"]) { $0.data == Data([1]) }
        expect("(decimal > %@)", ["1.5"]) { $0.decimal > 1.5 }
    }

    @Test func `conditions are joined`() {
        expect("awake == true", []) { $0.awake }
        expect("awake == false", []) { !$0.awake }
        expect("(awake == %@)", ["true"]) { $0.awake == true }
        expect("(awake == true && (age == %@))", ["3"]) { $0.awake && $0.age == 3 }
        expect("((age == %@) && (name == %@))", ["3", "x"]) { $0.age == 3 && $0.name == "x" }
        expect("((age == %@) || awake == false)", ["3"]) { $0.age == 3 || !$0.awake }
        expect("(NOT age == %@)", ["3"]) { !($0.age == 3) }
        expect("NOT ((age == %@) && (name == %@))", ["3", "x"]) { !($0.age == 3 && $0.name == "x") }
        expect("(((age == %@) || (age == %@)) && (name == %@))", ["1", "2", "x"]) { ($0.age == 1 || $0.age == 2) && $0.name == "x" }
    }

    @Test func `texts are searched`() {
        expect("(name CONTAINS %@)", ["a"]) { $0.name.contains("a") }
        expect("(name CONTAINS[c] %@)", ["a"]) { $0.name.contains("a", options: .caseInsensitive) }
        expect("(name BEGINSWITH[d] %@)", ["a"]) { $0.name.starts(with: "a", options: .diacriticInsensitive) }
        expect("(name ENDSWITH[cd] %@)", ["a"]) { $0.name.ends(with: "a", options: [.caseInsensitive, .diacriticInsensitive]) }
        expect("(name ==[c] %@)", ["a"]) { $0.name.equals("a", options: .caseInsensitive) }
        expect("(name !=[c] %@)", ["a"]) { $0.name.notEquals("a", options: .caseInsensitive) }
        expect("(name LIKE %@)", ["a*"]) { $0.name.like("a*") }
        expect("(name LIKE[c] %@)", ["a*"]) { $0.name.like("a*", caseInsensitive: true) }
        expect("(nick CONTAINS %@)", ["a"]) { $0.nick.contains("a") }
        expect("(nick CONTAINS[c] %@)", ["<null>"]) { $0.nick.contains(nil, options: .caseInsensitive) }
        expect("(name BEGINSWITH mother)", []) { $0.name.starts(with: $0.mother) }
        expect("(name ENDSWITH[c] mother)", []) { $0.name.ends(with: $0.mother, options: .caseInsensitive) }
        expect("(data CONTAINS %@)", ["1 bytes"]) { $0.data.contains(Data([1])) }
    }

    @Test func `links, enumerations and custom types are followed`() {
        expect("(favourite.name == %@)", ["Rex"]) { $0.favourite.name == "Rex" }
        expect("(favourite == %@)", ["<null>"]) { $0.favourite == nil }
        expect("(favourite.chip.city == %@)", ["Ulm"]) { $0.favourite.chip.city == "Ulm" }
        expect("(size == %@)", ["1"]) { $0.size == .small }
        expect("(size.rawValue == %@)".replacing(".rawValue", with: ""), ["1"]) { $0.size.rawValue == 1 }
        expect("(favourite.size > %@)", ["1"]) { $0.favourite.size > .small }
        expect("(favourite.size > %@)", ["1"]) { $0.favourite.size.rawValue > 1 }
        expect("(temperature == %@)", ["20.0"]) { $0.temperature == Celsius(degrees: 20) }
        expect("(temperature > %@)", ["20.0"]) { $0.temperature.persistableValue > 20 }
    }

    @Test func `collections are searched`() {
        expect("(ANY scores == %@)", ["3"]) { $0.scores == 3 }
        expect("(ANY scores != %@)", ["3"]) { $0.scores != 3 }
        expect("(ANY scores > %@)", ["3"]) { $0.scores > 3 }
        expect("(%@ IN scores)", ["3"]) { $0.scores.contains(3) }
        expect("(ANY scores IN %@)", ["[1, 2]"]) { $0.scores.containsAny(in: [1, 2]) }
        expect("((scores.@min >= %@) && (scores.@max <= %@))", ["1", "3"]) { $0.scores.contains(1...3) }
        expect("((scores.@min >= %@) && (scores.@max < %@))", ["1", "3"]) { $0.scores.contains(1..<3) }
        expect("(scores.@count == %@)", ["3"]) { $0.scores.count == 3 }
        expect("(scores.@min == %@)", ["3"]) { $0.scores.min == 3 }
        expect("(scores.@max == %@)", ["3"]) { $0.scores.max == 3 }
        expect("(scores.@sum == %@)", ["3"]) { $0.scores.sum == 3 }
        expect("(scores.@avg == %@)", ["3"]) { $0.scores.avg == 3 }
        expect("(%@ IN words)", ["x"]) { $0.words.contains("x") }
        expect("(ANY hounds.age == %@)", ["3"]) { $0.hounds.age == 3 }
        expect("(ANY pack.name BEGINSWITH %@)", ["x"]) { $0.pack.name.starts(with: "x") }
        expect("(hounds.@min.age == %@)", ["3"]) { $0.hounds.age.min == 3 }
        expect("(hounds.@avg.age > %@)", ["3"]) { $0.hounds.age.avg > 3 }
        expect("(hounds.@count > %@)", ["3"]) { $0.hounds.count > 3 }
        expect("(ANY kennels.beds == %@)", ["3"]) { $0.kennels.beds == 3 }
        #expect(
            Query<Terrier>._constructForTesting().walkers.name.starts(with: "x")._constructPredicate().0
                == "(ANY walkers.name BEGINSWITH %@)"
        )
    }

    @Test func `maps are searched`() {
        expect("(points[%@] == %@)", ["a", "3"]) { $0.points["a"] == 3 }
        expect("(ANY points == %@)", ["3"]) { $0.points == 3 }
        expect("(%@ IN points)", ["3"]) { $0.points.contains(3) }
        expect("(ANY points.@allKeys == %@)", ["a"]) { $0.points.keys == "a" }
        expect("(ANY points.@allKeys BEGINSWITH %@)", ["a"]) { $0.points.keys.starts(with: "a") }
        expect("(ANY points.@allValues > %@)", ["3"]) { $0.points.values > 3 }
        expect("(points.@count > %@)", ["3"]) { $0.points.count > 3 }
        expect("(points.@sum > %@)", ["3"]) { $0.points.sum > 3 }
        expect("((points.@min >= %@) && (points.@max <= %@))", ["1", "3"]) { $0.points.contains(1...3) }
    }

    @Test func `a property named like a word of the language is written as it is`() {
        func rendered(_ build: (Query<QueryTests.Worded>) -> Query<Bool>) -> String {
            build(Query<QueryTests.Worded>._constructForTesting())._constructPredicate().0
        }
        #expect(rendered { $0.text == "a" } == "(text == %@)")
        #expect(rendered { $0.in.in([1]) } == "(in IN %@)")
        #expect(rendered { $0.YES } == "YES == true")
        #expect(rendered { $0.or.any == 2 } == "(or.any == %@)")
        #expect(rendered { $0.size.contains(2) } == "(%@ IN size)")
    }

    @Test func `what is stored of enumerations and custom types is asked in collections too`() {
        func rendered(_ build: (Query<Crowd>) -> Query<Bool>) -> String {
            build(Query<Crowd>._constructForTesting())._constructPredicate().0
        }
        #expect(rendered { $0.sizes.rawValue > 1 } == "(ANY sizes > %@)")
        #expect(rendered { $0.optionalSizes.rawValue.contains(2) } == "(%@ IN optionalSizes)")
        #expect(rendered { $0.sizes.persistableValue.max == 2 } == "(sizes.@max == %@)")
        #expect(rendered { $0.cornerMap.rawValue[.north] == 1 } == "(cornerMap[%@] == %@)")
        #expect(rendered { $0.cornerMap.persistableValue.sum > 2 } == "(cornerMap.@sum > %@)")
        expect("(size > %@)", ["1"]) { $0.size.persistableValue > 1 }
        expect("(favourite.size == %@)", ["<null>"]) { $0.favourite.size.persistableValue == nil }
    }

    @Test func `of collections with nils the others lie in a range`() throws {
        let folder = try TemporaryFolder()
        let realm = try Realm(configuration: folder.configuration([Crowd.self]))
        try realm.write {
            let inside: [Any] = [1, NSNull(), 3]
            realm.create(Crowd.self, value: ["_id": 1, "optionalInts": inside, "optionalMap": ["a": 1.5, "b": NSNull()]] as [String: Any])
            realm.create(Crowd.self, value: ["_id": 2, "optionalInts": [1, 4], "optionalMap": ["a": 3.5]] as [String: Any])
        }
        let crowds = realm.objects(Crowd.self)
        #expect(crowds.where { $0.optionalInts.contains(1...3) }.map(\._id) == [1])
        #expect(crowds.where { $0.optionalInts.contains(1..<3) }.isEmpty)
        #expect(crowds.where { $0.optionalMap.contains(1...3.5) }.map(\._id) == [1, 2])
        #expect(crowds.where { $0.optionalMap.contains(1..<3.5) }.map(\._id) == [1])
    }

    @Test func `mixed values are gone into`() {
        expect("(mixed == %@)", ["3"]) { $0.mixed == .int(3) }
        expect("(mixed > %@)", ["3"]) { $0.mixed > .int(3) }
        expect("(mixed[%@] == %@)", ["0", "3"]) { $0.mixed[0] == .int(3) }
        expect("(mixed[%@][%@] == %@)", ["k", "1", "x"]) { $0.mixed["k"][1] == .string("x") }
        expect("(mixed[%K] == %@)", ["#any", "3"]) { $0.mixed.any == .int(3) }
        expect("(mixed CONTAINS %@)", ["x"]) { $0.mixed.contains(.string("x")) }
    }

    @Test func `subqueries are written with variables`() {
        expect("(SUBQUERY(hounds, $col1, (($col1.age == %@) && ($col1.name == %@))).@count > %@)", ["3", "x", "0"]) {
            ($0.hounds.age == 3 && $0.hounds.name == "x").count > 0
        }
        expect(
            "((SUBQUERY(hounds, $col1, ($col1.age == %@)).@count > %@) && (SUBQUERY(pack, $col2, ($col2.age == %@)).@count == %@))",
            ["1", "0", "2", "3"]
        ) {
            ($0.hounds.age == 1).count > 0 && ($0.pack.age == 2).count == 3
        }
        expect("(SUBQUERY(hounds, $col1, $col1.good == true).@count == %@)", ["1"]) { $0.hounds.good.count == 1 }
    }

    @Test func `values stand for themselves`() {
        #expect((Query<Int>._constructForTesting() > 3)._constructPredicate().0 == "(SELF > %@)")
        #expect(Query<String>._constructForTesting().starts(with: "x")._constructPredicate().0 == "(SELF BEGINSWITH %@)")
        #expect((Query<Cage>._constructForTesting().beds == 3)._constructPredicate().0 == "(beds == %@)")
        #expect((Query<Terrier?>._constructForTesting().chip.beds == 3)._constructPredicate().0 == "(chip.beds == %@)")
    }

    @Test func `places lie in shapes`() throws {
        let circle = try #require(GeoCircle(center: (48, 10), radiusInRadians: 0.1))
        let (format, arguments) = Query<Walker>._constructForTesting().home.geoWithin(circle)._constructPredicate()
        #expect(format == "(home IN %@)" && arguments[0] as? GeoCircle == circle)
    }

    @Test func `what cannot be asked ends the program`() async {
        func ends(_ text: String, _ result: ExitTest.Result?) { #expect(message(result).contains(text)) }
        ends(
            "Comparing two collection columns is not permitted.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = (Query<Walker>._constructForTesting().scores == Query<Walker>._constructForTesting().scores)._constructPredicate()
            })
        ends(
            "Subqueries must contain a keypath starting with a collection.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = ((Query<Walker>._constructForTesting().age == 3).count > 0)._constructPredicate()
            })
        ends(
            "Cannot apply key path to Map subscripts.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                _ = Query<Walker>._constructForTesting().byName["a"].name
            })
    }
}
