import Dispatch
import Foundation
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

    @Test func `projected values are found, set and frozen`() throws {
        let realm = try PredicateTests.fill(folder)
        let names = try #require(realm.objects(Stroll.self).first).names
        #expect(names.realm == realm && names.index(of: "Ärmel") == 1 && names.index(of: "Jo") == nil)
        #expect(names.index(matching: NSPredicate(format: "name BEGINSWITH 'Ä'")) == 1)
        #expect(names.description == "ProjectedCollection<String> {\n\t[0] Rex\n\t[1] Ärmel\n\t[2] Rex\n}")
        let frozen = names.freeze()
        try realm.write { names[1] = "Max" }
        #expect(Array(names) == ["Rex", "Max", "Rex"] && Array(frozen) == ["Rex", "Ärmel", "Rex"] && frozen.isFrozen)
        #expect(frozen.thaw().map { Array($0) } == ["Rex", "Max", "Rex"])
        try realm.write { realm.delete(realm.objects(Walker.self)) }
        #expect(names.isInvalidated && !frozen.isInvalidated && frozen.thaw() == nil)
    }

    @Test func `a projection stands for an object that no Realm manages too`() {
        let walker = Walker(value: ["_id": 1, "name": "Jo"])
        let stroll = Stroll(projecting: walker)
        #expect(stroll.who == "Jo" && stroll.city == nil && stroll.names.isEmpty && stroll.realm == nil)
        stroll.who = "Di"
        #expect(walker.name == "Di")
    }
}

/// Observers of views of one object.
@MainActor @Suite struct ProjectionObservationTests {
    private class Visit: Projection<Kennel> {
        @Projected(\Kennel.name) var title
        @Projected(\Kennel.name.localizedUppercase) var loud
        @Projected(\Kennel.guardDog?.name) var watch
        @Projected(\Kennel.hounds.projectTo.name) var names
        @Projected(\Kennel.home?.street) var street
    }

