import Dispatch
import Foundation
import SluiceSDK
import Testing

/// The executor that a Realm is confined to, and the transfer of objects between Realms.
@Suite struct RealmConfinementTests {
    let folder: TemporaryFolder
    let configuration: Realm.Configuration

    init() throws {
        folder = try TemporaryFolder()
        configuration = folder.configuration([Resident.self, Horse.self])
    }

    @MainActor @Test func `Realms that are opened at one place are one`() throws {
        let (first, second) = (try Realm(configuration: configuration), try Realm(configuration: configuration))
        #expect(first == second)
        let horse = try first.write { first.create(Horse.self, value: ["_id": 1]) }
        try second.write {
            // Opening waits for no writer, least of all for this one.
            try Realm(configuration: configuration).delete(horse)
        }
        #expect(first.isEmpty)
        let queue = DispatchQueue(label: "place")
        #expect(try queue.sync { try Realm(configuration: configuration, queue: queue) } != first)
        #expect(
            try queue.sync { try Realm(configuration: configuration, queue: queue) == Realm(configuration: configuration, queue: queue) })
    }

    @Test func `a reference is resolved in another Realm, at a state that has it`() async throws {
        let queue = DispatchQueue(label: "place")
        let configuration = configuration
        let there = try queue.sync { Sent(try Realm(configuration: configuration, queue: queue)) }
        let realm = try await Realm(configuration: configuration)
        let resident = try realm.write { realm.create(Resident.self, value: ["_id": 1, "home": ["street": "Elm"], "name": "Jo"]) }
        let home = ThreadSafeReference(to: try #require(resident.home))
        let object = ThreadSafeReference(to: resident)
        let results = ThreadSafeReference(to: realm.objects(Resident.self).where { $0.name == "Jo" })
        let list = ThreadSafeReference(to: resident.others)
        queue.sync {
            #expect(there.content.resolve(object)?.name == "Jo" && there.content.resolve(home)?.street == "Elm")
            #expect(there.content.resolve(results)?.count == 1 && there.content.resolve(list)?.isEmpty == true)
        }
        #expect(object.isInvalidated && home.isInvalidated)
        let gone = ThreadSafeReference(to: resident)
        try realm.write { realm.delete(resident) }
        queue.sync {
            there.content.refresh()
            #expect(there.content.resolve(gone) == nil)
        }
    }

    private final class Holder: @unchecked Sendable {  // Sendable because: its only variable is made for any thread.
        @ThreadSafe var horse: Horse?
    }

    @Test func `a thread-safe variable is the object of whoever reads it`() async throws {
        let holder = Holder()
        #expect(holder.horse == nil)
        let configuration = configuration
        try await onThread {
            let realm = try Realm(configuration: configuration)
            holder.horse = try realm.write { realm.create(Horse.self, value: ["_id": 1, "name": "a"]) }
        }
        try await onThread {
            let horse = try #require(holder.horse)
            #expect(horse.name == "a" && horse.realm == holder.horse?.realm)
            try horse.realm?.write { horse.name = "b" }
        }
        #expect(holder.horse?.name == "b")
        try await onThread {
            let realm = try Realm(configuration: configuration)
            try realm.write { realm.deleteAll() }
        }
        #expect(holder.horse == nil)
    }

    @Test func `what was got before an invalidation is of no use after it`() throws {
        let realm = try Realm(configuration: configuration)
        let horse = try realm.write { realm.create(Horse.self, value: ["_id": 1, "name": "a"]) }
        let results = realm.objects(Horse.self)
        realm.beginWrite()
        horse.name = "b"
        realm.invalidate()
        #expect(horse.isInvalidated && results.isInvalidated && !realm.isInWriteTransaction)
        #expect(realm.objects(Horse.self).first?.name == "a")
    }

    @Test func `use from another thread, queue or actor ends the program`() async {
        let thread = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let configuration = try TemporaryFolder().configuration([Horse.self])
            let realm = try await onThread { Sent(try Realm(configuration: configuration)) }
            _ = realm.content.objects(Horse.self).count
        }
        #expect(message(thread).contains("Realm accessed from incorrect thread."))
        let queue = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let queue = DispatchQueue(label: "place")
            try Realm(configuration: TemporaryFolder().configuration([Horse.self]), queue: queue).beginWrite()
        }
        #expect(message(queue).contains("Realm accessed from incorrect thread."))
        let main = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let configuration = try TemporaryFolder().configuration([Horse.self])
            let realm = await MainActor.run { Sent(Result { try Realm(configuration: configuration) }) }
            try realm.content.get().refresh()
        }
        #expect(message(main).contains("Realm accessed from incorrect thread."))
        let actor = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let configuration = try TemporaryFolder().configuration([Horse.self])
            let realm = Sent(try await Realm(configuration: configuration, actor: Place()))
            _ = realm.content.objects(Horse.self).count
        }
        // The words of Swift's runtime, which knows by itself.
        #expect(message(actor).contains("Incorrect actor executor assumption"))
    }

    private actor Place {}

    @Test func `misuse of references ends the program`() async {
        let twice = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let realm = try Realm(configuration: TemporaryFolder().configuration([Horse.self]))
            let reference = ThreadSafeReference(to: realm.objects(Horse.self))
            for _ in 0..<2 { _ = realm.resolve(reference) }
        }
        #expect(message(twice).contains("Can only resolve a thread safe reference once."))
        let unmanaged = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = ThreadSafeReference(to: Horse())
        }
        #expect(message(unmanaged).contains("Cannot construct reference to unmanaged object"))
        let other = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let (here, there) = (try TemporaryFolder(), try TemporaryFolder())
            let reference = ThreadSafeReference(to: try Realm(configuration: here.configuration([Horse.self])).objects(Horse.self))
            _ = try Realm(configuration: there.configuration([Horse.self])).resolve(reference)
        }
        #expect(message(other).contains("Cannot resolve thread safe reference in Realm with different configuration"))
    }
}
