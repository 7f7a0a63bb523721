import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct `Asking the chain` {
    private static let modes: [PluginSpec.Mode] = [.process, .inProcess]
    private let reading = schema["Reading"]!

    private func write(_ word: String = "x") -> ProposedWrite {
        ProposedWrite(type: store, operation: .update, before: ["_id": .string(word)], after: ["_id": .string(word), "size": .int(1)])
    }

    @Test(arguments: modes)
    func `openSession brings back every part of a plan`(mode: PluginSpec.Mode) async throws {
        let plan = try await withChain([faulty(mode)]) { try await $0.openSession(user: user("somebody"), types: ["Store", "Other"]) }
        let expected = TypePlan(
            read: "size > 1", write: "TRUEPREDICATE", insert: true, delete: false, fields: FieldRights(readable: ["_id", "name"]),
            role: "configured 0", checkWrite: true)
        #expect(plan == SessionPlan(types: ["Store": expected]))
        #expect(plan?["Other"] == .denied)
    }

    @Test func `types that nobody asked for are left out`() async throws {
        let plan = try await withChain([faulty()]) { try await $0.openSession(user: user("somebody"), types: ["Other"]) }
        #expect(plan == SessionPlan(types: [:]))
    }

    @Test func `without a plugin that has the hook the caller decides`() async throws {
        let plan = try await withChain([]) { try await $0.openSession(user: user("somebody"), types: ["Store"]) }
        #expect(plan == nil)
    }

    @Test func `several plugins together allow no more than each`() async throws {
        let listed = PluginSpec(path: Built.plugin("DenyAllC"), config: ["allow": ["Store", "Other"]])
        try await withChain([listed, faulty()]) { chain in
            try await chain.configure(app: ["app_id": "test"])
            let plan = try await chain.openSession(user: user("somebody"), types: ["Store", "Other"])
            #expect(plan?.types.keys.sorted() == ["Store"])
            #expect(plan?["Store"].read == "size > 1")
            #expect(plan?["Store"].delete == false)
            #expect(plan?["Store"].role == "listed & configured 1")
        }
    }

    @Test func `a predicate that is no query by itself is not put beside another one`() {
        let roles = TypePlan(read: "owner == 'ann'", write: "size > 1", role: "roles")
        let odd = TypePlan(read: "FALSEPREDICATE) OR (TRUEPREDICATE", write: "(size > 2) OR (size < 0)", role: "odd")
        let isQuery = { (text: String) in text != odd.read }
        for both in [roles.intersected(with: odd, isQuery: isQuery), odd.intersected(with: roles, isQuery: isQuery)] {
            #expect(both.read == odd.read)
            #expect(["(size > 1) AND ((size > 2) OR (size < 0))", "((size > 2) OR (size < 0)) AND (size > 1)"].contains(both.write))
        }
    }

    @Test func `plugins that only take away grant nothing, alone or together`() {
        let narrow = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "narrow", grants: false)
        #expect(!narrow.intersected(with: narrow, isQuery: { _ in true }).grants)
        #expect(narrow.intersected(with: .open, isQuery: { _ in true }).grants)
    }

    /// 64 KiB each, before and after: 5 MiB in all.
    @Test func `checkWrites asks about many large writes in parts, each of them once`() async throws {
        let counts = Counts()
        try await withChain([faulty()], observer: counts.observer) { chain in
            let text = Value.string(String(repeating: "x", count: 64 << 10))
            let large = ProposedWrite(
                type: store, operation: .update, before: ["_id": .string("a"), "name": text], after: ["_id": .string("a"), "name": text])
            let writes = Array(repeating: large, count: 40) + [write("do-amend")]
            let verdicts = await chain.checkWrites(user: user("somebody"), writes: writes, schema: schema)
            #expect(verdicts.prefix(31).allSatisfy { $0 == .allow } && verdicts.count == 41)
            #expect(verdicts.last == .amend(["name": .string("amended once"), "size": .int(7)]))
            #expect(counts.calls == 2, "\(counts.calls)")
        }
    }

    @Test(arguments: ["do-forge-a-count", "do-forge-a-line"])
    func `a message that a host would not send ends the plugin's process`(word: String) async throws {
        let counts = Counts()
        try await withChain([faulty()], observer: counts.observer) { chain in
            let error = await failure { try await chain.openSession(user: user(word), types: ["Store"]) }
            #expect(error?.code == .pluginBadAnswer, "\(String(describing: error))")
            #expect(await answers(chain))
            #expect(counts.counted.isEmpty)
        }
    }

    @Test(arguments: [
        ("do-deny", ErrorCode.pluginRefused, "FaultyC refused: not today"),
        ("do-fail", .pluginFailed, "FaultyC failed in open_session: the directory service is down"),
        ("do-odd-status", .pluginFailed, "failed in open_session"),
        ("do-garbage", .pluginBadAnswer, "not JSON"),
        ("do-misspell", .pluginBadAnswer, "unknown key \"readable_field\""),
        ("do-overflow", .pluginBadAnswer, "FaultyC answered open_session with more than"),
    ])
    func `an answer that cannot be used is a named error`(word: String, code: ErrorCode, text: String) async throws {
        for mode in Self.modes {
            try await withChain([faulty(mode)]) { chain in
                let error = await failure { try await chain.openSession(user: user(word), types: ["Store"]) }
                #expect(error?.code == code)
                #expect(error?.message.contains(text) == true, "\(error?.message ?? "no error")")
                #expect(await answers(chain))
            }
        }
    }

    @Test(arguments: modes)
    func `checkSubscription accepts, narrows and refuses`(mode: PluginSpec.Mode) async throws {
        try await withChain([faulty(mode)]) { chain in
            let queries = [TypeQuery(type: "Store", query: "size > 3")]
            #expect(try await chain.checkSubscription(user: user("somebody"), queries: queries) == [])
            let narrowed = try await chain.checkSubscription(user: user("do-narrow"), queries: queries)
            #expect(narrowed == [TypeQuery(type: "Store", query: "size < 100")])
            let refused = await failure { try await chain.checkSubscription(user: user("do-deny"), queries: queries) }
            #expect(refused?.code == .pluginRefused)
            let stray = await failure { try await chain.checkSubscription(user: user("do-stray"), queries: queries) }
            #expect(stray?.code == .pluginBadAnswer)
        }
    }

    @Test(arguments: modes)
    func `checkWrites brings back a verdict for each write`(mode: PluginSpec.Mode) async throws {
        try await withChain([faulty(mode)]) { chain in
            let verdicts = await chain.checkWrites(user: user("do-three"), writes: [write(), write(), write()], schema: schema)
            #expect(
                verdicts == [
                    .allow,
                    .deny(reason: "the second is not allowed", rule: "plugin FaultyC, clause 2", fields: ["name", "size"]),
                    .amend(["size": .int(7)]),
                ])
            let odd = await chain.checkWrites(user: user("odd field"), writes: [write()], schema: schema)
            guard case .undecided(let error) = try #require(odd.first) else { throw Tolerated() }
            #expect(error.code == .pluginBadAnswer && error.message.contains("Store has no property nmae"), "\(odd)")
            #expect(await chain.checkWrites(user: user("somebody"), writes: [write()], schema: schema) == [.allow])
        }
    }

    @Test(arguments: [
        ("somebody", "do-crash", ErrorCode.pluginCrashed, ""), ("somebody", "do-fail", .pluginFailed, ""),
        ("somebody", "do-garbage", .pluginBadAnswer, ""), ("one alone", "a", .pluginBadAnswer, "instead of 2"),
    ])
    func `checkWrites allows nothing when the plugin fails, and says why`(
        name: String, word: String, code: ErrorCode, said: String
    ) async throws {
        try await withChain([faulty()]) { chain in
            let verdicts = await chain.checkWrites(user: user(name), writes: [write(word), write()], schema: schema)
            #expect(verdicts.count == 2)
            for verdict in verdicts {
                guard case .undecided(let error) = verdict else {
                    Issue.record("\(word): \(verdict)")
                    continue
                }
                #expect(
                    error.code == code && error.message.contains("FaultyC") && (said.isEmpty || error.message.contains(said)), "\(error)")
            }
        }
    }

    @Test func `checkWrites takes one word for all of them, when it is the word`() async throws {
        try await withChain([faulty()]) { chain in
            let all = await chain.checkWrites(user: user("all together"), writes: [write(), write()], schema: schema)
            #expect(all == [.allow, .allow])
            let none = await chain.checkWrites(user: user("none of them"), writes: [write(), write()], schema: schema)
            #expect(
                none.count == 2
                    && none.allSatisfy { if case .undecided(let error) = $0 { error.code == .pluginBadAnswer } else { false } }
            )
        }
    }

    @Test func `checkWrites shows the next plugin what the one before amended, and puts their values together`() async throws {
        try await withChain([faulty(), faulty()]) { chain in
            let verdicts = await chain.checkWrites(user: user("do-amend"), writes: [write(), write()], schema: schema)
            #expect(verdicts == Array(repeating: .amend(["name": .string("amended twice"), "size": .int(7)]), count: 2))
        }
    }

    @Test func `checkWrites takes no amendment of a primary key, nor of a deletion`() async throws {
        try await withChain([faulty()]) { chain in
            let delete = ProposedWrite(type: store, operation: .delete, before: ["_id": .string("x")], after: nil)
            for (id, write, said) in [
                ("do-amend the key", write(), "_id is no property that can be set"), ("do-amend", delete, "amends a delete of Store"),
            ] {
                let verdicts = await chain.checkWrites(user: user(id), writes: [write], schema: schema)
                guard case .undecided(let error) = try #require(verdicts.first) else { throw Tolerated() }
                #expect(error.code == .pluginBadAnswer && error.message.contains(said), "\(verdicts)")
            }
        }
    }

    @Test func `checkWrites passes on what a plugin says that denies the whole call`() async throws {
        try await withChain([faulty()]) { chain in
            let verdicts = await chain.checkWrites(user: user("somebody"), writes: [write("do-deny")], schema: schema)
            guard case .undecided(let error) = try #require(verdicts.first) else { throw Tolerated() }
            #expect(error.code == .pluginRefused && error.message.contains("FaultyC refused: "), "\(verdicts)")
        }
    }

    private struct Tolerated: Error {}

    @Test(arguments: modes)
    func `ingest brings back every kind of verdict`(mode: PluginSpec.Mode) async throws {
        let objects = ["do-each", "b", "c", "d", "e", "f", "g", "h"].map { ["_id": Value.string($0), "value": .double(1)] }
        let asked = ObjectRows(type: reading, values: objects)
        let verdicts = try await withChain([faulty(mode)]) { try await $0.ingest(asked, schema: schema) }
        #expect(
            verdicts.prefix(5) == [
                .accept, .transform(["_id": .string("b"), "value": .double(2.5)]),
                .route(type: "Rare", values: ["_id": .string("c"), "note": .string("rare")]), .drop(reason: "old"),
                .reject(reason: "FaultyC rejected it: too hot"),
            ])
        guard case .reject(let reason) = verdicts[5] else { throw SluiceError(.internalError, "the unfit object was taken") }
        #expect(reason.contains("made it unfit"))
        #expect(
            verdicts[6]
                == .split([
                    IngestPart(type: "Rare", values: ["_id": .string("g1"), "note": .string("rare")]),
                    IngestPart(type: "Reading", values: ["_id": .string("g2"), "value": .double(1)]),
                ]))
        guard case .reject(let reason) = verdicts[7] else { throw SluiceError(.internalError, "a part of no type was taken") }
        #expect(reason.contains("Nothing"))
    }

    @Test func `ingest decides when the records of its answer are kept, and not before`() async throws {
        let kept = Mutex((records: [PluginRecord](), isBroken: true))
        try await withChain(
            [faulty()],
            keep: { (records) async throws(SluiceError) in
                let isBroken = kept.withLock { kept in
                    if !kept.isBroken { kept.records += records }
                    return kept.isBroken
                }
                if isBroken { throw SluiceError(.logUnreachable, "the brokers are away") }
            }
        ) { chain in
            let objects = ObjectRows(type: reading, values: [["_id": .string("do-keep"), "value": .double(1)]])
            #expect(await failure { try await chain.ingest(objects, schema: schema) }?.code == .logUnreachable)
            kept.withLock { $0.isBroken = false }
            let verdicts = try await chain.ingest(objects, schema: schema)
            #expect(verdicts == [.accept])
        }
        let records = kept.withLock { $0.records }
        #expect(records.map { [$0.plugin, $0.stream, $0.key] } == [["FaultyC", "seen", "k"]])
        #expect(records.first?.record == ["text": ""])
    }

    @Test func `ingest fails as a whole when the plugin fails`() async throws {
        try await withChain([faulty()]) { chain in
            for (word, code) in [("do-crash", ErrorCode.pluginCrashed), ("do-fail", .pluginFailed), ("one alone", .pluginBadAnswer)] {
                let objects = ObjectRows(type: reading, values: [["_id": .string(word)]])
                let error = await failure { try await chain.ingest(objects, schema: schema) }
                #expect(error?.code == code)
            }
        }
    }

    @Test func `ingest of nothing tells whether the plugin works`() async throws {
        try await withChain([faulty()]) { chain in
            let working = try await chain.ingest(ObjectRows(type: reading, values: []), schema: schema)
            #expect(working.isEmpty)
            let fatal = ObjectType(name: "do-fail", kind: .asymmetric, properties: reading.properties)
            let error = await failure { try await chain.ingest(ObjectRows(type: fatal, values: []), schema: schema) }
            #expect(error?.code == .pluginFailed)
        }
    }

    @Test func `ingest sets what a plugin sets, and takes nothing that does not fit`() async throws {
        try await withChain([faulty()]) { chain in
            let objects = ["do-set", "b", "c"].map { ["_id": Value.string($0), "value": .double(1)] }
            let verdicts = try await chain.ingest(ObjectRows(type: reading, values: objects), schema: schema)
            try #require(verdicts.count == 3)
            #expect(verdicts[0] == .amend(["value": .double(2.5)]))
            for (verdict, said) in [(verdicts[1], "value"), (verdicts[2], "odd")] {
                guard case .reject(let reason) = verdict else { throw SluiceError(.internalError, "the unfit value was taken") }
                #expect(reason.hasPrefix("FaultyC made it unfit") && reason.contains(said), "\(reason)")
            }
            let both = ObjectRows(type: reading, values: [["_id": .string("do-both")]])
            #expect(await failure { try await chain.ingest(both, schema: schema) }?.code == .pluginBadAnswer)
        }
    }

    @Test(arguments: modes)
    func `userChanged reaches the plugin`(mode: PluginSpec.Mode) async throws {
        try await withChain([faulty(mode)]) { chain in
            await chain.userChanged(user("somebody"))
            let plan = try await chain.openSession(user: user("somebody"), types: ["Store"])
            #expect(plan?["Store"].role == "configured 100")
        }
    }

    @Test func `configure logs warnings, and a refusal keeps what was accepted before`() async throws {
        let log = LogBook()
        let listed = PluginSpec(path: Built.plugin("DenyAllC"), config: ["allow": ["Store"]])
        try await withChain([listed, faulty()], log: log) { chain in
            try await chain.configure(app: ["app_id": "do-warn"])
            // FaultyC is then given the first app again, which it counts.
            let error = await failure { try await chain.configure(app: ["app_id": "do-fail"]) }
            #expect(error?.code == .pluginFailed)
            #expect(try await chain.openSession(user: user("somebody"), types: ["Store"])?["Store"].role == "listed & configured 2")
        }
        #expect(log.lines.contains { $0.hasPrefix("warning A plugin warns about the app.") && $0.contains("a warning") })
    }

    @Test func `configure keeps from a plugin how users log in, which others there are, and the app's secrets`() async throws {
        func app(_ path: String) -> JSON { ["app_id": "test", "directory": .object([JSON.Member(path, "do-fail")])] }
        try await withChain([faulty()]) { chain in
            let hidden = [
                "secrets.json", "auth/providers.json", "auth/custom_user_data.json", "plugins.json", "sluice.json", "mail/reset.txt",
            ]
            for path in hidden {
                try await chain.configure(app: app(path))
            }
            #expect(await failure { try await chain.configure(app: app("values/secrets.json")) }?.code == .pluginFailed)
        }
        var trusted = faulty()
        trusted.seesSecrets = true
        try await withChain([trusted]) { chain in
            try await chain.configure(app: app("auth/providers.json"))
            #expect(await failure { try await chain.configure(app: app("secrets.json")) }?.code == .pluginFailed)
        }
    }

    @Test func `a plugin in process that is slow fails its call and lives on`() async throws {
        try await withChain([faulty(.inProcess, milliseconds: 50)]) { chain in
            let error = await failure { try await chain.openSession(user: user("do-slow"), types: ["Store"]) }
            #expect(error?.code == .pluginTimeout)
            var plan: SessionPlan?
            // The thread is busy for a moment longer: calls are refused until it is free.
            while plan == nil { plan = try? await chain.openSession(user: user("somebody"), types: ["Store"]) }
            #expect(plan?["Store"].read == "size > 1")
        }
    }

    @Test func `many calls at once are all answered`() async throws {
        try await withChain([faulty(milliseconds: 30_000)]) { chain in
            let answered = await withTaskGroup(of: Bool.self) { group in
                for index in 0..<500 {
                    group.addTask { (try? await chain.openSession(user: user("user \(index)"), types: ["Store"])) != nil }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(answered == 500)
        }
    }
}
