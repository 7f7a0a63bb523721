import Dispatch
import Foundation
import SluiceSDK
import Synchronization
import TestSupport
import Testing

/// Notifications of collections whose conditions and orders go through links, replayed and compared with the collections as they are.
@Suite struct LinkedObservationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// What an observer that has nothing but the changes makes of a collection.
    private final class Mirror: Sendable {
        private struct State {
            var keys: [Int] = []
            /// What every element that leads to something looks like.
            var contents: [Int: String] = [:]
            var faults: [String] = []
        }

        private let state = Mutex(State())
        private let token: Mutex<NotificationToken?> = Mutex(nil)
        private let takesPlaces: Bool

        var keys: [Int] { state.withLock { $0.keys } }
        var faults: [String] { state.withLock { $0.faults } }

        /// - Parameter takesPlaces: whether an element that took the place of another is told as a modification, as in lists.
        init<C: RealmCollection>(
            _ collection: C, takesPlaces: Bool, _ queue: DispatchQueue
        ) where C.Element: Object & Described {
            self.takesPlaces = takesPlaces
            let observation = collection.observe(on: queue) { [weak self] change in
                switch change {
                case .initial(let collection): self?.show(Array(collection), nil)
                case .update(let collection, let deletions, let insertions, let modifications):
                    self?.show(Array(collection), (deletions, insertions, modifications))
                case .error: break
                }
            }
            token.withLock { $0 = observation }
        }

        private func show<E: Object & Described>(_ elements: [E], _ change: ([Int], [Int], [Int])?) {
            let contents = Dictionary(elements.map { ($0._id, $0.text) }, uniquingKeysWith: { first, _ in first })
            let keys = elements.map(\._id)
            state.withLock { state in
                if let (deletions, insertions, modifications) = change {
                    var replay = state.keys
                    for place in deletions.reversed() where place < replay.count { replay.remove(at: place) }
                    for place in insertions where place <= replay.count { replay.insert(keys[place], at: place) }
                    if takesPlaces { for place in modifications where place < replay.count { replay[place] = keys[place] } }
                    if replay != keys { state.faults.append("\(state.keys) becomes \(replay), not \(keys)") }
                    let told = Set((insertions + modifications).map { keys[$0] })
                    for key in keys where !told.contains(key) && state.contents[key] != contents[key] {
                        state.faults.append("\(key) is not told: \(state.contents[key] ?? "") to \(contents[key] ?? "")")
                    }
                }
                (state.keys, state.contents) = (keys, contents)
            }
        }
    }

    @Test(arguments: seeds(3)) func `what is told of collections through links turns one into the next`(_ seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let realm = try await Realm(configuration: folder.configuration([Walker.self, Terrier.self]))
        let (walkers, terriers) = (realm.objects(Walker.self), realm.objects(Terrier.self))
        try realm.write {
            for id in 0..<10 { realm.create(Terrier.self, value: ["_id": id, "age": random.below(6)]) }
            for id in 0..<8 {
                let walker = realm.create(Walker.self, value: ["_id": id, "age": random.below(6)])
                walker.hounds.append(objectsIn: terriers.filter { _ in random.chance(40) })
                walker.pack.insert(objectsIn: terriers.filter { _ in random.chance(40) })
                walker.favourite = terriers[random.below(10)]
            }
        }
        let (first, dog) = (walkers[0], terriers[0])
        let queue = DispatchQueue(label: "mirrors")
        let collections: [(keys: () -> [Int], mirror: Mirror)] = [
            mirrored(walkers.where { $0.favourite.age > 2 }, queue),
            mirrored(walkers.sorted(byKeyPath: "favourite.age", ascending: false), queue),
            mirrored(walkers.distinct(by: ["favourite.age"]), queue),
            mirrored(walkers.where { $0.hounds.age > 3 }.distinct(by: ["favourite.good"]).sorted(byKeyPath: "age"), queue),
            mirrored(walkers.where { ($0.pack.age > 2 && $0.pack.good == true).count > 1 }, queue),
            mirrored(walkers.where { $0.hounds.age.avg > 2 }, queue),
            mirrored(terriers.where { $0.walkers.age > 3 }, queue),
            mirrored(terriers.filter("walkers.@count > 2 AND NONE walkers.favourite.good == true").sorted(byKeyPath: "age"), queue),
            mirrored(first.hounds, takesPlaces: true, queue), mirrored(first.hounds.filter("ANY walkers.awake == true"), queue),
            mirrored(first.hounds.sorted(byKeyPath: "age"), queue), mirrored(first.pack.where { $0.age < 4 }, queue),
            mirrored(dog.walkers, queue), mirrored(dog.walkers.where { $0.favourite.age < 4 }.sorted(byKeyPath: "age"), queue),
        ]
        queue.sync {}
        for round in 0..<60 {
            try realm.write {
                for _ in 0...random.below(3) { try change(realm, &random) }
            }
            queue.sync {}
            for (index, collection) in collections.enumerated() {
                let comment: Comment = "seed \(seed), round \(round), collection \(index)"
                #expect(collection.mirror.keys == collection.keys(), comment)
                #expect(collection.mirror.faults == [], comment)
            }
        }
    }

    private func mirrored<C: RealmCollection>(
        _ collection: C, takesPlaces: Bool = false, _ queue: DispatchQueue
    ) -> (keys: () -> [Int], mirror: Mirror) where C.Element: Object & Described {
        ({ collection.map(\._id) }, Mirror(collection, takesPlaces: takesPlaces, queue))
    }

    private func change(_ realm: Realm, _ random: inout SplitMix64) throws {
        let walker = realm.object(ofType: Walker.self, forPrimaryKey: random.below(8))
        let terrier = realm.object(ofType: Terrier.self, forPrimaryKey: random.below(10))
        guard let walker, let terrier else {
            realm.create(Terrier.self, value: ["_id": random.below(10), "age": random.below(6)], update: .all)
            realm.create(Walker.self, value: ["_id": random.below(8), "age": random.below(6)], update: .modified)
            return
        }
        switch random.below(12) {
        case 0: terrier.age = random.below(6)
        case 1: terrier.good.toggle()
        case 2: walker.age = random.below(6)
        case 3: walker.awake.toggle()
        case 4: walker.favourite = random.chance(20) ? nil : terrier
        case 5: if !walker.hounds.contains(terrier) { walker.hounds.insert(terrier, at: random.below(walker.hounds.count + 1)) }
        case 6: if !walker.hounds.isEmpty { walker.hounds.remove(at: random.below(walker.hounds.count)) }
        case 7: walker.pack.insert(terrier)
        case 8: walker.pack.remove(terrier)
        case 9: if walker.hounds.count > 1 { walker.hounds.move(from: 0, to: random.below(walker.hounds.count)) }
        case 10: if terrier._id > 0 { realm.delete(terrier) }
        default: if walker._id > 0 { realm.delete(walker) }
        }
    }
}

private protocol Described {
    var _id: Int { get }
    /// What an observer of it sees: its own values and those of what it links to.
    var text: String { get }
}

extension Terrier: Described {
    fileprivate var text: String { "\(_id) \(age) \(good)" }
}

extension Walker: Described {
    fileprivate var text: String {
        "\(_id) \(age) \(awake) \(favourite?.text ?? "-") \(hounds.map(\.text)) \(pack.map(\.text).sorted())"
    }
}
