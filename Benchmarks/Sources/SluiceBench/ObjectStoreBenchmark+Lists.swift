import Foundation
import RealmSwift

/// An object with a list of numbers.
final class Tally: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var values: List<Int>
}

/// Edits of long lists and access to far elements of results, beside realm-core 14.14 at -O2 with the same work and durability.
extension ObjectStoreBenchmark {
    private static let edits = 10_000

    func listConfiguration(_ path: URL) -> Realm.Configuration { Realm.Configuration(fileURL: path, objectTypes: [Tally.self]) }

    /// Opens a synced Realm without a server. Its uploads wait.
    func syncedLists(_ folder: URL) throws -> Realm {
        let users = folder.appendingPathComponent("lists")
        try FileManager.default.createDirectory(at: users, withIntermediateDirectories: true)
        let stored = #"{"users":[{"id":"u1","provider":"anon-user","access_token":"a.b.c","refresh_token":"r"}],"current":"u1"}"#
        try stored.write(to: users.appendingPathComponent("users.json"), atomically: true, encoding: .utf8)
        // Nothing listens on the discard port.
        let app = App(id: "lists", configuration: AppConfiguration(baseURL: "http://127.0.0.1:9", storageDirectory: folder))
        guard let user = app.currentUser else { throw BenchFailure("The stored user was not found in \(users.path).") }
        var configuration = user.flexibleSyncConfiguration()
        configuration.objectTypes = [Tally.self]
        let realm = try Realm(configuration: configuration)
        let subscriptions = realm.subscriptions
        subscriptions.update({ subscriptions.append(QuerySubscription<Tally>(name: "all")) }, onComplete: nil)
        return realm
    }

    /// Measures list edits from the begin of the write to the end of its commit. The object exists before, so a synced Realm uploads each
    /// edit.
    func lists(_ realm: Realm, of kind: String, _ report: inout Report) throws {
        let edits = ObjectStoreBenchmark.edits
        var (appends, sets): ([Double], [Double]) = ([], [])
        for round in 0...rounds {
            let tally = try realm.write { realm.create(Tally.self, value: ["_id": round]) }
            appends.append(
                try time {
                    try realm.write { for number in 0..<edits { tally.values.append(number) } }
                })
            sets.append(
                try time {
                    try realm.write { for index in 0..<edits { tally.values[index] = index + round } }
                })
            guard tally.values.count == edits, tally.values.last == edits - 1 + round else {
                throw BenchFailure("The list has other elements than were written.")
            }
        }
        // The first round is a warm-up.
        add("10,000 appends to a list of a \(kind) Realm in one write", Array(appends.dropFirst()).median, core: 4e-3, &report)
        add("10,000 elements of a list of a \(kind) Realm set in one write", Array(sets.dropFirst()).median, core: 3e-3, &report)
    }

    /// Measures access by index. Each access uses a new result.
    func places(_ realm: Realm, _ report: inout Report) {
        let index = count / 2
        let begin = seconds()
        let first = realm.objects(Reading.self)[index]._id
        let opened = seconds() - begin
        let fresh = median { realm.objects(Reading.self)[index]._id }
        if first != index { say("  the object at \(index) is \(first)") }
        add("`[\(index)]` of a result, the first in an open file", opened, core: 0.14e-3, &report)
        add("`[\(index)]` of a fresh result", fresh, core: 0.14e-3, &report)
    }

    /// - Parameter core: The duration of realm-core, in seconds.
    private func add(_ name: String, _ ours: Double, core: Double, _ report: inout Report) {
        report.add(
            name, ours: "\((ours * 1e3).text(2)) ms", reference: "realm-core 14.14 \((core * 1e3).text(2)) ms",
            ratio: "\((ours / core).text(1)) ×", target: "≤ 5 ×")
    }

    private func time(_ body: () throws -> Void) rethrows -> Double {
        let begin = seconds()
        try body()
        return seconds() - begin
    }
}
