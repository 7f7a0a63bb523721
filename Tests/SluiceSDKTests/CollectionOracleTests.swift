import Foundation
import SluiceSDK
import TestSupport
import Testing

/// The oracle: a Swift closure beside each query, over objects of a class, of a list and of a set.
@Suite struct CollectionOracleTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private struct Question {
        let query: (Query<Terrier>) -> Query<Bool>
        let holds: (Terrier) -> Bool
    }

    private static func questions(_ number: Int, _ text: String) -> [Question] {
        [
            Question(query: { $0.age == number }, holds: { $0.age == number }),
            Question(query: { $0.age != number }, holds: { $0.age != number }),
            Question(query: { $0.age < number }, holds: { $0.age < number }),
            Question(query: { $0.age.contains(number...number + 2) }, holds: { (number...number + 2).contains($0.age) }),
            Question(query: { $0.age.in([number, 7]) }, holds: { [number, 7].contains($0.age) }),
            Question(query: { $0.weight == nil }, holds: { $0.weight == nil }),
            Question(query: { $0.weight > Double(number) }, holds: { $0.weight.map { $0 > Double(number) } ?? false }),
            Question(query: { $0.name.contains(text) }, holds: { $0.name.contains(text) }),
            Question(query: { $0.name.starts(with: text) && $0.good }, holds: { $0.name.hasPrefix(text) && $0.good }),
            Question(query: { $0.name.ends(with: text) || !$0.good }, holds: { $0.name.hasSuffix(text) || !$0.good }),
            Question(query: { !($0.age > number) }, holds: { !($0.age > number) }),
            Question(query: { !($0.age > number && $0.good) }, holds: { !($0.age > number && $0.good) }),
            Question(
                query: { $0.name.equals(text.uppercased(), options: .caseInsensitive) },
                holds: { $0.name.uppercased() == text.uppercased() }),
            Question(query: { $0.size == .small }, holds: { $0.size == .small }),
            Question(query: { $0.chip.beds >= number }, holds: { $0.chip.map { $0.beds >= number } ?? false }),
            Question(query: { $0.chip == nil }, holds: { $0.chip == nil }),
            Question(query: { $0.walkers.count > 1 }, holds: { $0.walkers.count > 1 }),
            Question(query: { $0.walkers.age == number }, holds: { $0.walkers.contains { $0.age == number } }),
            Question(
                query: { ($0.walkers.age > number && $0.walkers.awake).count > 0 },
                holds: { $0.walkers.contains { $0.age > number && $0.awake } }),
            Question(
                query: { $0.name.contains(text, options: .diacriticInsensitive) || $0.age == number },
                holds: {
                    $0.name.folding(options: .diacriticInsensitive, locale: nil).contains(
                        text.folding(options: .diacriticInsensitive, locale: nil)) || $0.age == number
                }),
        ]
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `queries select what closures select, in every collection`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let realm = try Realm(configuration: folder.configuration([Walker.self, Terrier.self]))
        let walkers = try realm.write { try fill(realm, &random) }
        for round in 0..<6 {
            let number = Int.random(in: 0..<5, using: &random)
            let text = ["a", "b", "ab", "é"].randomElement(using: &random) ?? ""
            for (index, question) in CollectionOracleTests.questions(number, text).enumerated() {
                let comment: Comment = "seed \(seed) round \(round) question \(index) \(number) \(text)"
                let walker = walkers[round % walkers.count]
                check(realm.objects(Terrier.self), question, comment)
                check(walker.hounds, question, comment)
                check(walker.pack, question, comment)
                check(walker.hounds.sorted(by: ["age", "_id"]), question, comment)
                check(AnyRealmCollection(walker.hounds), question, comment)
            }
        }
    }

    private func check<C: RealmCollection<Terrier>>(_ collection: C, _ question: Question, _ comment: Comment) {
        let expected = Array(collection).filter(question.holds)
        #expect(collection.where(question.query).map(\._id) == expected.map(\._id), comment)
        #expect(collection.where(question.query).count == expected.count, comment)
        #expect(collection.index(matching: question.query) == Array(collection).firstIndex(where: question.holds), comment)
        #expect(collection.where(question.query).sum(of: \.age) == expected.reduce(0) { $0 + $1.age }, comment)
        let oldest: Int? = collection.where(question.query).max(of: \.age)
        #expect(oldest == expected.map(\.age).max(), comment)
        let sorted = collection.where(question.query).sorted(by: [SortDescriptor(keyPath: "age"), SortDescriptor(keyPath: "_id")])
        #expect(sorted.map(\._id) == expected.sorted { ($0.age, $0._id) < ($1.age, $1._id) }.map(\._id), comment)
    }

    private func fill(_ realm: Realm, _ random: inout SplitMix64) throws -> [Walker] {
        let hounds = (0..<12).map { id in
            let hound = realm.create(Terrier.self, value: ["_id": id])
            hound.name = (0..<Int.random(in: 0..<3, using: &random)).map { _ in ["a", "b", "é", "A"].randomElement(using: &random) ?? "" }
                .joined()
            hound.age = Int.random(in: 0..<6, using: &random)
            hound.weight = Bool.random(using: &random) ? Double(Int.random(in: 0..<6, using: &random)) : nil
            hound.good = Bool.random(using: &random)
            hound.size = [Size.small, .large, nil].randomElement(using: &random) ?? nil
            if Bool.random(using: &random) { hound.chip = Cage(value: ["Ulm", Int.random(in: 0..<6, using: &random)] as [Any]) }
            return hound
        }
        return (0..<3).map { id in
            let walker = realm.create(Walker.self, value: ["_id": id])
            walker.age = Int.random(in: 0..<6, using: &random)
            walker.awake = Bool.random(using: &random)
            for _ in 0..<8 {
                walker.hounds.append(hounds[Int.random(in: 0..<12, using: &random)])
                walker.pack.insert(hounds[Int.random(in: 0..<12, using: &random)])
            }
            return walker
        }
    }
}
