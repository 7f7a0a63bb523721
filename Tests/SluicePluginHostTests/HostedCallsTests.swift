import SluiceCore
import SluicePluginHost
import TestSupport
import Testing

/// Drives the state machine with a pretended host and clock.
private struct Rig {
    var calls: HostedCalls
    var now: UInt64 = 0
    var sent: [HostedMessage] = []
    var results: [UInt64: Result<HookAnswer, SluiceError>] = [:]
    var starts = 0
    var kills = 0
    var looks = 0
    /// What the host's thread did since it began, nanoseconds; nil: nobody can tell.
    var busy: UInt64? = nil
    var isAsleep = true

    init(isReplaceable: Bool = true, callsInFlight: Int = PluginLimits.callsInFlight) {
        calls = HostedCalls(plugin: "p", startBudget: 1_000, isReplaceable: isReplaceable, callsInFlight: callsInFlight)
        run()
        load()
    }

    mutating func perform(_ actions: [HostedCalls.Action]) {
        for action in actions {
            switch action {
            case .start:
                starts += 1
                sent = []
                perform(calls.hostStarted(path: "p.so", now: now))
            case .send(let message): sent.append(message)
            case .finish(let id, let result):
                #expect(results[id] == nil, "call \(id) was finished twice")
                results[id] = result
            case .kill:
                kills += 1
                perform(calls.hostEnded("killed", now: now))
            case .look:
                looks += 1
                perform(calls.looked(busy.map { ThreadUse(busy: $0, isAsleep: isAsleep, from: now, to: now) }, now: now))
            }
        }
    }

    mutating func run() { perform(calls.tick(now: now)) }

    mutating func load(name: String = "p", version: String = "1") {
        let info = #"{"name":"\#(name)","version":"\#(version)","hooks":[1,2]}"#
        perform(calls.received(id: 0, HookAnswer(status: .ok, bytes: Array(info.utf8)), now: now))
    }

    mutating func submit(
        _ id: UInt64, hook: Hook = .openSession, input: String? = nil, budget: UInt64 = 100, patience: UInt64? = nil,
        hasPriority: Bool = false,
        identity: String? = nil
    ) {
        let input = Array((input ?? "input \(id)").utf8)
        let budget = CallBudget(processor: 5_000_000, work: budget, patience: patience ?? budget)
        let expires = now + budget.patience
        var call = HostedCalls.Call(id: id, hook: hook, input: input, expires: expires, budget: budget)
        (call.hasPriority, call.identity) = (hasPriority, identity.map { Array($0.utf8) })
        perform(calls.submit(call, now: now))
    }

    mutating func answer(_ id: UInt64, _ status: HookAnswer.Status = .ok) {
        perform(calls.received(id: id, HookAnswer(status: status, bytes: []), now: now))
    }

    /// The next host, at the time when it is due.
    mutating func comeBack() {
        if case .down(let until) = calls.phase { advance(to: until) }
        load()
    }

    mutating func crash() { perform(calls.hostEnded("signal 11", now: now)) }

    mutating func advance(to time: UInt64) {
        now = time
        run()
    }

    /// Numbers of the calls that the present host was sent, loading and configuring being 0.
    var sentIDs: [UInt64] {
        sent.map { if case .call(let id, _, _, _, _) = $0 { id } else { .max } }
    }

    func code(_ id: UInt64) -> ErrorCode? { if case .failure(let error)? = results[id] { error.code } else { nil } }
    func isAnswered(_ id: UInt64) -> Bool { if case .success? = results[id] { true } else { false } }
}

@Suite struct `Calls of a hosted plugin` {
    @Test func `are sent at once and answered in order`() {
        var rig = Rig()
        rig.submit(1)
        rig.submit(2)
        #expect(rig.sentIDs == [0, 1, 2])
        rig.answer(1)
        rig.answer(2)
        #expect(rig.isAnswered(1) && rig.isAnswered(2))
    }

    @Test func `wait while the host starts`() {
        var rig = Rig()
        rig.crash()
        rig.submit(1)
        #expect(rig.sentIDs == [0])
        rig.load()
        #expect(rig.sentIDs == [0, 1])
    }

    @Test func `with priority precede those that wait without it, in their own order`() {
        var rig = Rig(callsInFlight: 1)
        rig.submit(1)
        rig.submit(2)
        rig.submit(3, hasPriority: true)
        rig.submit(4, hasPriority: true)
        #expect(rig.sentIDs == [0, 1])
        for id in [1, 3, 4, 2] as [UInt64] { rig.answer(id) }
        #expect(rig.sentIDs == [0, 1, 3, 4, 2] && (1...4).allSatisfy { rig.isAnswered($0) })
    }

