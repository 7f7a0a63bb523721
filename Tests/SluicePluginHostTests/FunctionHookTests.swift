import CSluicePlugin
import Foundation
import Glibc
import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(1))) struct `Functions of an app in a plugin` {
    private static let modes: [PluginSpec.Mode] = [.process, .inProcess]
    private static let ann = UserContext(id: "ann", data: ["email": "ann@example.com"], customData: ["team": "red"])

    private static func call(
        _ arguments: [JSON], by user: UserContext? = ann, plugin: String = "FaultyC", id: String = "7", milliseconds: Int = 5_000,
        answerBytes: Int = 1 << 20
    ) -> PluginFunctionCall {
        PluginFunctionCall(
            plugin, .function(name: "sum", arguments: arguments, user: user, runAs: user?.id ?? "system"), id: id,
            milliseconds: milliseconds, answerBytes: answerBytes)
    }

    private static func login(_ payload: JSON) -> PluginFunctionCall {
        PluginFunctionCall("FaultyC", .login(payload: payload), id: "7", milliseconds: 5_000, answerBytes: 1 << 20)
    }

    private func with<R>(_ spec: PluginSpec = faulty(), _ body: (PluginChain) async throws -> R) async throws -> R {
        try await withChain([spec], functions: ["FaultyC"]) { try await body($0) }
    }

    // MARK: Forms

    @Test(arguments: modes) func `receive the call in the form of the header, and answer with any JSON`(mode: PluginSpec.Mode) async throws
    {
        try await with(faulty(mode)) { chain in
            let answer = try await chain.call(Self.call([1, ["$numberLong": "2"]]))
            let user: JSON = [
                "id": "ann", "type": "normal", "data": ["email": "ann@example.com"], "custom_data": ["team": "red"], "identities": [],
            ]
            let given: JSON = [
                "function": "sum", "arguments": [1, ["$numberLong": "2"]], "user": user, "run_as": "ann", "request_id": "7",
            ]
            #expect(answer == .result(["given": given]))
            // By the gateway itself.
            guard case .result(let own) = try await chain.call(Self.call([], by: nil)) else { throw NoAnswer() }
            #expect(own["given"]?["user"] == .null && own["given"]?["run_as"] == "system")
            let next = try await chain.call(Self.call(["do-nothing"]))
            #expect(next == .result(.null))
        }
    }

    private struct NoAnswer: Error {}

    @Test(arguments: modes) func `identify a user by the hook for logins`(mode: PluginSpec.Mode) async throws {
        try await with(faulty(mode)) { chain in
            let (ann, bob) = (try await chain.call(Self.login(["name": "ann"])), try await chain.call(Self.login(["name": "bob"])))
            #expect(ann == .result(["id": "ann", "name": "Ann"]) && bob == .denied("It knows Ann alone."))
        }
    }

    @Test(arguments: [
        ("do-no-id", "the answer.id is no text"), ("do-empty-id", "the id is empty"), ("do-odd-name", "the name is no text"),
        ("do-odd-key", "unknown key \"nme\""), ("do-garbage", "not JSON"),
    ])
    func `are no login with an identity in another form`(word: String, text: String) async throws {
        try await with { chain in
            let error = await failure { try await chain.call(Self.login(["word": .string(word)])) }
            #expect(error?.code == .pluginBadAnswer && error?.message.contains(text) == true, "\(String(describing: error))")
        }
    }

    // MARK: Errors

    @Test(arguments: [
        ("do-fail", ErrorCode.pluginFailed, "the directory service is down"), ("do-odd-status", .pluginFailed, "failed in call_function"),
        ("do-garbage", .pluginBadAnswer, "not JSON"), ("do-overflow", .pluginBadAnswer, "more than"),
        ("do-crash", .pluginCrashed, "signal 11"),
    ])
    func `have a named error for each answer that cannot be used`(word: String, code: ErrorCode, text: String) async throws {
        try await with { chain in
            let error = await failure { try await chain.call(Self.call([.string(word)])) }
            #expect(error?.code == code && error?.operatorText.contains(text) == true, "\(String(describing: error))")
            let next = try await chain.call(Self.call(["do-nothing"]))
            #expect(next == .result(.null))
        }
    }

    @Test func `have their own error, with its text`() async throws {
        let counts = Counts()
        try await withChain([faulty()], functions: ["FaultyC"], observer: counts.observer) { chain in
            let next = try await chain.call(Self.call(["do-deny"]))
            #expect(next == .denied("not today"))
            #expect(chain.standings.map(\.denied) == [0, 1] && chain.standings.map(\.failures) == [0, 0])
            #expect(counts.calls == 1 && counts.failures == 1)
        }
    }

    @Test func `have answers of a bounded size`() async throws {
        try await with { chain in
            let error = await failure { try await chain.call(Self.call(["x"], answerBytes: 20)) }
            #expect(error?.code == .limitsExceeded && error?.fix?.contains("at most 20 bytes") == true, "\(String(describing: error))")
        }
    }

    @Test func `that hang are ended at their time, also in the queue behind`() async throws {
        try await with { chain in
            // Either may be the first one, behind which the other waits.
            async let one = failure { try await chain.call(Self.call(["do-hang"], milliseconds: 300)) }
            async let other = failure { try await chain.call(Self.call(["do-hang"], id: "8", milliseconds: 300)) }
            let errors = [await one, await other]
            for error in errors {
                #expect([.pluginTimeout, .pluginUnavailable].contains(error?.code), "\(String(describing: error))")
            }
            let next = try await chain.call(Self.call(["do-nothing"]))
            #expect(next == .result(.null))
            #expect(chain.standings[1].ends == 1 && chain.standings[0].ends == 0)
        }
    }

    @Test func `that end their process twice by the same call are quarantined, whatever the id of the call is`() async throws {
        try await with { chain in
            for id in ["1", "2"] { _ = await failure { try await chain.call(Self.call(["do-crash"], id: id)) } }
            let next = try await chain.call(Self.call(["do-nothing"]))
            #expect(next == .result(.null))
            let host = chain.processIDs[1]
            let error = await failure { try await chain.call(Self.call(["do-crash"], id: "3")) }
            #expect(error?.code == .pluginCrashed && error?.message.contains("ended the plugin's host before") == true)
            #expect(chain.processIDs[1] == host)
        }
    }

    // MARK: Two hosts

    @Test(arguments: modes) func `delay no hook that a session waits for`(mode: PluginSpec.Mode) async throws {
        try await with(faulty(mode)) { chain in
            let before = chain.processIDs
            // Until its time is over, the plugin does nothing else in the host for functions.
            async let hanging = failure { try await chain.call(Self.call(["do-slow"], milliseconds: 3_000)) }
            for _ in 0..<20 { #expect(await answers(chain)) }
            #expect(await hanging == nil)
            #expect(chain.processIDs == before)
        }
    }

    @Test func `run in a process of their own, which has the configuration, too`() async throws {
        try await with { chain in
            try await chain.configure(app: ["app_id": "test"])
            let standings = chain.standings
            #expect(standings.map(\.isForFunctions) == [false, true] && standings.map(\.info?.name) == ["FaultyC", "FaultyC"])
            let processes = standings.compactMap(\.processID)
            #expect(Set(processes).count == 2 && processes.allSatisfy { kill($0, 0) == 0 })
            _ = await failure { try await chain.call(Self.call(["do-crash"])) }
            #expect(await answers(chain))
            #expect(chain.processIDs[0] == processes[0] && chain.standings.map(\.ends) == [0, 1])
            // A configuration that one of the two rejects is rejected.
            let error = await failure { try await chain.configure(app: ["app_id": "do-deny"]) }
            #expect(error?.code == .pluginRefused)
            await chain.stop()
            #expect(chain.standings.map(\.state) == [.stopped, .stopped])
        }
    }

    @Test func `have no process if no function names the plugin`() async throws {
        try await withChain([faulty()], functions: ["Another"]) { chain in
            #expect(chain.standings.count == 1)
            let error = await failure { try await chain.call(Self.call([])) }
            #expect(error?.code == .pluginUnavailable && error?.message.contains("'FaultyC' has no hook call_function") == true)
        }
    }

    @Test func `are checked before a plugin is adopted`() async throws {
        try await with { chain in
            try await chain.configure(app: ["app_id": "test"])
            try await chain.conform(schema: schema)
            try await chain.configure(app: ["app_id": "configured-to-misidentify"])
            let error = await failure { try await chain.conform(schema: schema) }
            #expect(error?.code == .pluginUnfit, "\(String(describing: error))")
            #expect(error?.message.contains("fails at authenticate of an empty payload") == true, "\(String(describing: error))")
        }
    }

    // MARK: Versions

    @Test(arguments: modes) func `are absent in a plugin of the first minor version, which loads`(mode: PluginSpec.Mode) async throws {
        let spec = PluginSpec(path: Built.plugin("MinorZeroC", mode), mode: mode)
        try await withChain([spec], functions: ["MinorZeroC"]) { chain in
            #expect(chain.plugins.first?.hooks == [.openSession] && chain.plugins.first?.runsFunctions == false)
            let plan = try await chain.openSession(user: user("ann"), types: ["Store"])
            #expect(plan?["Store"].role == "reader")
            let error = await failure { try await chain.call(Self.call([], plugin: "MinorZeroC")) }
            #expect(error?.code == .pluginUnavailable && chain.standings.count == 1)
        }
    }

    /// The entry of a plugin in C, with the table of a host of version 1.0: 120 bytes, and others behind them.
    @Test func `are left out by a plugin that an older host loads`() throws {
        let library = try #require(dlopen(Built.plugin("FaultyC", .inProcess), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
        let address = try #require(dlsym(library, "sluice_plugin_entry"))
        typealias Entry =
            @convention(c) (
                UnsafePointer<sluice_host>, UnsafeMutablePointer<sluice_plugin>, UnsafePointer<sluice_sink>
            ) -> sluice_status
        let entry = unsafeBitCast(address, to: Entry.self)
        var host = sluice_host(
            size: UInt32(MemoryLayout<sluice_host>.size), abi_major: 1, abi_minor: 0, reserved: 0, context: nil, log: { _, _, _ in },
            count: { _, _, _ in SLUICE_OK }, custom_data: { _, _, _ in SLUICE_DENY }, parse_predicate: { _, _, _, _ in SLUICE_DENY })
        var sink = sluice_sink(context: nil, write: { _, _ in })
        for (size, isNew) in [(120, false), (MemoryLayout<sluice_plugin>.size, true)] {
            var table = sluice_plugin()
            withUnsafeMutableBytes(of: &table) { bytes in
                for index in size..<bytes.count { bytes[index] = 0x55 }
            }
            (table.size, table.abi_major) = (UInt32(size), 1)
            #expect(entry(&host, &table, &sink) == SLUICE_OK)
            #expect(table.user_changed != nil)
            withUnsafeBytes(of: table) { bytes in
                #expect(bytes[size...].allSatisfy { $0 == 0x55 })
                #expect(bytes[120...].allSatisfy { $0 == 0x55 } == !isNew)
            }
        }
    }
}
