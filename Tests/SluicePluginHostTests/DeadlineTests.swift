import Glibc
import SluiceCore
import SluicePluginHost
import SluicePorts
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2))) struct `The deadlines of a plugin` {
    private let types = ["Store"]

    /// What nobody has configured, save that the clock ends no call.
    private var unhurried: PluginSpec {
        var spec = PluginSpec(path: Built.plugin("FaultyC"))
        spec.stall = 3_600_000_000_000
        spec.wait = 3_600_000_000_000
        return spec
    }

    private func writes(_ count: Int, _ name: String) -> [ProposedWrite] {
        (0..<count).map {
            ProposedWrite(type: store, operation: .insert, before: nil, after: ["_id": .string("\($0)"), "name": .string(name)])
        }
    }

    @Test func `end a hook of sessions that loops after 50 ms of processor time, and the next call works`() async throws {
        try await withChain([unhurried]) { chain in
            let error = await failure { try await chain.openSession(user: user("do-loop"), types: types) }
            #expect(error?.code == .pluginTimeout)
            #expect(error?.message.contains("used more than 50 ms of processor time for open_session") == true)
            #expect(await answers(chain))
        }
    }

    @Test(arguments: [(1, 5), (64, 320), (1_000, 2_000)])
    func `end a hook of writes that loops after 5 ms for each write, two seconds in all`(count: Int, milliseconds: Int) async throws {
        try await withChain([unhurried]) { chain in
            let verdicts = await chain.checkWrites(user: user("somebody"), writes: writes(count, "do-loop"), schema: schema)
            let reason = "libFaultyC.so used more than \(milliseconds) ms of processor time for check_write"
            let denial = WriteVerdict.undecided(SluiceError(.pluginTimeout, reason))
            #expect(verdicts.count == count && verdicts.allSatisfy { $0 == denial }, "\(verdicts.prefix(1))")
            #expect(await chain.checkWrites(user: user("somebody"), writes: writes(2, "a"), schema: schema) == [.allow, .allow])
        }
    }

    @Test(arguments: [PluginSpec.Mode.process, .inProcess])
    func `refuse what took more processor time than it had, also where nothing can be ended`(mode: PluginSpec.Mode) async throws {
        var spec = unhurried
        (spec.mode, spec.path) = (mode, Built.plugin("FaultyC", mode))
        spec.deadline = 20_000_000
        try await withChain([spec]) { chain in
            // The first call of a hook has more.
            let plan = try await chain.openSession(user: user("do-spin"), types: types)
            #expect(plan != nil)
            let error = await failure { try await chain.openSession(user: user("do-spin"), types: types) }
            #expect(error?.code == .pluginTimeout)
            #expect(error?.message.contains("used more than 20 ms of processor time") == true)
            #expect(await answers(chain))
        }
    }

    @Test(arguments: ["do-hang", "do-nap"])
    func `end a hook that sleeps for as long as it may work, at once or a little at a time`(word: String) async throws {
        try await withChain([unhurried]) { chain in
            #expect(await answers(chain))
            let error = await failure { try await chain.openSession(user: user(word), types: types) }
            #expect(error?.code == .pluginTimeout)
            #expect(error?.message == "libFaultyC.so slept for more than 50 ms in open_session")
            let verdicts = await chain.checkWrites(user: user("somebody"), writes: writes(2, word), schema: schema)
            let reason = "libFaultyC.so slept for more than 10 ms in check_write"
            #expect(verdicts.allSatisfy { $0 == .undecided(SluiceError(.pluginTimeout, reason)) }, "\(verdicts)")
            #expect(await answers(chain))
        }
    }

    @Test func `do not count how long the gateway takes to answer a question`() async throws {
        var services = HostServices.none
        // Far longer than the hook has. This is the time that the test is about.
        services.customData = { (_) async throws(SluiceError) in
            try? await Task.sleep(for: .milliseconds(200))
            return nil
        }
        try await withChain([unhurried], services: services) { chain in
            #expect(await answers(chain))
            let host = chain.processIDs[0]
            let plan = try await chain.openSession(user: user("do-ask"), types: types)
            #expect(plan != nil)
            #expect(chain.processIDs[0] == host)
        }
    }

    @Test func `end by the clock what neither works nor sleeps`() async throws {
        var spec = PluginSpec(path: Built.plugin("FaultyC"))
        spec.stall = 250_000_000
        try await withChain([spec]) { chain in
            #expect(await answers(chain))
            kill(try #require(chain.processIDs[0]), SIGSTOP)
            let error = await failure { try await chain.openSession(user: user("somebody"), types: types) }
            #expect(error?.code == .pluginTimeout)
            #expect(error?.message == "libFaultyC.so did not answer open_session within 300 ms")
            #expect(await answers(chain))
        }
    }

    @Test func `do not count that the host could not run`() async throws {
        try await withChain([unhurried]) { chain in
            #expect(await answers(chain))
            let host = try #require(chain.processIDs[0])
            kill(host, SIGSTOP)
            async let verdicts = chain.checkWrites(user: user("somebody"), writes: writes(1, "a"), schema: schema)
            // Far longer than the hook has. This is the time that the test is about, not a way to wait for something.
            try await Task.sleep(for: .milliseconds(300))
            kill(host, SIGCONT)
            #expect(await verdicts == [.allow])
            #expect(chain.processIDs[0] == host)
        }
    }

    @Test func `deny nothing because others keep the machine busy`() async throws {
        let crowd = Crowd(threads: 16)
        defer { crowd.leave() }
        try await withChain([PluginSpec(path: Built.plugin("FaultyC"))]) { chain in
            let host = chain.processIDs[0]
            for _ in 0..<5 {
                let allowed = await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<20 {
                        group.addTask { await chain.checkWrites(user: user("a"), writes: writes(1, "a"), schema: schema) == [.allow] }
                    }
                    return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
                }
                #expect(allowed == 20)
            }
            #expect(chain.processIDs[0] == host)
        }
    }
}

/// Threads that do nothing, busily.
private final class Crowd: Sendable {
    private let isOver = Atomic(false)

    init(threads: Int) {
        for _ in 0..<threads {
            var thread = pthread_t()
            let crowd = Unmanaged.passRetained(self).toOpaque()
            pthread_create(&thread, nil, { Crowd.spin($0) }, crowd)
            pthread_detach(thread)
        }
    }

    func leave() { isOver.store(true, ordering: .relaxed) }

    private static func spin(_ crowd: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let crowd else { return nil }
        let me = Unmanaged<Crowd>.fromOpaque(crowd).takeRetainedValue()
        while !me.isOver.load(ordering: .relaxed) {}
        return nil
    }
}
