import Dispatch
import Foundation
import SluiceSDK
import TestSupport
import Testing

/// Opening a Realm while something else happens to its file.
@Suite struct OpeningRaceTests {
    let folder: TemporaryFolder
    let configuration: Realm.Configuration

    init() throws {
        folder = try TemporaryFolder()
        configuration = folder.configuration([Resident.self, Horse.self])
    }

    private final class Place: @unchecked Sendable {  // Sendable because: only its queue uses what is in it.
        let queue = DispatchQueue(label: "place")
        var realm: Realm?
    }

    @Test(.timeLimit(.minutes(1))) func `a Realm that opens during a commit moves on to it by itself`() async throws {
        let writer = Place()
        try writer.queue.sync { [configuration] in writer.realm = try Realm(configuration: configuration, queue: writer.queue) }
        for round in 1...400 {
            let place = Place()
            let both = DispatchGroup()
            writer.queue.async(group: both) {
                try? writer.realm?.write { _ = writer.realm?.create(Horse.self, value: ["_id": round]) }
            }
            place.queue.async(group: both) { [configuration] in
                // Somewhere in the time that a commit takes.
                var spins = round * 37 % 4_000
                while spins > 0 { spins -= 1 }
                place.realm = try? Realm(configuration: configuration, queue: place.queue)
            }
            await withCheckedContinuation { done in both.notify(queue: .global()) { done.resume() } }
            let isShown = try await eventually(every: .milliseconds(1)) {
                place.queue.sync { place.realm?.objects(Horse.self).count } == round
            }
            try #require(isShown, "it does not show horse \(round)")
            place.queue.sync { place.realm = nil }
        }
        writer.queue.sync { writer.realm = nil }
    }
}
