import Dispatch
import Foundation
import SluiceSDK
import TestSupport
import Testing

class Kennel: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var name: String
    @Persisted var guardDog: Hound?
    @Persisted var hounds: List<Hound>
    @Persisted var byName: Map<String, Hound?>
    @Persisted var home: Address?
}

class Hound: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var name: String
    @Persisted var age: Int?
    @Persisted var friend: Hound?
    @Persisted(originProperty: "hounds") var kennels: LinkingObjects<Kennel>
}

@MainActor @Suite struct ObjectObservationTests {
    let folder: TemporaryFolder
    let configuration: Realm.Configuration
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        configuration = folder.configuration([Kennel.self])
        realm = try Realm(configuration: configuration)
    }

    /// What an observer heard, as text: "name: a → b", "deleted".
    private final class Ear: Sendable {
        private let stream: AsyncStream<[String]>
        let continuation: AsyncStream<[String]>.Continuation
        init() { (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(64)) }

        func hear<T: Object>(_ change: ObjectChange<T>) {
            switch change {
            case .change(_, let properties): continuation.yield(properties.map(Ear.text))
            case .deleted: continuation.yield(["deleted"])
            case .error(let error): continuation.yield(["\(error)"])
            }
        }

        private static func text(_ change: PropertyChange) -> String {
            func text(_ value: Any?) -> String { (value as? Object).map { "\($0["_id"] ?? "?")" } ?? value.map { "\($0)" } ?? "nil" }
            return "\(change.name): \(text(change.oldValue)) → \(text(change.newValue))"
        }

        /// The next thing heard.
        func next() async -> [String]? {
            for await event in stream { return event }
            return nil
        }
    }

    private func kennel() throws -> Kennel {
        try realm.write {
            let value: [String: Any] = ["_id": 1, "name": "a", "hounds": [["_id": 1, "name": "Rex", "age": 3]], "home": ["street": "Elm"]]
            let kennel = realm.create(Kennel.self, value: value)
            kennel.guardDog = kennel.hounds.first
            return kennel
        }
    }

    private func elsewhere(_ body: @escaping @Sendable (Realm) -> Void) async throws {
        let configuration = configuration
        try await onThread {
            let realm = try Realm(configuration: configuration)
            try realm.write { body(realm) }
        }
    }

    @Test func `an observer hears old and new values of what others change, and nothing at the beginning`() async throws {
        let kennel = try kennel()
        let ear = Ear()
        let token = kennel.observe { (change: ObjectChange<Kennel>) in ear.hear(change) }
        try await elsewhere { realm in
            let kennel = realm.objects(Kennel.self)[0]
            kennel.name = "b"
            kennel.guardDog = realm.create(Hound.self, value: ["_id": 2])
            kennel.hounds.removeAll()
        }
        #expect(await ear.next() == ["name: a → b", "guardDog: 1 → 2", "hounds: nil → nil"])
        try await elsewhere { $0.delete($0.objects(Kennel.self)) }
        #expect(await ear.next() == ["deleted"])
        #expect(kennel.isInvalidated)
        _ = token
    }

    @Test func `the type is known from the object alone`() async throws {
        let kennel = try kennel()
        let ear = Ear()
        let token = kennel.observe { change in
            switch change {
            case .change(let object, let properties): ear.continuation.yield([object["name"] as? String ?? "", properties[0].name])
            case .deleted, .error: break
            }
        }
        try realm.write { kennel.name = "b" }
        #expect(await ear.next() == ["b", "name"])
        _ = token
    }

    @Test func `the Realm's own changes come without old values, and setting the same value counts`() async throws {
        let kennel = try kennel()
        let ear = Ear()
        let token = kennel.observe { (change: ObjectChange<Kennel>) in ear.hear(change) }
        try realm.write { kennel.name = "a" }
        #expect(await ear.next() == ["name: nil → a"])
        realm.beginWrite()
        kennel.name = "b"
        realm.cancelWrite()
        try realm.write { kennel.name = "c" }
        #expect(await ear.next() == ["name: nil → c"])
        // This blocks the main thread, so that both transactions have come when it hears of them.
        let configuration = configuration
        try DispatchQueue(label: "elsewhere").sync {
            let other = try Realm(configuration: configuration)
            try other.write { other.objects(Kennel.self)[0].name = "d" }
            try other.write { other.objects(Kennel.self)[0].guardDog = nil }
        }
        #expect(await ear.next() == ["name: c → d", "guardDog: 1 → nil"])
        _ = token
    }

    @Test func `key paths choose what counts, behind links too`() async throws {
        let kennel = try kennel()
        let ear = Ear()
        let token = kennel.observe(keyPaths: ["hounds.name", "guardDog.age"]) { (change: ObjectChange<Kennel>) in ear.hear(change) }
        let (swift, star) = (Ear(), Ear())
        let swiftToken = kennel.observe(keyPaths: [\Kennel.guardDog?.name, \Kennel.hounds[0].kennels[0].name]) { swift.hear($0) }
        let starToken = kennel.observe(keyPaths: ["guardDog.*"]) { (change: ObjectChange<Kennel>) in star.hear(change) }
        try realm.write { kennel.name = "b" }
        #expect(await swift.next() == ["hounds: nil → nil"])
        try realm.write { kennel.guardDog?.age = 4 }
        #expect(await ear.next() == ["guardDog: 1 → 1"])
        #expect(await star.next() == ["guardDog: 1 → 1"])
        try realm.write { kennel.hounds[0].name = "Max" }
        #expect(await ear.next() == ["hounds: nil → nil"])
        #expect(await swift.next() == ["guardDog: 1 → 1"])
        #expect(_name(for: \Kennel.guardDog?.friend?.name) == "guardDog.friend.name" && _name(for: \Kennel.hounds) == "hounds")
        _ = (token, swiftToken, starToken)
    }

    @Test func `an observer on a queue or an actor gets an object of its own`() async throws {
        let kennel = try kennel()
        let queue = DispatchQueue(label: "observer")
        let (ear, other) = (Ear(), Ear())
        let token = kennel.observe(on: queue) { (change: ObjectChange<Kennel>) in
            dispatchPrecondition(condition: .onQueue(queue))
            if case .change(let object, _) = change { #expect(object.name == "b" && !object.isFrozen) }
            ear.hear(change)
        }
        let actorToken = await kennel.observe(on: Listener()) { (actor: isolated Listener, change: ObjectChange<Kennel>) in
            actor.preconditionIsolated()
            other.hear(change)
        }
        try realm.write { kennel.name = "b" }
        #expect(await ear.next() == ["name: a → b"])
        #expect(await other.next() == ["name: a → b"])
        try realm.write { realm.delete(kennel) }
        #expect(await ear.next() == ["deleted"])
        #expect(await other.next() == ["deleted"])
        _ = (token, actorToken)
    }

    @Test func `links to objects that are deleted count as changes`() async throws {
        let kennel = try kennel()
        try realm.write {
            let bo = realm.create(Hound.self, value: ["_id": 2, "name": "Bo"])
            kennel.hounds.append(bo)
            kennel.byName["bo"] = bo
        }
        let (ear, path) = (Ear(), Ear())
        let token = kennel.observe { (change: ObjectChange<Kennel>) in ear.hear(change) }
        let pathToken = kennel.observe(keyPaths: ["guardDog"]) { (change: ObjectChange<Kennel>) in path.hear(change) }
        try await elsewhere { $0.objects(Hound.self).forEach { $0.age = 9 } }
        try await elsewhere { realm in realm.delete(realm.objects(Hound.self).filter("_id == 2")) }
        #expect(await ear.next() == ["hounds: nil → nil", "byName: nil → nil"])
        try await elsewhere { realm in realm.create(Hound.self, value: ["_id": 2]) }
        #expect(await ear.next() == ["hounds: nil → nil", "byName: nil → nil"])
        try await elsewhere { realm in realm.delete(realm.objects(Hound.self).filter("_id == 1")) }
        #expect(await ear.next() == ["guardDog: 1 → nil", "hounds: nil → nil"], "the object that was there is gone")
        #expect(await path.next() == ["guardDog: 1 → nil"])
        token.invalidate()
        pathToken.invalidate()
    }

    @Test func `the old value of a link whose target is deleted is that object, unless the Realm deletes it itself`() async throws {
        let kennel = try kennel()
        let (olds, old) = AsyncStream<[String]>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let token = kennel.observe(keyPaths: ["guardDog"]) { (change: ObjectChange<Kennel>) in
            guard case .change(_, let properties) = change else { return }
            old.yield(
                properties.map { property in
                    guard let hound = property.oldValue as? Hound else { return "nil" }
                    return "\(hound.name) \(hound.isInvalidated) \(property.newValue == nil)"
                })
        }
        var told = olds.makeAsyncIterator()
        // What the object was last, not when the observation began.
        try realm.write { kennel.guardDog?.name = "Max" }
        try await elsewhere { realm in realm.delete(realm.objects(Hound.self).filter("_id == 1")) }
        #expect(await told.next(isolation: #isolation) == ["Max true true"])
        // It is replaced and deleted in one transaction.
        try await elsewhere { realm in
            realm.objects(Kennel.self)[0].guardDog = realm.create(Hound.self, value: ["_id": 2, "name": "Bo"])
        }
        #expect(await told.next(isolation: #isolation) == ["nil"])
        try await elsewhere { realm in
            realm.objects(Kennel.self)[0].guardDog = realm.create(Hound.self, value: ["_id": 3, "name": "Ida"])
            realm.delete(realm.objects(Hound.self).filter("_id == 2"))
        }
        #expect(await told.next(isolation: #isolation) == ["Bo true false"])
        for body in [{ (realm: Realm) in kennel.guardDog.map { realm.delete($0) } }, { realm in realm.delete(realm.objects(Hound.self)) }] {
            try realm.write { body(realm) }
            #expect(await told.next(isolation: #isolation) == ["nil"])
            try realm.write { kennel.guardDog = realm.create(Hound.self, value: ["_id": 4, "name": "Ed"]) }
            #expect(await told.next(isolation: #isolation) == ["nil"])
        }
        token.invalidate()
    }

    @Test func `the old value is what the observer could read last, even if the target is deleted before the notification`() async throws {
        let kennel = try kennel()
        let (olds, old) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let token = kennel.observe(keyPaths: ["guardDog"]) { (change: ObjectChange<Kennel>) in
            guard case .change(_, let properties) = change else { return }
            for property in properties { old.yield((property.oldValue as? Hound)?.name ?? "nil") }
        }
        // Nothing is delivered in between, since the actor is not released.
        func deleteHound() throws {
            try realm.write { kennel.guardDog?.name = "Max" }
            let configuration = configuration
            let isDone = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                defer { isDone.signal() }
                do {
                    let realm = try Realm(configuration: configuration)
                    try realm.write { realm.delete(realm.objects(Hound.self)) }
                } catch {
                    Issue.record(error)
                }
            }
            isDone.wait()
        }
        try deleteHound()
        var told = olds.makeAsyncIterator()
        #expect(await told.next(isolation: #isolation) == "Max")
        token.invalidate()
    }

    private actor Listener {}

    @Test func `embedded objects are observed where they are`() async throws {
        let kennel = try kennel()
        let ear = Ear()
        let token = try #require(kennel.home).observe { (change: ObjectChange<Address>) in
            switch change {
            case .change(_, let properties): ear.continuation.yield(properties.map { "\($0.name): \($0.newValue ?? "nil")" })
            case .deleted: ear.continuation.yield(["deleted"])
            case .error: break
            }
        }
        try realm.write { kennel.name = "b" }
        try realm.write { kennel.home?.street = "Oak" }
        #expect(await ear.next() == ["street: Oak"])
        try realm.write { kennel.home = nil }
        #expect(await ear.next() == ["deleted"])
        _ = token
    }

    @Test func `a transaction is kept from the observers that it names, and from no others`() async throws {
        let kennel = try kennel()
        let (silenced, other, list) = (Ear(), Ear(), Ear())
        let silencedToken = kennel.observe { (change: ObjectChange<Kennel>) in silenced.hear(change) }
        let otherToken = kennel.observe { (change: ObjectChange<Kennel>) in other.hear(change) }
        let listToken = realm.objects(Hound.self).observe { change in
            switch change {
            case .update(_, let deletions, let insertions, let modifications):
                list.continuation.yield(["\(deletions) \(insertions) \(modifications)"])
            case .initial(let all): list.continuation.yield(["\(all.count)"])
            case .error: break
            }
        }
        #expect(await list.next() == ["1"])
        try realm.write(withoutNotifying: [silencedToken, listToken]) {
            kennel.name = "b"
            _ = realm.create(Hound.self, value: ["_id": 0])
        }
        #expect(await other.next() == ["name: nil → b"])
        realm.beginWrite()
        kennel.name = "c"
        _ = realm.create(Hound.self, value: ["_id": 5])
        try realm.commitWrite(withoutNotifying: [otherToken])
        #expect(await silenced.next() == ["name: nil → c"])
        #expect(await list.next() == ["[] [2] []"], "the object of the silenced transaction is known")
        try realm.write { kennel.name = "d" }
        #expect(await other.next() == ["name: nil → d"])
        silencedToken.invalidate()
        otherToken.invalidate()
        try realm.write { kennel.name = "e" }
        silenced.continuation.finish()
        #expect(await silenced.next() == ["name: nil → d"])
        #expect(await silenced.next() == nil)
    }

    /// The oracle: the new values that were told, put one over the other, are those that the object has.
    @Test(arguments: [UInt64(1), 2, 3]) func `changes replay to the object under random writes`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let hound = try realm.write { realm.create(Hound.self, value: ["_id": 1, "name": "", "age": 0]) }
        var told: [String: String] = ["name": "", "age": "0"]
        let ear = Ear()
        let token = hound.observe { (change: ObjectChange<Hound>) in
            guard case .change(_, let properties) = change else { return }
            for property in properties {
                if let old = property.oldValue { #expect("\(old)" == told[property.name], "seed \(seed)") }
                told[property.name] = property.newValue.map { "\($0)" } ?? "nil"
            }
            ear.continuation.yield([told["name"] ?? ""])
        }
        for turn in 0..<30 {
            let (name, age) = ("\(Int.random(in: 0..<4, using: &random))", Int.random(in: 0..<3, using: &random))
            if Bool.random(using: &random) {
                try realm.write { (hound.name, hound.age) = (name, age) }
            } else {
                try await elsewhere { $0.objects(Hound.self)[0].name = name }
            }
            if turn % 7 == 0 { await _Concurrency.Task.yield() }
        }
        try realm.write { hound.name = "last" }
        while await ear.next() != ["last"] {}
        #expect(told["age"] == hound.age.map { "\($0)" }, "seed \(seed)")
        token.invalidate()
    }

    @Test func `misuse ends the program`() async {
        let unmanaged = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = Horse().observe { (_: ObjectChange<Horse>) in }
        }
        #expect(message(unmanaged).contains("Only objects which are managed by a Realm support change notifications"))
        let inside = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let realm = try Realm(configuration: TemporaryFolder().configuration([Horse.self]))
            try realm.write { _ = realm.create(Horse.self, value: ["_id": 1]).observe { (_: ObjectChange<Horse>) in } }
        }
        #expect(message(inside).contains("Cannot register notification blocks from within write transactions."))
        let unknown = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let realm = try Realm(configuration: TemporaryFolder().configuration([Horse.self]))
            let horse = try realm.write { realm.create(Horse.self, value: ["_id": 1]) }
            _ = horse.observe(keyPaths: ["naem"]) { (_: ObjectChange<Horse>) in }
        }
        #expect(message(unknown).contains("Invalid property name: property 'naem' not found in object of type 'Horse'"))
    }
}
