import Foundation
import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import Testing

/// What another user of the device, or its finder, can read of the files.
@Suite struct `The files of a replica` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// The names of the files, with their permission bits.
    private func modes() throws -> [String: Int] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return try Dictionary(
            uniqueKeysWithValues: names.map { name in
                let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder.path)/\(name)")
                return (name, attributes[.posixPermissions] as? Int ?? 0)
            })
    }

    /// The names of the files that contain a text.
    private func files(with text: String) throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return try names.filter { name in
            try Data(contentsOf: URL(filePath: "\(folder.path)/\(name)")).range(of: Data(text.utf8)) != nil
        }
    }

    private static func secret(_ id: Int) -> String { "secret-\(id)-" + String(repeating: "x", count: id % 3 == 0 ? 9_000 : 40) }

    @Test func `can be read and written by the user of the process alone`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "one")]))
        try replica.rename(1, "mine")
        try replica.writeCopy(to: "\(folder.path)/copy.realm")
        let modes = try modes()
        #expect(modes.count >= 4, "\(modes.keys)")
        #expect(modes.values.allSatisfy { $0 == 0o600 }, "\(modes)")
    }

    @Test func `have nothing left of objects that their user may no longer see`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: (1...60).map { todo($0, Self.secret($0)) }))
        #expect(try !files(with: "secret-7-").isEmpty)
        var lost = batch(20)
        for id in 1...59 { lost.changes.append(ReplicaRowChange(type: 0, event: .lostPermission, key: .int(Int64(id)))) }
        lost.commits[0].changes = lost.changes.indices
        try await replica.apply(lost)
        #expect(try replica.titles().count == 1)
        for id in 1...59 { #expect(try files(with: "secret-\(id)-") == [], "\(id)") }
        #expect(try !files(with: "secret-60-").isEmpty)
    }

    @Test func `have nothing left of objects that a bootstrap takes away`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: (1...60).map { todo($0, Self.secret($0)) }))
        try await replica.beginBootstrap(version: 1)
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        #expect(try replica.titles().isEmpty)
        for id in 1...60 { #expect(try files(with: "secret-\(id)-") == [], "\(id)") }
    }
}
