import SluiceCore
import SluicePluginHost
import Testing

@Suite struct `Loading a plugin` {
    private func startError(_ spec: PluginSpec, host: String = Built.host) async -> SluiceError? {
        await failure { try await withChain([spec]) { _ in } }
    }

    @Test(arguments: [PluginSpec.Mode.process, .inProcess])
    func `names a file that is not there`(mode: PluginSpec.Mode) async {
        let error = await startError(PluginSpec(path: "/nowhere/libNothing.so", mode: mode))
        #expect(error?.code == .pluginMissing)
        #expect(error?.message.contains("/nowhere/libNothing.so") == true)
    }

    @Test func `names a file that is no library`() async {
        let error = await startError(PluginSpec(path: "/proc/self/status"))
        #expect(error?.code == .pluginMissing)
        #expect(error?.message.contains("/proc/self/status cannot be loaded") == true)
    }

    @Test(arguments: [PluginSpec.Mode.process, .inProcess])
    func `refuses a plugin of another version, naming both`(mode: PluginSpec.Mode) async {
        let error = await startError(PluginSpec(path: Built.plugin("OtherVersionC", mode), mode: mode))
        #expect(error?.code == .pluginABIMismatch)
        #expect(error?.message.contains("libOtherVersionC.so is built for version 2.4") == true)
        #expect(error?.message.contains("this is 1.3") == true)
    }

    @Test func `names a host program that is not there`() async {
        let chain = PluginChain(plugins: [faulty()], hostExecutable: "/nowhere/host", logger: LogBook().logger)
        let error = await failure { try await chain.start() }
        #expect(error?.code == .pluginUnavailable)
        #expect(error?.message.contains("/nowhere/host") == true)
    }

    @Test(arguments: [PluginSpec.Mode.process, .inProcess])
    func `tells who the plugin is`(mode: PluginSpec.Mode) async throws {
        let infos = try await withChain([faulty(mode), PluginSpec(path: Built.plugin("DenyAllC", mode), mode: mode)]) { $0.plugins }
        #expect(infos.map(\.name) == ["FaultyC", "DenyAllC"])
        #expect(
            infos[1]
                == PluginInfo(
                    name: "DenyAllC", version: "1.0", hooks: [.configure, .openSession],
                    configSchema: #"{"allow":{"type":"list","of":{"type":"text"}}}"#, missing: mode == .inProcess ? ["process"] : []))
    }

    @Test func `one bad plugin stops the whole chain`() async {
        let chain = PluginChain(
            plugins: [faulty(), PluginSpec(path: "/nowhere/x.so")], hostExecutable: Built.host, logger: LogBook().logger)
        let started = await failure { try await chain.start() }
        #expect(started?.code == .pluginMissing)
        #expect(chain.processIDs == [nil, nil])
    }
}