    @Test func `of one identity are quarantined together`() {
        var rig = Rig()
        for id in [1, 2] as [UInt64] {
            rig.submit(id, identity: "same")
            rig.crash()
            rig.comeBack()
        }
        rig.submit(3, identity: "same")
        rig.submit(4, identity: "another")
        #expect(rig.code(3) == .pluginCrashed && rig.sentIDs == [0, 4])
    }

    /// Every line of its log and every metric has them.
    @Test(arguments: [(129, 1), (1, 129)])
    func `are none of a plugin that calls itself or its version something too long`(name: Int, version: Int) {
        var rig = Rig()
        rig.crash()
        rig.submit(1)
        rig.load(name: String(repeating: "n", count: name), version: String(repeating: "1", count: version))
        #expect(rig.kills == 1 && rig.calls.lastError?.code == .pluginRefused && !rig.sentIDs.contains(1))
        var other = Rig()
        other.crash()
        other.submit(1)
        other.load(name: String(repeating: "n", count: 128), version: String(repeating: "1", count: 128))
        #expect(other.kills == 0 && other.sentIDs == [0, 1])
    }

    @Test func `only the oldest is blamed for a crash`() {
        var rig = Rig()
        for id in 1...3 as ClosedRange<UInt64> { rig.submit(id) }
        rig.answer(1)
        rig.crash()
        rig.load()
        #expect(rig.code(2) == .pluginCrashed)
        #expect(rig.sentIDs == [0, 3])
        rig.answer(3)
        #expect(rig.isAnswered(3))
    }

    @Test func `that hang cost the host, and only then`() {
        var rig = Rig()
        rig.submit(1)
        rig.now = 60
        rig.submit(2)
        rig.advance(to: 99)
        #expect(rig.kills == 0)
        rig.advance(to: 100)
        #expect(rig.kills == 1)
        #expect(rig.code(1) == .pluginTimeout)
        rig.load()
        rig.answer(2)
        #expect(rig.isAnswered(2))
    }

    /// A host that has had its first call, and a call that has 5 ms and may take a second by the clock.
    private func working() -> Rig {
        var rig = Rig()
        rig.submit(1)
        rig.answer(1)
        rig.busy = 0
        rig.submit(2, budget: 1_000_000_000)
        return rig
    }

