import Dispatch
import Foundation
import RealmSwift
import Synchronization

/// A typical class of an app: a key, texts, numbers, an index.
final class Reading: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var sensor: String
    @Persisted(indexed: true) var station: Int
    @Persisted var value: Double
    @Persisted var note: String?

    convenience init(number: Int) {
        self.init()
        _id = number
        sensor = "sensor \(number % 1_000)"
        station = number % 10_000
        value = Double(number) / 4
        note = number % 4 == 0 ? "calibrated" : nil
    }
}

/// The target of the links in `ProbeReading`.
final class Probe: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var name: String
    @Persisted var isOn: Bool
}

/// A reading with a link. Ten readings share one probe.
final class ProbeReading: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var probe: Probe?
}

/// Measures the device's database beside prepared SQLite statements for the same work on the same table. Both run in turn in one process.
/// Needs no server.
struct ObjectStoreBenchmark {
    let rounds: Int
    let count: Int

    init(rounds: Int, scale: Double) {
        self.rounds = rounds
        count = max(Int(1_000_000 * scale), 1_000)
    }

    func run(_ report: inout Report) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var inserts: [(ours: Double, theirs: Double)] = []
        for round in 0..<max(rounds / 2, 1) {
            let path = folder.appendingPathComponent("\(round)")
            inserts.append((try insert(into: path), try SQLiteReference(path.path + ".sqlite").insert(count)))
        }
        let path = folder.appendingPathComponent("0")
        let (ours, theirs) = (inserts.map(\.ours).median, inserts.map(\.theirs).median)
        report.add(
            "insert of \(Double(count).short) objects in one transaction", ours: "\((1 / ours).short)/s",
            reference: "prepared INSERT \((1 / theirs).short)/s",
            ratio: "\((theirs / ours * 100).text()) %", target: "≥ 60 %")
        let realm = try Realm(configuration: configuration(path))
        let reference = try SQLiteReference(path.path + ".sqlite")
        try reads(realm, reference, &report)
        places(realm, &report)
        try lists(Realm(configuration: listConfiguration(folder.appendingPathComponent("lists"))), of: "local", &report)
        try lists(syncedLists(folder.appendingPathComponent("synced")), of: "synced", &report)
        try queries(realm, reference, &report)
        try notification(realm, &report)
        try linkedNotifications(Realm(configuration: linkedConfiguration(folder.appendingPathComponent("linked"))), &report)
    }

    private func configuration(_ path: URL) -> Realm.Configuration {
        Realm.Configuration(fileURL: path, objectTypes: [Reading.self])
    }

    /// - Returns: Seconds per object.
    private func insert(into path: URL) throws -> Double {
        let realm = try Realm(configuration: configuration(path))
        let begin = seconds()
        try realm.write {
            for number in 0..<count { realm.add(Reading(number: number)) }
        }
        return (seconds() - begin) / Double(count)
    }

    // MARK: Reading

    private func reads(_ realm: Realm, _ reference: SQLiteReference, _ report: inout Report) throws {
        let held = Array(realm.objects(Reading.self).prefix(1_024))
        let again = median {
            var sum = 0.0
            for _ in 0..<100 { for reading in held { sum += reading.value } }
            return sum
        }
        report.add(
            "read of a property of an object at hand", ours: "\((again * 1e9 / 102_400).text(1)) ns", reference: "–", ratio: "–",
            target: "nanoseconds")
        let all = median {
            var sum = 0.0
            for reading in realm.objects(Reading.self) { sum += reading.value }
            return sum
        }
        let plain = try median { try reference.sum() }
        let n = Double(count)
        report.add(
            "loop over \(n.short) objects that reads one property", ours: "\((all * 1e9 / n).text()) ns each",
            reference: "SELECT, stepped \((plain * 1e9 / n).text()) ns", ratio: "\((all / plain).text(1)) ×", target: "≤ 150 ns")
        let sum = median { realm.objects(Reading.self).where { $0.value >= 0 }.count }
        report.add(
            "count of a condition that all meet", ours: "\((sum * 1e9 / n).text()) ns a row", reference: "–", ratio: "–", target: "–")
    }

    private func queries(_ realm: Realm, _ reference: SQLiteReference, _ report: inout Report) throws {
        var station = 0
        let ours = median {
            var found = 0
            for _ in 0..<200 {
                station = (station + 7) % 10_000
                found += realm.objects(Reading.self).where { $0.station == station }.count
            }
            return found
        }
        let theirs = try median {
            var found = 0
            for _ in 0..<200 {
                station = (station + 7) % 10_000
                found += try reference.keys(station: station)
            }
            return found
        }
        report.add(
            "`where` on an indexed property, \(count / 10_000) of \(Double(count).short)", ours: "\((ours * 1e6 / 200).text(1)) µs",
            reference: "SELECT \((theirs * 1e6 / 200).text(1)) µs", ratio: "\((ours / theirs).text(1)) ×", target: "≤ 2 ×")
    }

    // MARK: Notifications

    /// Measures from one change in a result of all objects, including its commit, to the notification block.
    private func notification(_ realm: Realm, _ report: inout Report) throws {
        let queue = DispatchQueue(label: "bench.notifications")
        let arrivals = Arrivals()
        let token = realm.objects(Reading.self).observe(on: queue) { change in
            if case .update(_, _, _, let modifications) = change { arrivals.put(modifications.count) } else { arrivals.put(0) }
        }
        guard arrivals.wait() != nil else { throw BenchFailure("No initial notification came within a minute.") }
        var samples: [Double] = []
        for round in 0..<max(rounds * 4, 8) {
            let key = (round * 7_919) % count
            var begin = 0.0
            try realm.write {
                guard let reading = realm.object(ofType: Reading.self, forPrimaryKey: key) else { return }
                begin = seconds()
                reading.value += 1
            }
            guard arrivals.wait() == 1 else { throw BenchFailure("The notification has not one modification.") }
            samples.append(seconds() - begin)
        }
        token.invalidate()
        report.add(
            "one change to the notification, \(Double(count).short) objects in the result",
            ours: "\((samples.median * 1e3).text(3)) ms", reference: "–", ratio: "–", target: "≤ 1 ms")
    }

    private func linkedConfiguration(_ path: URL) -> Realm.Configuration {
        Realm.Configuration(fileURL: path, objectTypes: [ProbeReading.self, Probe.self])
    }

    /// Measures one change of an object that ten objects of the result link to. It affects ten objects in a result filtered through the
    /// link and in a sorted one. In a result of distinct names it affects one.
    private func linkedNotifications(_ realm: Realm, _ report: inout Report) throws {
        let probes = count / 10
        try realm.write {
            let all = (0..<probes).map { number in
                realm.create(Probe.self, value: ["_id": number, "name": "probe \(number % 1_000)", "isOn": true])
            }
            for number in 0..<count { realm.create(ProbeReading.self, value: ["_id": number, "probe": all[number % probes]]) }
        }
        let readings = realm.objects(ProbeReading.self)
        let n = Double(count).short
        let filtered = try linked(realm, readings.where { $0.probe.isOn == true }, expected: 10) { $0.isOn.toggle() }
        report.add(
            "one change of a linked object to the notification, \(n) objects in a result filtered through the link",
            ours: "\((filtered * 1e3).text(3)) ms", reference: "–", ratio: "–", target: "≤ 1 ms")
        let sorted = try linked(realm, readings.sorted(byKeyPath: "probe.name"), expected: 10) { $0.name += "." }
        report.add(
            "the same in a result sorted through the link", ours: "\((sorted * 1e3).text(3)) ms", reference: "–", ratio: "–", target: "–")
        let distinct = try linked(realm, readings.distinct(by: ["probe.name"]), expected: nil) { $0.name += "." }
        report.add(
            "the same in one made distinct by a value behind the link", ours: "\((distinct * 1e3).text(3)) ms", reference: "–", ratio: "–",
            target: "–")
    }

    /// - Parameter expected: The number of elements that change each time. Nil for any.
    /// - Returns: Seconds from the change, including its commit, to the block.
    private func linked(
        _ realm: Realm, _ results: Results<ProbeReading>, expected: Int?, _ change: (Probe) -> Void
    ) throws -> Double {
        let queue = DispatchQueue(label: "bench.notifications")
        let arrivals = Arrivals()
        let token = results.observe(on: queue) { change in
            guard case .update(_, let deletions, let insertions, let modifications) = change else { return arrivals.put(0) }
            arrivals.put(max(deletions.count, insertions.count, modifications.count))
        }
        guard arrivals.wait() != nil else { throw BenchFailure("No initial notification came within a minute.") }
        var samples: [Double] = []
        for round in 0..<max(rounds * 4, 8) {
            var begin = 0.0
            try realm.write {
                // Each probe is changed twice: off and on again.
                guard let probe = realm.object(ofType: Probe.self, forPrimaryKey: (round / 2 * 7_919) % (count / 10)) else { return }
                begin = seconds()
                change(probe)
            }
            guard let told = arrivals.wait(), told == expected ?? told else { throw BenchFailure("The notification tells something else.") }
            samples.append(seconds() - begin)
        }
        token.invalidate()
        return samples.median
    }

    /// Returns the median of the rounds in seconds, after a warm-up. The result prevents the optimizer from removing the work.
    func median<R: Equatable>(_ body: () throws -> R) rethrows -> Double {
        let expected = try body()
        var samples: [Double] = []
        for _ in 0..<rounds {
            let begin = seconds()
            let result = try body()
            samples.append(seconds() - begin)
            if result is Double, result != expected { say("  the result changed between rounds: \(result), \(expected)") }
        }
        return samples.median
    }
}

/// Passes the counts of notifications to the waiting thread.
private final class Arrivals: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let counts = Mutex<[Int]>([])

    func put(_ count: Int) {
        counts.withLock { $0.append(count) }
        semaphore.signal()
    }

    func wait() -> Int? { semaphore.wait(timeout: .now() + 60) == .success ? counts.withLock { $0.isEmpty ? nil : $0.removeFirst() } : nil }
}
