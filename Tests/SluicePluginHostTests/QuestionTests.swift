import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(1))) struct `What a plugin asks the gateway` {
    private let services = HostServices(
        customData: { (user) async throws(SluiceError) in
            if user == "broken" { throw SluiceError(.pluginUnavailable, "no database") }
            return user == "ann" ? ["zone": "north"] : nil
        },
        parse: { (type, predicate) throws(SluiceError) in
            if predicate.hasSuffix(">") { throw SluiceError(.querySyntax, "something is missing") }
            return "\(type): \(predicate)"
        })

    @Test(arguments: [PluginSpec.Mode.process, .inProcess])
    func `is answered within a hook, and refused where it is asked wrongly`(mode: PluginSpec.Mode) async throws {
        let counts = Counts()
        var spec = faulty(mode)
        // The answers take as long as the machine is busy with other tests.
        spec.stall = 30_000_000_000
        try await withChain([spec], observer: counts.observer, services: services) { chain in
            let plan = try #require(try await chain.openSession(user: user("do-ask"), types: ["Store"]))
            let told = plan["Store"].role
            #expect(
                told == """
                    loading=failed user=ok+ nobody=deny null=deny no-context=failed+ bad-context=failed+ oversized=failed+ predicate=ok+ \
                    bad-predicate=deny+ thread=failed count=ok bad-name=failed endless-name=failed count-nowhere=failed many-counters=failed
                    """)
            #expect(await answers(chain))
        }
        #expect(counts.counted["FaultyC.asked"] == 3)
        #expect(counts.counted.count == PluginLimits.counters)
    }

    @Test func `does not mix up the calls that come meanwhile`() async throws {
        try await withChain([faulty(milliseconds: 30_000)], services: services) { chain in
            let answered = await withTaskGroup(of: Bool.self) { group in
                for index in 0..<60 {
                    group.addTask {
                        let id = index % 3 == 0 ? "do-ask \(index)" : "user \(index)"
                        let plan = try? await chain.openSession(user: user(id), types: ["Store"])
                        return plan?["Store"].read == (index % 3 == 0 ? "FALSEPREDICATE" : "size > 1")
                    }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(answered == 60)
        }
    }

    @Test func `ends with the call when the gateway does not answer it`() async throws {
        let (silence, end) = AsyncStream<Never>.makeStream()
        defer { end.finish() }
        var silent = services
        silent.customData = { (_) async throws(SluiceError) in
            for await _ in silence {}
            return nil
        }
        var spec = PluginSpec(path: Built.plugin("FaultyC"))
        spec.stall = 250_000_000
        try await withChain([spec], services: silent) { chain in
            let error = await failure { try await chain.openSession(user: user("do-ask"), types: ["Store"]) }
            #expect(error?.code == .pluginTimeout)
            #expect(error?.message.contains("did not answer open_session within 300 ms") == true)
        }
    }
}