    @Test func `that sleep through their deadline cost the host, at the second look at the latest`() {
        var rig = working()
        rig.advance(to: 4_999_999)
        #expect(rig.looks == 0)
        rig.advance(to: 5_000_000)
        #expect(rig.looks == 1 && rig.kills == 0)
        rig.advance(to: 9_999_999)
        #expect(rig.kills == 0)
        rig.advance(to: 10_000_000)
        #expect(rig.kills == 1 && rig.code(2) == .pluginTimeout)
        if case .failure(let error)? = rig.results[2] { #expect(error.message == "p slept for more than 5 ms in open_session") }
    }

    @Test func `that sleep a little at a time do, too`() throws {
        var rig = working()
        var last: UInt64 = 0
        while rig.kills == 0 {
            let due = try #require(rig.calls.nextWake)
            // Of five milliseconds it works four and is found asleep.
            rig.busy = (rig.busy ?? 0) + (due - last) / 5 * 4
            last = due
            rig.advance(to: due)
            try #require(due < 1_000_000_000)
        }
        // 5 ms of sleep in 25 ms, which do not begin before the first look.
        #expect((30_000_000...31_000_000).contains(rig.now), "\(rig.now)")
    }

    @Test func `that work, wait for a processor or a disk, or are held up do not`() throws {
        for excuse in 0..<4 {
            var rig = working()
            while rig.now < 500_000_000 {
                let due = try #require(rig.calls.nextWake)
                switch excuse {
                case 0: rig.busy = due
                case 1: rig.isAsleep = false
                // Nobody can tell.
                case 2: rig.busy = nil
                // It may have waited for the answer to a question.
                default: rig.calls.hostWaited()
                }
                rig.advance(to: due)
            }
            #expect(rig.kills == 0 && rig.looks > 50, "\(excuse): \(rig.looks)")
            rig.answer(2)
            #expect(rig.isAnswered(2))
        }
    }

    @Test func `are looked at anew when their turn comes, and the first of a hook has longer`() {
        var rig = working()
        rig.submit(3, budget: 1_000_000_000)
        rig.submit(4, hook: .checkSubscription, budget: 2_000_000_000)
        rig.advance(to: 8_000_000)
        rig.answer(2)
        rig.advance(to: 12_000_000)
        #expect(rig.kills == 0)
        rig.answer(3)
        // Half a second more for code that is still to be read.
        for _ in 0..<2 {
            rig.advance(to: rig.now + 504_000_000)
            #expect(rig.kills == 0)
        }
        rig.answer(4)
        rig.advance(to: 3_000_000_000)
        #expect(rig.kills == 0 && rig.calls.nextWake == nil)
    }

    @Test func `that wait behind a slow one fail without costing the host`() {
        var rig = Rig()
        rig.submit(1)
        rig.submit(2)
        rig.now = 90
        rig.answer(1)
        rig.advance(to: 100)
        #expect(rig.code(2) == .pluginUnavailable)
        #expect(rig.kills == 0)
        rig.now = 120
        rig.answer(2)
        rig.submit(3)
        rig.answer(3)
        #expect(rig.isAnswered(3))
        #expect(rig.kills == 0)
    }

    @Test func `that wait behind a hang are answered by the next host`() {
        var rig = Rig()
        rig.submit(1)
        rig.submit(2, patience: 1_000)
        rig.advance(to: 100)
        #expect(rig.code(1) == .pluginTimeout && rig.code(2) == nil)
        rig.load()
        rig.answer(2)
        #expect(rig.isAnswered(2))
    }

    @Test func `that use up their processor time are late, whether that ended the host or not`() {
        var rig = Rig()
        rig.submit(1)
        rig.submit(2)
        rig.answer(1, .overrun)
        #expect(rig.code(1) == .pluginTimeout)
        rig.perform(rig.calls.hostEnded("signal 24", overran: true, now: rig.now))
        #expect(rig.code(2) == .pluginTimeout)
        rig.load()
        rig.submit(3)
        rig.answer(3)
        #expect(rig.isAnswered(3))
    }

    @Test func `never outlive their deadline when the host does not come back`() {
        var rig = Rig()
        rig.crash()
        rig.submit(1)
        rig.advance(to: 100)
        #expect(rig.code(1) == .pluginUnavailable)
    }

    @Test func `that repeat a crash are refused`() {
        var rig = Rig()
        for id in 1...2 as ClosedRange<UInt64> {
            rig.submit(id, input: "poison")
            rig.crash()
            if case .down(let until) = rig.calls.phase { rig.advance(to: until) }
            rig.load()
        }
        rig.submit(3, input: "poison")
        rig.submit(4)
        #expect(rig.code(3) == .pluginCrashed)
        #expect(rig.sentIDs == [0, 4])
        rig.answer(4)
        rig.advance(to: rig.now + PluginLimits.poisonNanoseconds)
        rig.submit(5, input: "poison")
        #expect(rig.sentIDs.last == 5)
    }

    @Test func `are not sent beyond the bounds`() {
        var rig = Rig()
        let count = UInt64(PluginLimits.callsInFlight)
        for id in 1...count + 5 { rig.submit(id) }
        #expect(rig.sentIDs.count == Int(count) + 1)
        rig.answer(1)
        #expect(rig.sentIDs.last == count + 1)
    }

    @Test func `answered out of turn cost the host`() {
        var rig = Rig()
        rig.submit(1)
        rig.submit(2)
        rig.answer(2)
        #expect(rig.kills == 1)
        #expect(rig.code(1) == .pluginBadAnswer)
    }

    @Test func `wait for a host that has ended a few times, and for none that ends again and again`() {
        var rig = Rig()
        let day: UInt64 = 86_400_000_000_000
        for id in 1...4 as ClosedRange<UInt64> {
            rig.submit(id, patience: day)
            rig.crash()
            #expect(rig.code(id) == .pluginCrashed)
            if id == 4 { rig.submit(50, patience: day) }
            #expect(rig.code(50) == nil)
            rig.comeBack()
        }
        rig.submit(5, patience: day)
        rig.crash()
        #expect(rig.code(50) == .pluginCrashed && rig.code(5) == .pluginUnavailable)
        rig.submit(6, patience: day)
        #expect(rig.code(6) == .pluginUnavailable)
        rig.advance(to: rig.now + PluginLimits.restartNanoseconds)
        // The next one is being tried.
        rig.submit(7, patience: day)
        #expect(rig.code(7) == .pluginUnavailable)
        rig.load()
        rig.submit(8, patience: day)
        rig.answer(8)
        #expect(rig.isAnswered(8))
        rig.crash()
        rig.submit(9, patience: day)
        rig.load()
        rig.answer(9)
        #expect(rig.isAnswered(9))
    }

    @Test func `are refused while no host starts, and served by the first that does`() {
        var rig = Rig()
        let day: UInt64 = 86_400_000_000_000
        rig.crash()
        rig.submit(1, patience: day)
        for _ in 0..<3 {
            rig.perform(rig.calls.startFailed(SluiceError(.pluginUnavailable, "no descriptor"), now: rig.now))
            rig.advance(to: rig.now + PluginLimits.restartNanoseconds)
        }
        #expect(rig.code(1) == nil)
        rig.perform(rig.calls.startFailed(SluiceError(.pluginUnavailable, "no descriptor"), now: rig.now))
        #expect(rig.code(1) == .pluginUnavailable)
        rig.advance(to: rig.now + PluginLimits.restartNanoseconds)
        rig.load()
        rig.submit(2, patience: day)
        rig.answer(2)
        #expect(rig.isAnswered(2))
    }

    @Test func `fail when the chain stops`() {
        var rig = Rig()
        rig.submit(1)
        rig.perform(rig.calls.stop())
        rig.submit(2)
        #expect(rig.code(1) == .pluginUnavailable && rig.code(2) == .pluginUnavailable)
        #expect(rig.calls.nextWake == nil)
    }

    @Test func `in process time out without a kill`() {
        var rig = Rig(isReplaceable: false)
        rig.submit(1)
        rig.advance(to: 500)
        #expect(rig.code(1) == .pluginTimeout)
        #expect(rig.kills == 0)
        rig.answer(1)
        rig.submit(2)
        rig.answer(2)
        #expect(rig.isAnswered(2))
    }
}

@Suite struct `A plugin's host` {
    @Test func `is started again ever more slowly while nothing works`() {
        var rig = Rig()
        var pauses: [UInt64] = []
        for _ in 0..<12 {
            rig.crash()
            guard case .down(let until) = rig.calls.phase else {
                pauses.append(0)
                rig.load()
                continue
            }
            pauses.append((until - rig.now) / 1_000_000)
            rig.advance(to: until)
            rig.load()
        }
        #expect(pauses == [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000, 10_000])
    }

