import Foundation
import SluiceCore
import SluicePluginHost
import TestSupport
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

    /// 0 leaves nothing, 63 bytes are no header yet.
    @Test(arguments: [PluginSpec.Mode.process, .inProcess])
    func `names a file that is cut short`(mode: PluginSpec.Mode) async throws {
        let whole = try PluginImage.read(Built.plugin("FaultyC", mode))
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let counts = [0, 4, 63, 64, 200, 4_096] + [50, 90, 99].map { whole.count * $0 / 100 } + [whole.count - 1]
        for count in counts {
            let path = folder.appendingPathComponent("cut-\(count).so").path
            try Data(whole.prefix(count)).write(to: URL(fileURLWithPath: path))
            let error = await startError(PluginSpec(path: path, mode: mode))
            #expect(error?.code == .pluginMissing, "\(count) of \(whole.count) bytes: \(error?.description ?? "loaded")")
            #expect(error?.message.contains("\(path) cannot be loaded") == true, "\(error?.message ?? "")")
        }
    }

    @Test(arguments: seeds(100)) func `survives a header that is nonsense`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var bytes = Array(try PluginImage.read(Built.plugin("FaultyC")).prefix(2_000))
        for _ in 0..<1 + random.below(12) { bytes[4 + random.below(200)] = UInt8(truncatingIfNeeded: random.next()) }
        for _ in 0..<random.below(3) { bytes[32 + random.below(32)] = 0xFF }
        // Whatever it is, it is an answer.
        _ = try? PluginImage(bytes, path: "nonsense.so")
    }

    @Test(arguments: [PluginSpec.Mode.process, .inProcess])
    func `refuses a plugin of another version, naming both and which side to upgrade`(mode: PluginSpec.Mode) async {
        let error = await startError(PluginSpec(path: Built.plugin("OtherVersionC", mode), mode: mode))
        #expect(error?.code == .pluginABIMismatch)
        #expect(error?.message.contains("libOtherVersionC.so is built for version 2.4") == true)
        #expect(error?.message.contains("this is 1.1: the gateway is to be upgraded") == true)
    }

    @Test func `names the plugin as the side to upgrade when its version is the lower one`() {
        let error = PluginLoader.mismatch("libOld.so", major: 0, minor: 9)
        #expect(error?.code == .pluginABIMismatch)
        #expect(error?.message.contains("libOld.so is built for version 0.9") == true)
        #expect(error?.message.contains("this is 1.1: the plugin is to be built with this release's sluice_plugin.h") == true)
        #expect(PluginLoader.mismatch("libNew.so", major: 1, minor: 7) == nil, "A later minor version only appends.")
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
