import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

@testable import SluiceRealmBridge

/// Two apps and SQL write the same few objects, offline for a while, and change their subscriptions.
@Suite(.timeLimit(.minutes(2))) struct `Apps that play on the pipeline` {
    private static let keys = ["a", "b", "c", "d"]

    @Test(arguments: seeds(20)) func `show what the database has in the end`(seed: UInt64) async throws {
        try await Self.play(seed, on: await BridgeStage())
    }

    /// Three rows are a slice. What is larger than one entry outside of a view that the client asked for is asked for again.
    @Test(arguments: seeds(20)) func `show the same if every view comes in slices`(seed: UInt64) async throws {
        let stage = await BridgeStage(bounds: BridgeBounds(entryBytes: 250))
        await stage.database.cut(1)
        try await Self.play(seed, on: stage)
    }

    @Test(arguments: seeds(20) + [2_770_151_518_016_189_803, 6_042_440_455_398_224_687])
    func `show the same if every session ends by a crash of the gateway`(seed: UInt64) async throws {
        let resets = try await Self.play(seed, on: await BridgeStage(hasLog: true, crashes: true))
        #expect(resets == 0, "seed \(seed)")
    }

    /// - Returns: The number of client resets.
    @discardableResult
    private static func play(_ seed: UInt64, on stage: BridgeStage) async throws -> Int {
        var resets = 0
        var random = SplitMix64(seed: seed)
        var players = [Player(clock: 0, query: 1), Player(clock: random.chance(50) ? 60_000 : 0, query: 1)]
        for _ in 0..<6 {
            for index in players.indices {
                let steps = Self.steps(&random, of: players[index])
                try await stage.connect { client in players[index] = try await players[index].session(client, steps, stage) }
                if players[index].isReset { resets += 1 }
            }
            await stage.sql(Self.rows(&random))
        }
        for index in players.indices {
            // A client that is reset begins again. An entry that puts an object right may follow a mark, so there are several.
            var rounds = 0
            repeat {
                try await stage.connect { client in players[index] = try await players[index].session(client, [], stage) }
                rounds += 1
            } while rounds < 3 || (players[index].isReset && rounds < 6)
            let shown = players[index].app.objects
            var wanted: [ObjectKey: [String: Value]] = [:]
            for key in Self.keys {
                guard let row = await stage.database.row(key), players[index].sees(row) else { continue }
                wanted[.item(key)] = ["title": row[1] ?? .null, "size": row[2] ?? .null]
            }
            #expect(shown.mapValues { Self.filled($0) } == wanted, "seed \(seed), app \(index)")
            #expect(players[index].app.faults.isEmpty, "seed \(seed), app \(index)")
        }
        return resets
    }

    private static func filled(_ values: [String: Value]) -> [String: Value] {
        ["title": values["title"] ?? .null, "size": values["size"] ?? .int(0)]
    }

    private static func rows(_ random: inout SplitMix64) -> [String: Row?] {
        var rows: [String: Row?] = [:]
        for key in keys where random.chance(40) {
            rows[key] = random.chance(25) ? .some(nil) : BridgeStage.item(key, "sql \(random.below(100))", size: Int64(random.below(9)))
        }
        return rows
    }

    private static func steps(_ random: inout SplitMix64, of player: Player) -> [Player.Step] {
        (0..<random.below(8)).map { _ in
            let key = random.pick(keys)
            switch random.below(10) {
            case 0...4: return .set(key, "title", .string("app \(random.below(1_000))"))
            case 5: return .set(key, "size", .int(Int64(random.below(9))))
            case 6: return .create(key, "new \(random.below(1_000))", Int64(random.below(9)))
            case 7: return .erase(key)
            case 8: return .upload
            default:
                guard random.chance(30) else { return .sql(rows(&random)) }
                return random.chance(50) ? .subscribe(random.below(2)) : .ask(random.below(2), rows(&random))
            }
        }
    }
}

private struct Reset: Error {}

/// One app over several sessions.
private struct Player: Sendable {
    enum Step: Sendable {
        case set(String, String, Value)
        case create(String, String, Int64)
        case erase(String)
        /// Sends what was written. Without it, the next session does.
        case upload
        case subscribe(Int)
        /// Subscribes while SQL writes, and does not wait for the view.
        case ask(Int, [String: Row?])
        case sql([String: Row?])
    }

    private static let queries = ["size < 5", "TRUEPREDICATE"]

