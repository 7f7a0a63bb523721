import Foundation
import SluiceCore
import SluicePluginHost
import SluicePorts
import Testing

@Suite(.timeLimit(.minutes(1))) struct `A plugin's process` {
    private let types = ["Store"]

    /// What came of everything that FaultyC tries, by its name.
    private func attempts(_ chain: PluginChain) async throws -> [String: String] {
        let plan = try #require(try await chain.openSession(user: user("do-break-out"), types: types))
        let pairs = plan["Store"].role.split(separator: " ").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
        return Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], $0[1]) })
    }

    @Test func `reaches no file, network, process or foreign memory, also while it is loaded`() async throws {
        let attempts = try await withChain([faulty()]) { try await self.attempts($0) }
        for what in ["loading", "passwd", "create", "environment", "memory"] { #expect(attempts[what] == "EACCES", "\(what): \(attempts)") }
        for what in [
            "remove", "internet", "local", "fork", "exec", "trace", "read", "kill", "own", "limit", "share", "share-later", "stack",
            "namespace",
            "ring",
        ] {
            #expect(attempts[what] == "EPERM", "\(what): \(attempts)")
        }
        for what in ["thread", "private-later"] { #expect(attempts[what] == "open", "\(what): \(attempts)") }
        #expect(attempts.count == 22)
    }

    @Test func `is shut in by everything that this kernel has, and says so`() async throws {
        let log = LogBook()
        try await withChain([faulty()], log: log) { chain in
            #expect(chain.plugins[0].missing == [])
            #expect(chain.missing == [:])
        }
        #expect(!log.lines.contains { $0.hasPrefix("warning") })
    }

    @Test(arguments: [("landlock", "loading"), ("seccomp", "fork")])
    func `lives on a kernel that lacks a part, says which, and keeps to the rest`(part: String, open: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let host = folder.appendingPathComponent("without-\(part)").path
        try FileManager.default.createSymbolicLink(atPath: host, withDestinationPath: "\(Built.hosted)/old-kernel")
        let log = LogBook()
        let chain = PluginChain(plugins: [faulty()], hostExecutable: host, logger: log.logger)
        try await chain.start()
        let attempts = try await attempts(chain)
        #expect(chain.missing == [part: 1])
        await chain.stop()
        #expect(attempts[open] == "open", "\(attempts)")
        for what in ["passwd", "create", "environment", "memory"] { #expect(attempts[what] == "EACCES", "\(what): \(attempts)") }
        #expect(attempts["internet"] == (part == "landlock" ? "EPERM" : "open"))
        #expect(log.lines.contains { $0.hasPrefix("warning The kernel has no") && $0.lowercased().contains(part) })
    }

    @Test func `reads the files of the folder that is its own, and no others`() async throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let own = root.appendingPathComponent("own")
        try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        for file in [own.appendingPathComponent("data"), root.appendingPathComponent("data")] { try Data("here".utf8).write(to: file) }
        var spec = faulty()
        spec.folder = own.path
        try await withChain([spec]) { chain in
            let mine = try await chain.openSession(user: user("do-read:\(own.path)/data;"), types: types)
            #expect(mine?["Store"].role == "here")
            let theirs = try await chain.openSession(user: user("do-read:\(own.path)/../data;"), types: types)
            #expect(theirs?["Store"].role == "EACCES")
        }
    }

    @Test func `starts no more threads than its bound, and the next process has the bound again`() async throws {
        try await withChain([faulty(milliseconds: 20_000)]) { chain in
            for _ in 0..<2 {
                let plan = try await chain.openSession(user: user("do-multiply"), types: types)
                let words = plan?["Store"].role.split(separator: " ") ?? []
                // The thread of the hooks is one of them.
                #expect(words.last == "EAGAIN" && words.first.flatMap { Int($0) } == PluginLimits.threads - 1, "\(words)")
                #expect(await answers(chain))
                _ = await failure { try await chain.openSession(user: user("do-crash"), types: types) }
            }
        }
    }

    @Test func `cannot get round its limit of memory by sharing`() async throws {
        var spec = faulty(milliseconds: 20_000)
        spec.memoryBytes = 256 << 20
        try await withChain([spec]) { chain in
            let error = await failure { try await chain.openSession(user: user("do-share"), types: types) }
            #expect(error?.code == .pluginCrashed)
            #expect(await answers(chain))
        }
    }

    @Test func `loads the bytes that were checked, whatever becomes of the file, in each host that follows`() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).so")
        try FileManager.default.copyItem(atPath: Built.plugin("FaultyC"), toPath: file.path)
        defer { try? FileManager.default.removeItem(at: file) }
        let spec = PluginSpec(
            path: file.path, image: try PluginImage(PluginImage.read(file.path), path: file.path), deadline: 5_000_000_000)
        try Data("something else".utf8).write(to: file)
        try await withChain([spec]) { chain in
            #expect(await answers(chain))
            _ = await failure { try await chain.openSession(user: user("do-crash"), types: types) }
            #expect(await answers(chain))
        }
    }

    @Test func `counts calls, failures and hosts that ended`() async throws {
        let counts = Counts()
        let chain = PluginChain(
            plugins: [faulty()], hostExecutable: Built.host, logger: LogBook().logger, observer: counts.observer)
        try await chain.start()
        _ = try await chain.openSession(user: user("somebody"), types: types)
        for word in ["do-crash", "do-fail"] { _ = await failure { try await chain.openSession(user: user(word), types: types) } }
        await chain.stop()
        #expect(counts.calls == 3)
        #expect(counts.failures == 2)
        #expect(counts.ended == ["libFaultyC.so"])
    }
}
