import Foundation
import SluiceSDK
import TestSupport
import Testing

private class Moment: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted(indexed: true) var at: Date
}

/// Times are stored as seconds and nanoseconds; what comes back equals what was stored.
@Suite struct DateTests {
    @Test(arguments: seeds(3)) func `random dates come back equal, keep their order, and are found`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let folder = try TemporaryFolder()
        let configuration = folder.configuration([Moment.self])
        var dates = [-1.0, -0.5, 0, 0.1, 0.000_000_001, 1e9, -1e9].map { Date(timeIntervalSince1970: $0) }
        // Within some centuries, where a Double is finer than a nanosecond or about as fine.
        for _ in 0..<500 {
            let seconds = Double(random.below(20_000_000_000)) - 10_000_000_000
            dates.append(Date(timeIntervalSinceReferenceDate: seconds + Double(random.below(1_000_000)) / 1_000_000))
        }
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write { for (id, date) in dates.enumerated() { realm.create(Moment.self, value: ["_id": id, "at": date]) } }
        }
        let moments = try Realm(configuration: configuration).objects(Moment.self)
        for (moment, date) in zip(moments, dates) { #expect(moment.at == date, "seed \(seed): \(date.timeIntervalSinceReferenceDate)") }
        #expect(moments.sorted(byKeyPath: "at").map(\.at) == dates.sorted(), "seed \(seed)")
        for date in dates.prefix(50) { #expect(moments.where { $0.at == date }.first?.at == date, "seed \(seed)") }
        #expect(moments.max(of: \.at) == dates.max() && moments.min(of: \.at) == dates.min(), "seed \(seed)")
    }

    @Test func `the ends of time are kept`() throws {
        let realm = try Realm(configuration: TemporaryFolder().configuration([Moment.self]))
        let dates: [Date] = [.distantPast, .distantFuture]
        try realm.write { for (id, date) in dates.enumerated() { realm.create(Moment.self, value: ["_id": id, "at": date]) } }
        #expect(realm.objects(Moment.self).map(\.at) == dates)
    }
}
