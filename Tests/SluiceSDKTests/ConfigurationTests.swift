import Foundation
import SluiceSDK
import Synchronization
import Testing

@Suite struct ConfigurationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func configuration(_ name: String = "local") -> Realm.Configuration {
        Realm.Configuration(fileURL: folder.url.appendingPathComponent("\(name).realm"), objectTypes: [Horse.self])
    }

    private func code(_ body: () throws -> Void) -> Realm.Error.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? Realm.Error)?.code
        }
    }

    @Test func `a file that is open is not deleted`() throws {
        let configuration = configuration()
        #expect(!Realm.fileExists(for: configuration))
        #expect(try !Realm.deleteFiles(for: configuration))
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write { _ = realm.create(Horse.self, value: ["_id": 1]) }
            #expect(Realm.fileExists(for: configuration))
            #expect(code { try Realm.deleteFiles(for: configuration) } == .alreadyOpen)
        }
        #expect(try Realm.deleteFiles(for: configuration))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
        #expect(try Realm(configuration: configuration).isEmpty)
    }

    private static func open(_ configuration: Realm.Configuration) throws -> Realm { try Realm(configuration: configuration) }

    @Test func `a file that another process has open is not deleted`() async throws {
        let configuration = configuration()
        let path = try #require(configuration.fileURL).path
        let realm = try Self.open(configuration)
        try realm.write { _ = realm.create(Horse.self, value: ["_id": 1]) }
        await #expect(processExitsWith: .success) { [path = path as String] in
            let error = #expect(throws: Realm.Error.self) {
                try Realm.deleteFiles(for: Realm.Configuration(fileURL: URL(fileURLWithPath: path), objectTypes: [Horse.self]))
            }
            #expect(error?.code == .alreadyOpen && error?.localizedDescription.contains("another process") == true)
        }
        withExtendedLifetime(realm) {}
        #expect(try Self.open(configuration).objects(Horse.self).count == 1)
    }

    @Test func `a file begins as a copy of its seed`() throws {
        do {
            let realm = try Realm(configuration: configuration("seed"))
            try realm.write { _ = realm.create(Horse.self, value: ["_id": 1]) }
        }
        var configuration = configuration()
        configuration.seedFilePath = self.configuration("seed").fileURL
        do {
            let realm = try Realm(configuration: configuration)
            #expect(realm.objects(Horse.self).map(\._id) == [1])
            try realm.write { realm.deleteAll() }
        }
        #expect(try Realm(configuration: configuration).isEmpty)
        configuration.fileURL = folder.url.appendingPathComponent("other.realm")
        configuration.seedFilePath = folder.url.appendingPathComponent("never.realm")
        #expect(code { _ = try Realm(configuration: configuration) } == .fileNotFound)
    }

    @Test func `Realms in memory with one name are one, and leave nothing behind`() async throws {
        let memory = Realm.Configuration(inMemoryIdentifier: "stable/\(folder.url.lastPathComponent)", objectTypes: [Horse.self])
        #expect(memory.fileURL == nil)
        do {
            let realm = try Realm(configuration: memory, queue: nil)
            try realm.write { _ = realm.create(Horse.self, value: ["_id": 1]) }
            #expect(try await onThread { try Realm(configuration: memory).objects(Horse.self).map(\._id) } == [1])
            #expect(Realm.fileExists(for: memory))
        }
        #expect(!Realm.fileExists(for: memory))
        #expect(try Realm(configuration: memory, queue: nil).isEmpty)
        var other = memory
        other.fileURL = folder.url.appendingPathComponent("local.realm")
        #expect(other.inMemoryIdentifier == nil)
    }

    @Test func `a file is read without being written`() throws {
        var readOnly = configuration()
        readOnly.readOnly = true
        #expect(code { _ = try Realm(configuration: readOnly) } == .fileNotFound)
        do {
            let realm = try Realm(configuration: configuration())
            try realm.write { _ = realm.create(Horse.self, value: ["_id": 1]) }
            #expect(code { _ = try Realm(configuration: readOnly) } == .alreadyOpen)
        }
        #expect(try Realm(configuration: readOnly).objects(Horse.self).map(\._id) == [1])
        readOnly.schemaVersion = 2
        #expect(code { _ = try Realm(configuration: readOnly) } == .schemaMismatch)
        readOnly.schemaVersion = 0
        readOnly.objectTypes = [Horse.self, Crowd.self]
        #expect(code { _ = try Realm(configuration: readOnly) } == .schemaMismatch)
    }

    @Test func `a copy is a file of its own`() throws {
        let copy = configuration("copy")
        let realm = try Realm(configuration: configuration())
        try realm.write { _ = realm.create(Horse.self, value: ["_id": 1]) }
        try realm.writeCopy(configuration: copy)
        #expect(code { try realm.writeCopy(toFile: try #require(copy.fileURL)) } == .fileExists)
        #expect(code { try realm.writeCopy(toFile: folder.url, encryptionKey: Data(count: 64)) } == .invalidInput)
        let other = try Realm(configuration: copy)
        try other.write { other.deleteAll() }
        #expect(realm.objects(Horse.self).map(\._id) == [1] && other.isEmpty)
    }

    @Test func `a file is compacted when the app says so`() throws {
        let asked = Mutex<[Int]>([])
        var configuration = configuration()
        configuration.shouldCompactOnLaunch = { total, used in
            asked.withLock { $0 += [total, used] }
            return used < total
        }
        func size() throws -> Int {
            let path = try #require(configuration.fileURL).path
            return try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        }
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write {
                for id in 0..<2_000 { _ = realm.create(Horse.self, value: ["_id": id, "name": String(repeating: "x", count: 500)]) }
            }
            try realm.write { realm.deleteAll() }
        }
        #expect(asked.withLock { $0.isEmpty })
        let realm = try Realm(configuration: configuration)
        let sizes = asked.withLock { $0 }
        #expect(sizes.count == 2 && sizes[0] > 1_000_000 && sizes[1] < 200_000)
        #expect(try size() < 200_000 && realm.isEmpty)
    }

    @Test func `what cannot be is refused with the way out`() throws {
        var configuration = configuration()
        configuration.encryptionKey = Data(count: 64)
        let error = #expect(throws: Realm.Error.self) { try Realm(configuration: configuration) }
        #expect(error?.code == .invalidInput && error?.message.contains("Open it without encryptionKey") == true)
        configuration.encryptionKey = nil
        configuration.fileURL = URL(fileURLWithPath: "/proc/none/local.realm")
        #expect(code { _ = try Realm(configuration: configuration) } == .fileAccess)
        configuration.fileURL = folder.url.appendingPathComponent("text.realm")
        try Data("this is no database, but long enough to be looked at as if it were one".utf8).write(
            to: try #require(configuration.fileURL))
        #expect(code { _ = try Realm(configuration: configuration) } == .invalidDatabase)
        #expect(code { _ = try schemaVersionAtURL(folder.url.appendingPathComponent("never.realm")) } == .fileNotFound)
    }
}
