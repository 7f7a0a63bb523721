import SluiceSDK
import TestSupport
import Testing

/// Observers of collections that ask for key paths.
@MainActor @Suite struct KeyPathObservationTests {
    /// What a key path leads to from each element, as text, found by looking at all.
    private static let paths: [String: (Crowd) -> String] = [
        "intMap": { "\($0.intMap.asKeyValueSequence())" },
        "friend.intMap": { "\($0.friend?._id ?? -1) \($0.friend?.intMap.asKeyValueSequence() ?? [])" },
        "friends.friend": { "\($0.friends.map { [$0._id, $0.friend?._id ?? -1] })" },
        "fans": { "\($0.fans.map(\._id).sorted())" },
        "lovers.intMap": { "\($0.lovers.map { "\($0._id) \($0.intMap.asKeyValueSequence())" }.sorted())" },
        "friend.fans.intMap": { crowd in
            "\(crowd.friend?._id ?? -1) \(crowd.friend?.fans.map { "\($0._id) \($0.intMap.asKeyValueSequence())" }.sorted() ?? [])"
        },
    ]

    private struct State: Sendable {
        var keys: [Int] = []
        var shown: [Int: String] = [:]
        var told: (deletions: [Int], insertions: [Int], modifications: [Int])?
    }

    private func state<C: RealmCollection>(of collection: C, _ path: String) -> State where C.Element == Crowd {
        let show = KeyPathObservationTests.paths[path] ?? { _ in "" }
        return State(
            keys: collection.map(\._id), shown: Dictionary(collection.map { ($0._id, show($0)) }, uniquingKeysWith: { first, _ in first }))
    }

    /// The oracle looks at all elements after every change: what is told leads from one state to the next, and an element that
    /// stays is modified exactly when the key path leads to something else.
    private func check(_ before: State, _ after: State, _ comment: Comment) {
        var replayed = before.keys
        let told = after.told ?? ([], [], [])
        for index in told.deletions.reversed() { replayed.remove(at: index) }
        for index in told.insertions { replayed.insert(index < after.keys.count ? after.keys[index] : -1, at: min(index, replayed.count)) }
        #expect(replayed == after.keys, comment)
        let inserted = Set(told.insertions)
        for (index, key) in after.keys.enumerated() where !inserted.contains(index) {
            #expect(told.modifications.contains(index) == (before.shown[key] != after.shown[key]), "\(comment): \(key)")
        }
    }

    private func change(_ realm: Realm, _ random: inout SplitMix64) {
        let all = realm.objects(Crowd.self)
        func any() -> Crowd? { all.isEmpty ? nil : all[random.below(all.count)] }
        for _ in 0...random.below(3) {
            switch random.below(9) {
            case 0: realm.create(Crowd.self, value: ["_id": random.below(16)], update: .modified)
            case 1: if all.count > 4, let one = any(), one._id < 100 { realm.delete(one) }
            case 2: any()?.friend = any()
            case 3: any()?.friend = nil
            case 4: if let one = any(), let other = any() { one.friends.append(other) }
            case 5: if let one = any(), !one.friends.isEmpty { one.friends.remove(at: random.below(one.friends.count)) }
            case 6: any()?.intSet.insert(random.below(3))
            default: any()?.intMap["x"] = random.below(4)
            }
        }
    }

    @Test(arguments: seeds(1) + [14_437_247_813_002_853_241])
    func `exactly the elements are told whose key paths lead to something else`(_ seed: UInt64) async throws {
        for path in KeyPathObservationTests.paths.keys.sorted() {
            try await replay(seed, path, live: true)
            try await replay(seed, path, live: false)
        }
    }

    /// - Parameter live: the objects of a class that match a condition; else a list in an order of its own.
    private func replay(_ seed: UInt64, _ path: String, live: Bool) async throws {
        let folder = try TemporaryFolder()
        let realm = try await Realm(configuration: folder.configuration([Crowd.self]))
        let owner = try realm.write {
            for id in 0..<8 { realm.create(Crowd.self, value: ["_id": id]) }
            let owner = realm.create(Crowd.self, value: ["_id": 100])
            owner.friends.append(objectsIn: realm.objects(Crowd.self).filter("_id < 8"))
            return owner
        }
        if live {
            try await replay(seed, path, realm, realm.objects(Crowd.self).filter("_id < 100"))
        } else {
            try await replay(seed, path, realm, owner.friends.sorted(byKeyPath: "_id", ascending: false).distinct(by: ["_id"]))
        }
    }

    private func replay(_ seed: UInt64, _ path: String, _ realm: Realm, _ elements: Results<Crowd>) async throws {
        var random = SplitMix64(seed: seed)
        let (events, continuation) = AsyncStream<State>.makeStream(bufferingPolicy: .bufferingOldest(64))
        let token = elements.observe(keyPaths: [path]) { change in
            switch change {
            case .initial(let elements): continuation.yield(state(of: elements, path))
            case .update(let elements, let deletions, let insertions, let modifications):
                var state = state(of: elements, path)
                state.told = (deletions, insertions, modifications)
                continuation.yield(state)
            case .error: break
            }
        }
        var iterator = events.makeAsyncIterator()
        var last = try #require(await iterator.next(isolation: #isolation))
        for turn in 0..<30 {
            try realm.write { change(realm, &random) }
            let now = state(of: elements, path)
            if now.keys == last.keys && now.shown == last.shown { continue }
            let told = try #require(await iterator.next(isolation: #isolation))
            let comment = Comment(rawValue: "seed \(seed), \(path), turn \(turn)")
            #expect(told.keys == now.keys && told.shown == now.shown, comment)
            check(last, told, comment)
            last = told
        }
        token.invalidate()
    }
}
