import PortsTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

@Suite struct `The store of client files in memory` {
    @Test(arguments: RealmStoreScenario.all) func `does as the port says`(scenario: RealmStoreScenario) async throws {
        #expect(try await scenario.findings(of: MemoryRealmClients(bounds: RealmStoreScenario.bounds)) == [])
    }

    /// A session stores what its stream does, so that the next session continues with the same stream.
    @Test(arguments: seeds(20)) func `holds what a session's stream holds`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let bounds = ClientStreamBounds(entries: 30, bytes: 1 << 20, age: 1_000)
        let store = MemoryRealmClients(bounds: bounds)
        let file = try await store.allot(user: "ann")
        var client = try await store.open(file, user: "ann")
        var stream = ClientStream(client, bounds: bounds)
        var version: UInt64 = 0
        for step in 0..<200 {
            let session = client.session
            let past = version - min(version, UInt64(random.below(4)))
            switch random.below(10) {
            case 0..<5:
                version += UInt64(1 + random.below(3))
                let entry = RealmStoreScenario.entry(
                    version, client: stream.record.upload.clientVersion, at: Int64(step), undoes: random.chance(20))
                _ = try stream.append(entry, now: Int64(step))
                try await store.append([entry], to: session)
            case 5, 6:
                let progress = RealmUploadProgress(clientVersion: UInt64(step), serverVersion: past)
                stream.integrated(progress)
                try await store.record(progress, of: session)
            case 7:
                stream.beginBootstrap(queryVersion: UInt64(step))
                try await store.beginBootstrap(queryVersion: UInt64(step), of: session)
            case 8:
                stream.cancelBootstrap()
                try await store.cancelBootstrap(of: session)
            default:
                let view = RealmClientRecord.View(queryVersion: UInt64(step), serverVersion: past)
                stream.completeBootstrap(queryVersion: view.queryVersion, serverVersion: view.serverVersion)
                try await store.completeBootstrap(view, of: session)
            }
            if random.chance(20) {
                client = try await store.open(file, user: "ann")
                #expect(ClientStream(client, bounds: bounds) == stream, "seed \(seed), step \(step)")
            }
        }
    }
}
