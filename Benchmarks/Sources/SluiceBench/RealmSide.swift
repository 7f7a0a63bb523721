import SluiceCore
import SluiceRealm
import SluiceWire

/// The clients of one gateway that speak one of its two protocols. The same load generator opens the same WebSockets for both.
struct RealmSide {
    let isRealm: Bool
    let gateway: RunningGateway
    /// The access token of the user that has fewer than `manySessions`.
    let few: String
    /// The access token of the user whose sessions are opened together.
    let many: String

    private static let manySessions = 500

    var name: String { isRealm ? "Realm's protocol" : "Sluice's" }

    /// Opens sessions, and returns when each has received its bootstrap.
    /// - Parameter queries: The query of each session, repeated if there are fewer.
    @MainActor
    func open(
        _ setup: Setup, _ queries: [String], uploads: [[UInt8]] = [], batch: Int = 1, connections: Int, isTimed: Bool = false
    ) async throws -> SocketLoad {
        let token = connections < Self.manySessions ? few : many
        let path =
            isRealm
            ? "/api/client/v2.0/app/\(gateway.appID)/realm-sync?baas_at=\(token)" : WireProtocol.path(app: gateway.appID)
        let hellos = try queries.map { isRealm ? Array("{\"Item\":\"\($0)\"}".utf8) : try SocketLoad.hello(token, queries: [$0]) }
        return try await SocketLoad(
            setup, port: gateway.port, path: path, hellos: hellos, uploads: uploads, batch: batch, connections: connections,
            isTimed: isTimed)
    }

    /// Returns the records of one client's uploads. Each changeset creates an object.
    /// - Parameters:
    ///   - count: The number of records.
    ///   - batch: The changesets in each.
    ///   - store: The store of the objects.
    ///   - schema: The class with the property numbers that the gateway assigned.
    @MainActor
    func uploads(_ count: Int, batch: Int, store: Int, from firstKey: Int, _ schema: Schema) throws -> [[UInt8]] {
        try (0..<count).map { record in
            let changesets = (record * batch..<(record + 1) * batch).map {
                UploadBenchmark.changeset(UInt64($0 + 1), store, firstKey + $0)
            }
            return try isRealm ? Self.record(changesets) : UploadBenchmark.frame(changesets, schema)
        }
    }

    /// Returns changesets in Realm's encoding, each behind four bytes of length.
    private static func record(_ changesets: [Changeset]) throws -> [UInt8] {
        try changesets.flatMap { changeset in
            var instructions: [RealmInstruction] = []
            for change in changeset.changes {
                instructions.append(.createObject(change.object))
                for (name, value) in change.values.sorted(by: { $0.key < $1.key }) {
                    instructions.append(.update(RealmPath(change.object, name), .value(value)))
                }
            }
            let bytes = try RealmChangesetWriter.bytes(of: instructions)
            return withUnsafeBytes(of: UInt32(bytes.count).littleEndian, Array.init) + bytes
        }
    }
}
