import SluiceCore
import SluiceQuery
import SluiceReplica
import Synchronization
import TestSupport
import Testing

@Suite struct LiveQueryTests {
    @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6, 7, 8])
    func `applying a difference to the old list gives the new one`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let old = Array((0..<Int64(12)).shuffled(using: &random).prefix(Int.random(in: 0...12, using: &random)))
            let new = Array((0..<Int64(12)).shuffled(using: &random).prefix(Int.random(in: 0...12, using: &random)))
            let modified = Set((0..<Int64(12)).filter { _ in Bool.random(using: &random) })
            let diff = CollectionDiff(from: old.map { .int($0) }, to: new.map { .int($0) }) { value in
                modified.contains { .int($0) == value }
            }
            var list = old
            for index in diff.deletions.reversed() { list.remove(at: index) }
            for index in diff.insertions { list.insert(new[index], at: index) }
            #expect(list == new, "seed \(seed): \(old) to \(new)")
            let kept = new.indices.filter { !diff.insertions.contains($0) }
            #expect(diff.modifications == kept.filter { modified.contains(new[$0]) }, "seed \(seed)")
        }
    }

    /// The naive oracle: a dictionary, filtered and sorted anew each time.
    @Test(arguments: [UInt64(11), 12, 13, 14])
    func `notifications turn one result into the next under random writes`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let folder = try TemporaryFolder()
        let replica = try await Replica.make(folder)
        let changes = Mutex<ReplicaChange?>(nil)
        let observer = replica.observeChanges { change in
            changes.withLock { waiting in
                if waiting == nil { waiting = change } else { waiting?.merge(change) }
            }
        }
        defer { replica.removeObserver(observer) }
        let query = try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: "priority > 3 SORT(priority DESC, _id ASC)")
        let reader = try replica.makeReader()
        var live = try LiveQuery(query, on: reader.store)
        var oracle: [Int: Int] = [:]
        var shown: [Value] = []
        for _ in 0..<60 {
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                try mutate(replica, &oracle, &random)
            }
            try reader.refresh()
            let change = changes.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            let before = shown
            if let change, let diff = try live.update(change, on: reader.store) {
                for index in diff.deletions.reversed() { shown.remove(at: index) }
                for index in diff.insertions { shown.insert(live.keys[index], at: index) }
            }
            let expected = oracle.filter { $0.value > 3 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            #expect(shown == expected.map { .int(Int64($0.key)) }, "seed \(seed), before \(before)")
            #expect(live.keys == shown, "seed \(seed)")
        }
    }

    private func mutate(_ replica: Replica, _ oracle: inout [Int: Int], _ random: inout SplitMix64) throws {
        let transaction = try replica.beginWrite()
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let id = Int.random(in: 0..<15, using: &random)
            let priority = Int.random(in: 0..<8, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                try transaction.delete(type: 0, key: .int(Int64(id)))
                oracle[id] = nil
            case 1:
                try transaction.create(type: 0, key: .int(Int64(id)), values: ["priority": .int(Int64(priority))])
                oracle[id] = priority
            default:
                try transaction.set(type: 0, key: .int(Int64(id)), property: 2, .int(Int64(priority)))
                if oracle[id] != nil { oracle[id] = priority }
            }
        }
        try transaction.commit()
    }
}
