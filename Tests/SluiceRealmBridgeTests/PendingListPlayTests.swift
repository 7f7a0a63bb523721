import RealmTestSupport
import SluiceCore
import SluiceRealm
import TestSupport
import Testing

/// Files with several pending changesets, and a writer of the gateway's own protocol, edit the same lists.
private struct ListPlay {
    private static let keys = ["a", "b"]

    let stage: BridgeStage
    let writer: StageWriter
    private(set) var files: [StageFile] = []
    private var random: SplitMix64
    private var seen: [String: StageWriter.Seen] = [:]
    private var next = 0

    init(_ seed: UInt64) async throws {
        random = SplitMix64(seed: seed)
        stage = await BridgeStage(hasLog: true)
        await stage.database.setClock()
        await stage.sql(["a": BridgeStage.item("a", nil, tags: ["x", "y"]), "b": BridgeStage.item("b", nil)])
        writer = try await StageWriter(stage)
        for _ in 0..<2 + random.below(2) {
            files.append(StageFile(stage))
            try await files[files.count - 1].begin()
        }
    }

    /// One step of a random file, or of the writer.
    mutating func step() async throws {
        guard !random.chance(15) else { return try await write() }
        let file = random.pick(files)
        guard file.isConnected else {
            if random.chance(60) { return try await commit(file) }
            return try file.connect()
        }
        switch random.below(20) {
        case 0..<9: try await commit(file)
        case 9..<11: try file.upload()
        case 11..<14: try await file.fetch()
        case 14..<18: try await file.handle(1 + random.below(4))
        case 18: try await file.synchronize()
        default:
            // Without an upload under way: the stored state would not have the lists of its time.
            try await file.synchronize()
            for _ in 0..<random.below(3) { try await commit(file) }
            if random.chance(50) { try await write() }
            try await file.fetch()
            await file.disconnect()
        }
    }

    private mutating func name() -> Value {
        next += 1
        return .string("\(next)")
    }

    // MARK: Files

    private mutating func commit(_ file: StageFile) async throws {
        let key = random.pick(Self.keys)
        guard file.file.objects[.item(key)] != nil else { return }
        var count = file.tags(key).count
        var instructions: [RealmInstruction] = []
        for _ in 0...random.below(3) {
            if let instruction = instruction(RealmPath(.item(key), "tags"), &count) { instructions.append(instruction) }
        }
        guard !instructions.isEmpty else { return }
        // Clocks are up to two commits apart.
        try file.commit(instructions, at: await stage.database.timestamp + UInt64(random.below(200)))
    }

    private mutating func instruction(_ path: RealmPath, _ count: inout Int) -> RealmInstruction? {
        let size = count
        switch random.below(20) {
        case 0..<10:
            count += 1
            return .arrayInsert(path, at: random.below(size + 1), .value(name()), priorSize: size)
        case 10..<13 where size > 0: return .arrayUpdate(path, at: random.below(size), .value(name()), priorSize: size)
        case 13..<16 where size > 0:
            count -= 1
            return .arrayErase(path, at: random.below(size), priorSize: size)
        case 16..<19 where size > 1:
            let from = random.below(size)
            return .arrayMove(path, from: from, to: (from + 1 + random.below(size - 1)) % size, priorSize: size)
        case 19 where size > 2:
            count = 0
            return .clear(path, .list)
        default: return nil
        }
    }

    // MARK: The writer

    /// Commits an edit of a list that the writer saw now or before.
    private mutating func write() async throws {
        let key = random.pick(Self.keys)
        if seen[key] == nil || random.chance(60) { seen[key] = await writer.look(key) }
        guard let seen = seen[key] else { return }
        let count = seen.tags.count
        let edit: Edit
        switch random.below(8) {
        case 0..<4: edit = writer.insert(name(), at: random.below(count + 1), in: seen)
        case 4 where count > 0: edit = writer.set(name(), at: random.below(count), in: seen)
        case 5 where count > 0: edit = writer.remove(random.below(count), in: seen)
        case 6 where count > 0:
            edit = writer.move(random.below(count), behind: random.chance(30) ? nil : random.below(count), in: seen)
        case 7 where random.chance(30): edit = Edit("tags", .clear(.list))
        default: return
        }
        try await writer.commit(key, [edit], in: seen, at: await stage.database.milliseconds)
    }

    // MARK: The end

    /// Synchronizes all files.
    mutating func settle() async throws {
        for file in files where !file.isConnected && !isReset { try file.connect() }
        // An entry that puts an object right may follow several marks, and an upload changes the lists of the others.
        for round in 0..<200 where !isReset {
            for file in files where !isReset { try await file.synchronize() }
            if round > 3, await difference() == nil { return }
        }
    }

    /// `true` if the session of a file has ended with an error.
    var isReset: Bool { files.contains { $0.file.error != nil } }

    func close() async {
        for file in files { await file.disconnect() }
        await writer.close()
    }

    /// Returns the first difference between a file and the database.
    func difference() async -> String? {
        for (index, file) in files.enumerated() { if let error = file.file.error { return "file \(index) ended with \(error)" } }
        for (index, file) in files.enumerated() {
            for key in Self.keys {
                let row = await stage.database.row(key)
                guard row?[3] != .list(file.tags(key)) else { continue }
                return "file \(index) has \(file.tags(key)), the database \(String(describing: row?[3]))"
            }
        }
        return nil
    }
}

@Suite(.timeLimit(.minutes(4))) struct `Files that edit the same lists` {
    @Test(arguments: seeds(20, soak: 300)) func `end with the lists of the database, and none is reset`(seed: UInt64) async throws {
        var play = try await ListPlay(seed)
        do {
            var steps = 0
            while steps < 150, !play.isReset {
                try await play.step()
                steps += 1
            }
            try await play.settle()
        } catch {
            Issue.record("seed \(seed): \(error)")
        }
        let difference = await play.difference()
        #expect(difference == nil, "seed \(seed)")
        await play.close()
    }
}
