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

    init(isReplaceable: Bool = true) {
        calls = HostedCalls(plugin: "p", startBudget: 1_000, isReplaceable: isReplaceable)
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
            }
        }
    }

    mutating func run() { perform(calls.tick(now: now)) }

    mutating func load() {
        let info = #"{"name":"p","version":"1","hooks":[1,2]}"#
        perform(calls.received(id: 0, HookAnswer(status: .ok, bytes: Array(info.utf8)), now: now))
    }

    mutating func submit(_ id: UInt64, hook: Hook = .openSession, input: String? = nil, budget: UInt64 = 100, patience: UInt64? = nil) {
        let input = Array((input ?? "input \(id)").utf8)
        let budget = CallBudget(processor: 5_000_000, work: budget, patience: patience ?? budget)
        let expires = now + budget.patience
        perform(calls.submit(HostedCalls.Call(id: id, hook: hook, input: input, expires: expires, budget: budget), now: now))
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
