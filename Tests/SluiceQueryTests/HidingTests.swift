import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// Conditions for somebody who does not see all properties.
struct HidingTests {
    private func hiding(_ names: [String], _ text: String) throws -> String {
        let hidden = Set(names.compactMap { Samples.type.index(of: $0) })
        #expect(hidden.count == names.count)
        return try Query.parse(text).predicate(on: Samples.type, in: Samples.schema).hiding(hidden).canonicalText
    }

    @Test func `what is hidden counts as null`() throws {
        #expect(try hiding(["number"], "number == 1 OR flag == true") == "flag == true")
        #expect(try hiding(["number"], "number == 1 AND flag == true") == "FALSEPREDICATE")
        #expect(try hiding(["number"], "NOT number > 1") == "TRUEPREDICATE")
        #expect(try hiding(["number"], "number != 1 AND flag == true") == "flag == true")
        #expect(try hiding(["number"], "number == nil") == "TRUEPREDICATE")
        #expect(try hiding(["name"], "name IN {'a', nil}") == "TRUEPREDICATE")
        #expect(try hiding(["name"], "name BEGINSWITH ''") == "FALSEPREDICATE")
        #expect(try hiding(["tags"], "ANY tags == 'a' OR tags.@count == 0") == "TRUEPREDICATE")
        #expect(try hiding(["tags"], "ANY tags == 'a' OR tags.@count > 0") == "FALSEPREDICATE")
        #expect(try hiding(["number"], "number == other") == "other == NULL")
        #expect(try hiding(["other"], "number < other") == "FALSEPREDICATE")
        #expect(try hiding(["other"], "number <= other") == "number == NULL")
        #expect(try hiding(["number"], "number != other") == "other != NULL")
        #expect(try hiding(["number", "other"], "number == other") == "TRUEPREDICATE")
        #expect(try hiding(["place"], "NOT place GEOWITHIN geoCircle([0, 0], 1)") == "TRUEPREDICATE")
        #expect(try hiding(["flag"], "number == 1") == "number == 1")
    }

    @Test(arguments: seeds(5)) func `rows match as if they had nothing there`(_ seed: UInt64) throws {
        let type = Samples.type
        let names = type.properties.map(\.name).filter { $0 != "extra" && $0 != "friend" }
        var writer = QueryWriter(random: SplitMix64(seed: seed), names: names)
        var (checks, differences) = (0, 0)
        for _ in 0..<150 {
            let text = writer.query()
            guard let predicate = try? Query.parse(text).predicate(on: type, in: Samples.schema) else { continue }
            let hidden = Set(type.properties.indices.filter { _ in writer.random.chance(30) })
            let cut = predicate.hiding(hidden)
            #expect(cut.properties.isDisjoint(with: hidden), "seed \(seed): \(text)")
            for _ in 0..<20 {
                let row = Samples.row(&writer.random)
                let blind = Row(type.properties.indices.map { hidden.contains($0) ? .null : row[$0] })
                #expect(cut.matches(row) == predicate.matches(blind), "seed \(seed): \(text) of \(row) without \(hidden)")
                checks += 1
                if cut.matches(row) != predicate.matches(row) { differences += 1 }
            }
        }
        #expect(checks > 1_000 && differences > 10, "seed \(seed): \(differences) of \(checks) differ")
    }
}