    let folder: TemporaryFolder
    let configuration: Realm.Configuration
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        configuration = folder.configuration([Kennel.self])
        realm = try Realm(configuration: configuration)
    }

    private func visit() throws -> Visit {
        let value: [String: Any] = [
            "_id": 1, "name": "a", "hounds": [["_id": 1, "name": "Rex", "age": 3]], "home": ["street": "Elm"],
            "guardDog": ["_id": 2, "name": "Bo"],
        ]
        return Visit(projecting: try realm.write { realm.create(Kennel.self, value: value) })
    }

    private func elsewhere(_ body: @escaping @Sendable (Kennel) -> Void) async throws {
        let configuration = configuration
        try await onThread {
            let realm = try Realm(configuration: configuration)
            try realm.write { body(realm.objects(Kennel.self)[0]) }
        }
    }

    /// What an observer heard.
    private final class Ear: Sendable {
        private let stream: AsyncStream<[String]>
        let continuation: AsyncStream<[String]>.Continuation
        init() { (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(64)) }

        func hear<P>(_ change: ObjectChange<P>) {
            switch change {
            case .change(_, let properties): continuation.yield(properties.map(Ear.text))
            case .deleted: continuation.yield(["deleted"])
            case .error(let error): continuation.yield(["\(error)"])
            }
        }

        private static func text(_ change: PropertyChange) -> String {
            func text(_ value: Any?) -> String {
                (value as? ProjectedCollection<String>).map { "\(Array($0))" } ?? value.map { "\($0)" } ?? "nil"
            }
            return "\(change.name): \(text(change.oldValue)) → \(text(change.newValue))"
        }

        func next() async -> [String]? {
            for await event in stream { return event }
            return nil
        }
    }

    @Test func `an observer hears the view's names and values, of what the view shows`() async throws {
        let visit = try visit()
        let ear = Ear()
        let token = visit.observe { ear.hear($0) }
        try await elsewhere { $0.name = "b" }
        #expect(await ear.next() == ["title: a → b", "loud: A → B"])
        try realm.write {
            visit.title = "c"
            visit.rootObject.guardDog?.age = 7
        }
        #expect(await ear.next() == ["title: nil → c", "loud: nil → C"], "of its own writes nothing is kept")
        try await elsewhere { $0.byName["x"] = $0.guardDog }
        try await elsewhere { $0.guardDog?.name = "Jo" }
        #expect(await ear.next() == ["watch: Jo → Jo"], "the object behind a link shows what it is now")
        try await elsewhere { $0.hounds[0].name = "Max" }
        #expect(await ear.next() == [#"names: nil → ["Max"]"#])
        try await elsewhere { $0.home?.street = "Oak" }
        #expect(await ear.next()?.first?.hasPrefix("street:") == true)
        try await elsewhere { $0.realm?.delete($0) }
        #expect(await ear.next() == ["deleted"])
        token.invalidate()
    }

    @Test func `key paths choose what counts, by either name`() async throws {
        let visit = try visit()
        let (byName, byPath, swift, computed) = (Ear(), Ear(), Ear(), Ear())
        let tokens = [
            visit.observe(keyPaths: ["watch"]) { byName.hear($0) },
            visit.observe(keyPaths: ["hounds.name"]) { byPath.hear($0) },
            visit.observe(keyPaths: [\Visit.names, \Visit.street]) { swift.hear($0) },
            visit.observe(keyPaths: [\Visit.loud.count]) { computed.hear($0) },
        ]
        try await elsewhere { kennel in
            kennel.name = "b"
            kennel.hounds[0].age = 4
        }
        #expect(await computed.next() == ["title: a → b", "loud: A → B"], "both show the same property")
        try await elsewhere { $0.hounds[0].name = "Max" }
        #expect(await byPath.next() == [#"names: nil → ["Max"]"#])
        #expect(await swift.next() == [#"names: nil → ["Max"]"#])
        try await elsewhere { $0.guardDog = nil }
        #expect(await byName.next()?.count == 1)
        for token in tokens { token.invalidate() }
    }

    private actor Keeper {
        let ear = Ear()
    }

    @Test func `projected values are observed as what their elements are`() async throws {
        let names = try visit().names
        let ear = Ear()
        func hear(_ change: RealmCollectionChange<ProjectedCollection<String>>) {
            switch change {
            case .initial(let names): ear.continuation.yield(Array(names))
            case .update(let names, let deletions, let insertions, let modifications):
                ear.continuation.yield(Array(names) + ["\(deletions)\(insertions)\(modifications)"])
            case .error(let error): ear.continuation.yield(["\(error)"])
            }
        }
        let token = names.observe(keyPaths: ["name"]) { hear($0) }
        #expect(await ear.next() == ["Rex"])
        try await elsewhere { $0.hounds.append(Hound(value: ["_id": 3, "name": "Ida"])) }
        #expect(await ear.next() == ["Rex", "Ida", "[][1][]"])
        try await elsewhere { $0.hounds[0].age = 8 }
        try await elsewhere { $0.hounds[0].name = "Max" }
        #expect(await ear.next() == ["Max", "Ida", "[][][0]"])
        token.invalidate()
        let (sizes, size) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let other = await names.observe(on: MainActor.shared) { _, change in
            if case .update(let names, _, _, _) = change { size.yield(names.count) }
        }
        try await elsewhere { $0.hounds.removeAll() }
        for await count in sizes {
            #expect(count == 0)
            break
        }
        other.invalidate()
    }

    @Test func `an observer on a queue or an actor gets a view of its own`() async throws {
        let visit = try visit()
        let (queue, ear, keeper) = (DispatchQueue(label: "views"), Ear(), Keeper())
        let token = visit.observe(on: queue) { change in
            if case .change(let visit, _) = change { #expect(visit.realm != nil && visit.title == "b") }
            ear.hear(change)
        }
        let other = await visit.observe(keyPaths: [\Visit.title], on: keeper) { keeper, change in
            if case .change(let visit, _) = change { #expect(visit.rootObject.name == "b") }
            keeper.ear.hear(change)
        }
        try realm.write { visit.title = "b" }
        #expect(await ear.next() == ["title: a → b", "loud: A → B"])
        #expect(await keeper.ear.next() == ["title: a → b", "loud: A → B"])
        token.invalidate()
        other.invalidate()
    }

    @Test func `results of views are ordered, observed and put in sections by the view's key paths`() async throws {
        _ = try visit()
        try realm.write { _ = realm.create(Kennel.self, value: ["_id": 2, "name": "A"]) }
        let visits = realm.objects(Visit.self)
        #expect(visits.sorted(by: \.title).map(\.title) == ["A", "a"])
        #expect(visits.sectioned(by: \.title).allKeys == ["A", "a"])
        let (events, continuation) = AsyncStream<[Int]>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let token = visits.observe(keyPaths: [\Visit.names]) { change in
            switch change {
            case .initial: continuation.yield([])
            case .update(_, _, _, let modifications): continuation.yield(modifications)
            case .error: break
            }
        }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == [])
        try await elsewhere { $0.name = "z" }
        try await elsewhere { $0.hounds[0].name = "Max" }
        #expect(await iterator.next() == [0])
        token.invalidate()
        #expect(visits[0].description.contains(#"names = ["Max"]"#) || visits[0].description.contains("names"))
    }

    @Test func `a key path that the view does not have ends the program`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let realm = try Realm(configuration: TemporaryFolder().configuration([Kennel.self]))
            let kennel = try realm.write { realm.create(Kennel.self, value: ["_id": 1]) }
            _ = Visit(projecting: kennel).observe(keyPaths: ["nmae"]) { _ in }
        }
        #expect(message(result).contains("Invalid property name: property 'nmae' not found in object of type 'Visit'"))
    }
}
