import Glibc
import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(1))) struct `Supervising a plugin's process` {
    private let types = ["Store"]

    @Test(arguments: [("do-crash", "signal 11"), ("do-abort", "signal 6"), ("do-exit", "exit status 3")])
    func `a crash costs the call that caused it, and the next call works`(word: String, how: String) async throws {
        try await withChain([faulty()]) { chain in
            let before = chain.processIDs[0]
            let error = await failure { try await chain.openSession(user: user(word), types: types) }
            #expect(error?.code == .pluginCrashed)
            #expect(error?.operatorText.contains(how) == true)
            let plan = try await chain.openSession(user: user("somebody"), types: types)
            #expect(plan?["Store"].read == "size > 1")
            #expect(chain.processIDs[0] != before)
        }
    }

    @Test func `calls that were waiting behind a crash are answered by the next host`() async throws {
        try await withChain([faulty()]) { chain in
            let outcomes = await withTaskGroup(of: (Int, ErrorCode?).self) { group in
                for index in 0..<20 {
                    group.addTask {
                        let id = index == 3 ? "do-crash" : "somebody \(index)"
                        return (index, await failure { try await chain.openSession(user: user(id), types: ["Store"]) }?.code)
                    }
                }
                return await group.reduce(into: [Int: ErrorCode]()) { $0[$1.0] = $1.1 }
            }
            #expect(outcomes == [3: .pluginCrashed])
        }
    }

    @Test func `a hang is ended at the deadline, and the next call works`() async throws {
        try await withChain([faulty(milliseconds: 300)]) { chain in
            let error = await failure { try await chain.openSession(user: user("do-hang"), types: types) }
            #expect(error?.code == .pluginTimeout)
            #expect(error?.message.contains("300 ms") == true)
            let plan = try await chain.openSession(user: user("somebody"), types: types)
            #expect(plan != nil)
        }
    }

    @Test func `a hook with a deadline of its own is ended at that, and the others have theirs`() async throws {
        var spec = faulty(milliseconds: 30_000)
        spec.deadlines = [.checkSubscription: 300_000_000]
        try await withChain([spec]) { chain in
            let queries = [TypeQuery(type: "Store", query: "TRUEPREDICATE")]
            let error = await failure { try await chain.checkSubscription(user: user("do-hang"), queries: queries) }
            #expect(error?.code == .pluginTimeout && error?.message.contains("check_subscription within 300 ms") == true)
            let plan = try await chain.openSession(user: user("do-slow"), types: types)
            #expect(plan != nil)
        }
    }

    @Test func `a new host gets the configuration that its predecessor had`() async throws {
        try await withChain([faulty()]) { chain in
            try await chain.configure(app: ["app_id": "test"])
            _ = await failure { try await chain.openSession(user: user("do-crash"), types: types) }
            let plan = try await chain.openSession(user: user("somebody"), types: types)
            #expect(plan?["Store"].role == "configured 1")
        }
    }

    @Test(arguments: [
        ("do-crash", ErrorCode.pluginCrashed, "signal 11"), ("do-hang", .pluginTimeout, "did not answer configure within 2000 ms"),
    ])
    func `a plugin that ends or hangs over a configuration is replaced, and keeps the one before`(
        word: String, code: ErrorCode, says: String
    ) async throws {
        var spec = faulty()
        spec.startDeadline = 2_000_000_000
        try await withChain([spec]) { chain in
            try await chain.configure(app: ["app_id": "test"])
            let host = chain.processIDs[0]
            let error = await failure { try await chain.configure(app: ["app_id": .string(word)]) }
            #expect(error?.code == code && error?.operatorText.contains(says) == true, "\(String(describing: error))")
            let plan = try await chain.openSession(user: user("somebody"), types: types)
            // That of the new process, and once more by the chain, which cannot know whether the plugin took up the refused one.
            #expect(plan?["Store"].role == "configured 2" && chain.processIDs[0] != host, "\(plan?["Store"].role ?? "nil")")
        }
    }

    @Test func `who watches hears when calls are refused at once, and when they are not any more`() async throws {
        let counts = Counts()
        try await withChain([faulty()], observer: counts.observer) { chain in
            for number in 0..<PluginLimits.failuresInRow {
                #expect(counts.out.isEmpty)
                // Each another call, which waits for the next host.
                _ = await failure { try await chain.openSession(user: user("do-crash"), types: ["Store", "\(number)"]) }
            }
            await counts.untilOut(2)
            #expect(await answers(chain))
        }
        #expect(counts.out == [true, false])
        // What is stopped is not out.
        let others = Counts()
        try await withChain([faulty()], observer: others.observer) { chain in
            for number in 0..<PluginLimits.failuresInRow {
                _ = await failure { try await chain.openSession(user: user("do-crash"), types: ["Store", "\(number)"]) }
            }
            await others.untilOut(1)
        }
        #expect(others.out.last == false)
    }

    @Test func `operators are told what has become of a plugin`() async throws {
        try await withChain([faulty()]) { chain in
            let fresh = chain.standings[0]
            #expect(fresh.state == .running && fresh.info?.name == "FaultyC" && fresh.processID.map { kill($0, 0) } == 0)
            _ = await failure { try await chain.openSession(user: user("do-deny"), types: types) }
            let denied = chain.standings[0]
            #expect(denied.denied == 1 && denied.failures == 0 && denied.trouble == nil && denied.calls == fresh.calls + 1)
            _ = await failure { try await chain.openSession(user: user("do-crash"), types: types) }
            let crashed = chain.standings[0]
            #expect(crashed.denied == 1 && crashed.failures == 1 && crashed.ends == 1)
            #expect(crashed.trouble?.error.code == .pluginCrashed, "\(crashed)")
            #expect(await answers(chain))
            #expect(chain.standings[0].state == .running)
            // An answer in a wrong form is a failure as well.
            _ = await failure { try await chain.openSession(user: user("do-misspell"), types: types) }
            #expect(chain.standings[0].trouble?.error.code == .pluginBadAnswer && chain.standings[0].failures == 2)
            await chain.stop()
            #expect(chain.standings[0].state == .stopped && chain.standings[0].processID == nil)
        }
    }

    @Test func `a call that ends the host twice is refused, others are not`() async throws {
        try await withChain([faulty()]) { chain in
            for _ in 0..<2 { _ = await failure { try await chain.openSession(user: user("do-crash"), types: types) } }
            let plan = try await chain.openSession(user: user("somebody"), types: types)
            let host = chain.processIDs[0]
            let error = await failure { try await chain.openSession(user: user("do-crash"), types: types) }
            #expect(error?.code == .pluginCrashed)
            #expect(error?.message.contains("ended the plugin's host before") == true)
            #expect(chain.processIDs[0] == host)
            #expect(plan != nil)
        }
    }

    @Test func `a host that is killed from outside is replaced`() async throws {
        let log = LogBook()
        try await withChain([faulty()], log: log) { chain in
            let pid = try #require(chain.processIDs[0])
            kill(pid, SIGKILL)
            await log.wait(for: "the plugin host ended")
            let plan = try await chain.openSession(user: user("somebody"), types: types)
            #expect(plan != nil)
            #expect(chain.processIDs[0] != pid)
        }
    }

    @Test func `a plugin that leaks is ended at its limit of memory`() async throws {
        var spec = faulty(milliseconds: 20_000)
        spec.memoryBytes = 256 << 20
        try await withChain([spec]) { chain in
            let error = await failure { try await chain.openSession(user: user("do-leak"), types: types) }
            #expect(error?.code == .pluginCrashed)
            #expect(await answers(chain))
        }
    }

    @Test func `bytes of the plugin on the host's socket end the host`() async throws {
        try await withChain([faulty()]) { chain in
            let error = await failure { try await chain.openSession(user: user("do-write-to-socket"), types: types) }
            #expect(error?.code == .pluginBadAnswer)
            #expect(await answers(chain))
        }
    }

    @Test func `one plugin's crash does not touch another`() async throws {
        let quiet = PluginSpec(path: Built.plugin("DenyAllC"), config: ["allow": ["Store"]])
        try await withChain([quiet, faulty()]) { chain in
            try await chain.configure(app: ["app_id": "test"])
            let host = chain.processIDs[0]
            _ = await failure { try await chain.openSession(user: user("do-crash"), types: types) }
            #expect(await answers(chain))
            #expect(chain.processIDs[0] == host)
        }
    }

    @Test func `the host ends with its chain`() async throws {
        let pid = try await withChain([faulty()]) { $0.processIDs[0] }
        #expect(kill(try #require(pid), 0) == -1)
        #expect(errno == ESRCH)
    }

    @Test func `Ctrl-C in the gateway's terminal does not reach the host`() async throws {
        try await withChain([faulty()]) { chain in
            let host = try #require(chain.processIDs[0])
            #expect(getpgid(host) == host && getpgid(host) != getpgrp())
        }
    }

    @Test func `what a plugin says reaches the log`() async throws {
        let log = LogBook()
        try await withChain([faulty()], log: log) { chain in
            _ = try await chain.openSession(user: user("do-speak"), types: types)
            await log.wait(for: "a word through the host")
            await log.wait(for: "a word on standard error")
        }
        #expect(log.lines.contains("warning plugin log plugin=libFaultyC.so text=a word through the host"))
        #expect(log.lines.contains("notice plugin log plugin=libFaultyC.so text=a word on standard error"))
    }

    @Test func `a babbling plugin cannot flood the log`() async throws {
        let log = LogBook()
        try await withChain([faulty(milliseconds: 20_000)], log: log) { chain in
            _ = try await chain.openSession(user: user("do-babble"), types: types)
        }
        #expect(log.lines.count { $0.contains("babble") } < 5_000)
        #expect(log.lines.contains { $0.contains("babble 0") })
    }

    @Test func `a stopped chain refuses`() async throws {
        let chain = PluginChain(plugins: [faulty()], hostExecutable: Built.host, logger: LogBook().logger)
        try await chain.start()
        await chain.stop()
        let error = await failure { try await chain.openSession(user: user("somebody"), types: types) }
        #expect(error?.code == .pluginUnavailable)
    }

    @Test func `stopping fails the calls in flight`() async throws {
        let chain = PluginChain(plugins: [faulty(milliseconds: 60_000)], hostExecutable: Built.host, logger: LogBook().logger)
        try await chain.start()
        async let hanging = failure { try await chain.openSession(user: user("do-hang"), types: ["Store"]) }
        async let stopped: Void = chain.stop()
        let error = await hanging
        await stopped
        #expect(error?.code == .pluginUnavailable)
    }
}