    var app: PlayingApp
    /// `true` if the last session ended by a client reset.
    private(set) var isReset = false
    private var file: RealmFileIdent?
    private var query: Int
    private var queryVersion: UInt64 = 1
    /// The queries by version.
    private var asked: [UInt64: Int] = [:]
    private var sent: UInt64 = 0
    private var mark: UInt64 = 0
    private var time: UInt64 = 370_000_000_000

    init(clock: UInt64, query: Int) { (app, self.query) = (PlayingApp(clock: clock), query) }

    /// The same app with an empty file.
    func anew() -> Player {
        var player = self
        (player.app, player.file) = (PlayingApp(clock: app.clock), nil)
        return player
    }

    func sees(_ row: Row) -> Bool {
        guard query == 0, case .int(let size)? = row[2] else { return true }
        return size < 5
    }

    private var newest: RealmQuerySet { subscriptions(of: queryVersion) }

    private func subscriptions(of version: UInt64) -> RealmQuerySet {
        RealmQuerySet(version: version, queries: asked[version].map { ["Item": Self.queries[$0]] } ?? [:])
    }

    func session(_ client: StageClient, _ steps: [Step], _ stage: BridgeStage) async throws -> Player {
        var player = self
        player.isReset = false
        do {
            try await player.open(client)
            for step in steps { try await player.perform(step, client, stage) }
            // Half of the sessions end with changes that were not sent.
            if steps.count % 2 == 0 { try await player.settle(client) }
            if steps.isEmpty { for _ in 0..<3 { try await player.settle(client) } }
        } catch is Reset {
            // The stage has no log to continue from after a session that ended with an upload under way.
            player = player.anew()
            player.isReset = true
        }
        return player
    }

    private mutating func open(_ client: StageClient) async throws {
        (sent, mark) = (0, 0)
        guard let file else {
            let file = try await client.begin()
            (self.file, queryVersion, asked) = (file, 1, [1: query])
            app.take(file)
            try client.send(.query(session: 1, newest))
            return try await settle(client)
        }
        try client.send(.bind(RealmBind(session: 1, needsFileIdent: false)))
        let latest = RealmServerVersion(version: app.latest, salt: app.latest == 0 ? 0 : 5)
        let query = subscriptions(of: app.view)
        try client.send(.ident(RealmIdent(session: 1, file: file, download: app.cursor, latest: latest, query: query)))
        try upload(client)
        if queryVersion > app.view { try client.send(.query(session: 1, newest)) }
    }

    private mutating func perform(_ step: Step, _ client: StageClient, _ stage: BridgeStage) async throws {
        time += 1_000
        switch step {
        case .set(let key, let field, let value):
            guard app.objects[.item(key)] != nil else { return }
            try app.write([PlayingApp.Change(object: .item(key), field: field, value: value)], at: time)
        case .create(let key, let title, let size):
            guard app.objects[.item(key)] == nil else { return }
            let object = ObjectKey.item(key)
            try app.write(
                [
                    PlayingApp.Change(object: object), PlayingApp.Change(object: object, field: "title", value: .string(title)),
                    PlayingApp.Change(object: object, field: "size", value: .int(size)),
                ], at: time)
        case .erase(let key):
            guard app.objects[.item(key)] != nil else { return }
            try app.write([PlayingApp.Change(object: .item(key), isErasure: true)], at: time)
        case .upload: try upload(client)
        case .subscribe(let query):
            try ask(query, client)
            try await settle(client)
        case .ask(let query, let rows):
            async let written: Void = stage.sql(rows)
            try ask(query, client)
            await written
        case .sql(let rows): await stage.sql(rows)
        }
    }

    private mutating func ask(_ query: Int, _ client: StageClient) throws {
        // An SDK sends earlier changes ahead of the set.
        try upload(client)
        (self.query, queryVersion) = (query, queryVersion + 1)
        asked[queryVersion] = query
        try client.send(.query(session: 1, newest))
    }

    private mutating func upload(_ client: StageClient) throws {
        let entries = app.pending.map(\.entry).filter { $0.clientVersion > sent }
        guard let last = entries.last else { return }
        sent = last.clientVersion
        let progress = RealmUploadProgress(clientVersion: last.clientVersion, serverVersion: last.serverVersion)
        try client.send(.upload(RealmUploadMessage(session: 1, progress: progress, entries: entries)))
    }

    /// Sends everything, and takes everything that was committed before.
    private mutating func settle(_ client: StageClient) async throws {
        try upload(client)
        repeat {
            mark += 1
            for message in try await client.catchUp(mark) {
                if case .download(let download) = message { try app.take(download) }
                if case .error(let error) = message, error.action == .clientReset { throw Reset() }
            }
        } while !app.pending.isEmpty && !Task.isCancelled
    }
}
