import SluiceCore
import SluicePorts
import SluiceRealm
import Testing

@testable import SluiceRealmBridge

/// The objects of a client, whose store keeps the parts of a bootstrap over connections until a part of another one comes.
struct PartStore {
    private(set) var objects: [Value: [String: Value]] = [:]
    private var parts: (version: UInt64, entries: [RealmDownloadEntry]) = (0, [])
    private(set) var cursor = RealmDownloadCursor()
    /// The bootstraps that were applied, by query version.
    private(set) var views: [UInt64] = []

    mutating func take(_ messages: [RealmServerMessage]) throws {
        for case .download(let download) in messages {
            guard download.batch != .steadyState else {
                try apply(download.entries)
                cursor = download.progress.download
                continue
            }
            if parts.version != download.queryVersion { parts = (download.queryVersion, []) }
            parts.entries += download.entries
            guard download.batch == .lastInBatch else { continue }
            try apply(parts.entries)
            parts = (0, [])
            views.append(download.queryVersion)
            cursor = download.progress.download
        }
    }

    private mutating func apply(_ entries: [RealmDownloadEntry]) throws {
        for entry in entries {
            for instruction in try RealmChangesetReader.instructions(of: entry.changeset) {
                switch instruction {
                case .createObject(let object): objects[object.key] = objects[object.key] ?? [:]
                case .eraseObject(let object): objects[object.key] = nil
                case .update(let path, .value(let value), _):
                    try #require(objects[path.object.key] != nil, "\(instruction)")
                    objects[path.object.key]?[path.field] = value
                default: break
                }
            }
        }
    }

    /// The keys of objects that have another title than they should have, or should not be, in no order. At most ten.
    func differences(from titles: [Value: Value]) -> [Value] {
        let keys = Set(titles.keys).union(objects.keys)
        return Array(keys.filter { objects[$0]?["title"] != titles[$0] }.prefix(10))
    }
}

/// Views of small slices: items of a kilobyte each, and a hundred of them in an entry.
enum Sliced {
    static let small = BridgeBounds(entryBytes: 100_000)
    static let all = RealmQuerySet(version: 1, queries: ["Item": "size < 100000"])
    static let none = RealmQuerySet(version: 0, queries: [:])
    private static let filler = String(repeating: "x", count: 1_000)

    static func key(_ number: Int) -> String { "k\(1_000 + number)" }

    static func title(_ number: Int) -> String { "\(number) \(filler)" }

    /// Items of about a megabyte in total. The session sends them in several messages.
    static func fill(_ stage: BridgeStage, _ numbers: Range<Int> = 0..<1_000) async {
        await stage.sql(
            Dictionary(uniqueKeysWithValues: numbers.map { (key($0), BridgeStage.item(key($0), title($0), size: Int64($0))) }))
    }

    static func titles(_ numbers: some Sequence<Int>) -> [Value: Value] {
        Dictionary(uniqueKeysWithValues: numbers.map { (.string(key($0)), .string(title($0))) })
    }

    /// Binds the file again, and asks for a set at once.
    static func resume(
        _ client: StageClient, _ file: RealmFileIdent, _ cursor: RealmDownloadCursor, _ query: RealmQuerySet, then next: RealmQuerySet?
    ) throws {
        try client.send(.bind(RealmBind(session: 1, needsFileIdent: false)))
        let latest = RealmServerVersion(version: cursor.serverVersion, salt: 5)
        try client.send(.ident(RealmIdent(session: 1, file: file, download: cursor, latest: latest, query: query)))
        if let next { try client.send(.query(session: 1, next)) }
    }

    /// Begins the view of all items, and ends the connection once the client has some parts of it.
    static func interrupted(_ stage: BridgeStage, after parts: UInt64 = 4) async throws -> (store: PartStore, file: RealmFileIdent) {
        var (store, file) = (PartStore(), RealmFileIdent(ident: 0, salt: 0))
        try await stage.connect { client in
            client.sink.hold(after: parts)
            file = try await client.begin()
            try client.send(.query(session: 1, all))
            for _ in 0..<parts { try store.take(await client.messages(through: .part)) }
        }
        #expect(store.objects.isEmpty, "A client shows nothing before the last part.")
        return (store, file)
    }

    /// Begins the view of all items, which the client has, once more. Ends the connection once the client has some parts of it.
    static func interruptedAgain(_ stage: BridgeStage, after parts: UInt64 = 4) async throws -> (store: PartStore, file: RealmFileIdent) {
        var (store, file) = (PartStore(), RealmFileIdent(ident: 0, salt: 0))
        try await stage.connect { client in
            file = try await client.begin()
            try client.send(.query(session: 1, all))
            try store.take(await client.messages(through: .view(1)))
            // The client does not get this one.
            _ = try await client.subscribe(2, "size < 7")
        }
        try await stage.connect { client in
            client.sink.hold(after: parts)
            try resume(client, file, store.cursor, all, then: nil)
            for _ in 0..<parts { try store.take(await client.messages(through: .part)) }
        }
        return (store, file)
    }
}