    @Test func `is configured as its predecessor was`() {
        var rig = Rig()
        rig.submit(1, hook: .configure, input: "first")
        rig.answer(1)
        rig.submit(2, hook: .configure, input: "second")
        rig.answer(2, .failed)
        rig.crash()
        rig.load()
        guard case .call(0, .configure, _, _, let input)? = rig.sent.last else {
            Issue.record("the new host was sent \(rig.sent)")
            return
        }
        #expect(String(decoding: input, as: UTF8.self) == "first")
        rig.submit(3)
        #expect(rig.sentIDs == [0, 0])
        rig.answer(0)
        #expect(rig.sentIDs == [0, 0, 3])
    }

    @Test func `that does not start in time is replaced`() {
        var rig = Rig()
        rig.crash()
        rig.advance(to: 1_000)
        #expect(rig.kills == 1)
        #expect(rig.calls.lastError?.code == .pluginTimeout)
    }

    @Test(arguments: [UInt64.random(in: 0 ... .max), 7, 8, 9])
    func `answers or fails every call exactly once, whatever happens`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var rig = Rig()
        var last: UInt64 = 0
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<4:
                last += 1
                rig.submit(last, input: "kind \(last % 50)", budget: UInt64.random(in: 1...400, using: &generator))
            case 4..<7:
                switch rig.calls.phase {
                case .starting: rig.load()
                case .ready:
                    let open = rig.sentIDs.first { $0 != 0 }
                    if let open {
                        rig.sent.removeAll { if case .call(open, _, _, _, _) = $0 { true } else { false } }
                        rig.answer(open)
                    }
                default: break
                }
            case 7: if rig.calls.phase == .ready { rig.crash() }
            default: rig.advance(to: rig.now + UInt64.random(in: 1...200, using: &generator))
            }
            if case .down(let until) = rig.calls.phase { rig.advance(to: until) }
        }
        rig.perform(rig.calls.stop())
        #expect(rig.results.count == Int(last), "seed \(seed)")
    }
}
