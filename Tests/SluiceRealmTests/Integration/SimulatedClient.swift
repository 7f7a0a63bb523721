import RealmTestSupport
import SluiceCore

@testable import SluiceRealm

/// A Realm client's file: commits, uploads in their original form, and incoming entries transformed over pending commits.
///
/// It fails where a client stops syncing or ends: on a change of an object that it lacks, and on a wrong index or size.
struct SimulatedClient: Sendable {
    private struct Commit: Sendable {
        var version: UInt64
        var upload: RealmUploadedChangeset
        /// The form after the entries that came since.
        var rebased: [StampedInstruction]
    }

    let file: UInt64
    private(set) var model: RealmModel
    private var commits: [Commit] = []
    private var sent: UInt64 = 0
    private(set) var version: UInt64 = 0
    /// The last server version that is integrated.
    private(set) var base: UInt64 = 0

    init(_ file: UInt64, _ schema: Schema) {
        self.file = file
        model = RealmModel(schema)
    }

    var objects: [ObjectKey: [String: Value]] { model.objects }
    var hasUploads: Bool { commits.contains { $0.version > sent } }

    mutating func commit(_ instructions: [RealmInstruction], at time: UInt64) throws {
        try model.apply(instructions)
        version += 1
        let upload = RealmUploadedChangeset(file: file, clientVersion: version, base: base, time: time, instructions: instructions)
        let stamp = RealmStamp(time, file)
        commits.append(
            Commit(version: version, upload: upload, rebased: instructions.map { StampedInstruction(instruction: $0, stamp: stamp) }))
    }

    /// Returns the next changeset to upload.
    mutating func nextUpload() -> RealmUploadedChangeset? {
        guard let commit = commits.first(where: { $0.version > sent }) else { return nil }
        sent = commit.version
        return commit.upload
    }

    mutating func receive(_ delivery: RealmDelivery) throws {
        commits.removeAll { $0.version <= delivery.clientVersion }
        var incoming = delivery.instructions.map { StampedInstruction(instruction: $0, stamp: delivery.stamp) }
        for index in commits.indices {
            incoming = PendingTransform.rebase(incoming, over: &commits[index].rebased)
                .map { StampedInstruction(instruction: $0, stamp: delivery.stamp) }
        }
        try model.apply(incoming.map(\.instruction))
        base = delivery.serverVersion
    }
}
