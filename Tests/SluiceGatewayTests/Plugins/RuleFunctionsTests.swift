import IdentityTestSupport
import SluiceCore
import SluiceIdentity
import SluicePorts
import SluiceValues
import Synchronization
import TestSupport
import Testing

@testable import SluiceGateway

@Suite(.timeLimit(.minutes(1))) struct `Functions that rules call` {
    private static let ann = UserContext(id: "ann", data: ["email": "ann@example.com"])
    private static let calls = [RuleCall("isChief", arguments: ["%%user.data.email", "%%values.region", 1]), RuleCall("isOpen")]

    private static func functions(_ scripted: ScriptedFunctions, _ environment: any Environment = HeldTimers()) -> RuleFunctions {
        RuleFunctions(scripted, facts: .init(id: "shop", values: ["region": "north"]), environment: environment)
    }

    @Test func `receive values in place of names, and their results stand beside the names`() async throws {
        let scripted = ScriptedFunctions { call in call.name == "isChief" ? true : ["open": 1] }
        let results = try await Self.functions(scripted).results(of: Self.calls, for: Self.ann)
        #expect(
            results == [
                RuleFunctionResult(name: "isChief", arguments: Self.calls[0].arguments, result: true),
                RuleFunctionResult(name: "isOpen", arguments: [], result: ["open": 1]),
            ])
        #expect(
            Set(scripted.calls) == [
                FunctionCall("isChief", arguments: ["ann@example.com", "north", 1], caller: .rules(Self.ann)),
                FunctionCall("isOpen", arguments: [], caller: .rules(Self.ann)),
            ])
    }

    @Test func `are called once for all sessions of a user within a minute`() async throws {
        let (environment, isOpen) = (HeldTimers(), Watched(false))
        let scripted = ScriptedFunctions { _ in
            _ = await isOpen.until(\.self)
            return true
        }
        let functions = Self.functions(scripted, environment)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<20 { group.addTask { try await functions.results(of: Self.calls, for: Self.ann).count } }
            isOpen.change { $0 = true }
            for try await count in group { #expect(count == 2) }
        }
        _ = try await functions.results(of: Self.calls, for: Self.ann)
        #expect(scripted.calls.count == 2)
        environment.clock.advance(seconds: 61)
        _ = try await functions.results(of: Self.calls, for: Self.ann)
        #expect(scripted.calls.count == 4)
    }

    @Test func `in a plugin are called again by the next generation of the rules`() async throws {
        let scripted = ScriptedFunctions { _ in true }
        let functions = RuleFunctions(
            scripted, facts: .init(id: "shop"), inPlugins: ["isOpen"], environment: ManualEnvironment())
        for generation in [1, 1, 2, 2] as [UInt64] {
            _ = try await functions.results(of: Self.calls, for: Self.ann, generation: generation)
        }
        #expect(scripted.calls.map(\.name).sorted() == ["isChief", "isOpen", "isOpen"])
    }

    @Test func `run in a bounded number at a time`() async throws {
        let running = Mutex((now: 0, most: 0))
        let scripted = ScriptedFunctions { _ in
            running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            for _ in 0..<20 { await Task.yield() }
            running.withLock { $0.now -= 1 }
            return true
        }
        let functions = Self.functions(scripted)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask { _ = try await functions.results(of: [RuleCall("f")], for: UserContext(id: "u\(number)")) }
            }
            try await group.waitForAll()
        }
        #expect(scripted.calls.count == 200)
        #expect((1...RuleFunctions.width).contains(running.withLock(\.most)))
    }

    @Test func `wait for a turn no longer than half a minute, while those that run go on`() async throws {
        let (environment, isOpen) = (HeldTimers(), Watched(false))
        let scripted = ScriptedFunctions { _ in
            _ = await isOpen.until(\.self)
            return true
        }
        let functions = Self.functions(scripted, environment)
        func open(_ name: String) async throws -> Int {
            try await functions.results(of: [RuleCall("f")], for: UserContext(id: name)).count
        }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<RuleFunctions.width { group.addTask { try await open("u\(number)") } }
            #expect(await scripted.until(RuleFunctions.width))
            let late = Task { try await open("late") }
            #expect(await environment.timers.until { $0.map(\.nanoseconds) == [RuleFunctions.patience] })
            for timer in environment.timers.value { timer.body() }
            let error = await #expect(throws: SluiceError.self) { try await late.value }
            #expect(error?.code == .pluginUnavailable && error?.operatorText.contains("was not called within 30 s") == true)
            isOpen.change { $0 = true }
            for try await count in group { #expect(count == 1) }
        }
        // Its turn went to others, and a later try has one.
        #expect(try await open("late") == 1)
        #expect(scripted.calls.count == RuleFunctions.width + 1)
    }

    @Test func `that fail leave the session waiting, and are called again by the next try`() async throws {
        let isAway = Mutex(true)
        let scripted = ScriptedFunctions { _ throws(SluiceError) in
            guard !isAway.withLock(\.self) else { throw SluiceError(.functionUnavailable, "The service of 'isChief' is away.") }
            return true
        }
        let functions = Self.functions(scripted)
        let error = await #expect(throws: SluiceError.self) { try await functions.results(of: Self.calls, for: Self.ann) }
        #expect(error?.code == .pluginUnavailable && error?.code.isPluginFailure == true)
        // A client does not learn the names of functions.
        #expect(error?.message.contains("isChief") == false && error?.fix?.contains("isChief") != true)
        #expect(error?.operatorText.contains("isChief") == true)
        isAway.withLock { $0 = false }
        #expect(try await functions.results(of: Self.calls, for: Self.ann).count == 2)
    }

    @Test func `have results of a bounded size`() async throws {
        let scripted = ScriptedFunctions { _ in .string(String(repeating: "a", count: RuleResults.bytes)) }
        let error = await #expect(throws: SluiceError.self) {
            try await Self.functions(scripted).results(of: Self.calls, for: Self.ann)
        }
        #expect(error?.code == .pluginUnavailable && error?.operatorText.contains("too large for a rule") == true)
    }
}

/// Functions as a closure of the call. It records the calls.
private final class ScriptedFunctions: AppFunctions {
    typealias Script = @Sendable (FunctionCall) async throws(SluiceError) -> JSON

    private let script: Script
    private let received = Watched<[FunctionCall]>([])

    init(_ script: @escaping Script) { self.script = script }

    var calls: [FunctionCall] { received.value }

    func until(_ count: Int) async -> Bool { await received.until { $0.count >= count } }

    func canCall(_ name: String) -> Bool { true }

    func call(_ call: FunctionCall) async throws(SluiceError) -> JSON {
        received.change { $0.append(call) }
        return try await script(call)
    }
}

/// A clock that stands until it is moved, and timers that a test calls.
private struct HeldTimers: Environment {
    struct Timer: Sendable {
        var nanoseconds: UInt64
        var body: @Sendable () -> Void
    }

    let clock = ManualEnvironment()
    let timers = Watched<[Timer]>([])

    func wallMilliseconds() -> Int64 { clock.wallMilliseconds() }
    func monotonicNanoseconds() -> UInt64 { clock.monotonicNanoseconds() }
    func random() -> UInt64 { clock.random() }
    func sleep(nanoseconds: UInt64) async throws { try await clock.sleep(nanoseconds: nanoseconds) }
    func after(nanoseconds: UInt64, _ body: @escaping @Sendable () -> Void) -> EnvironmentTimer {
        timers.change { $0.append(Timer(nanoseconds: nanoseconds, body: body)) }
        return EnvironmentTimer {}
    }
}
