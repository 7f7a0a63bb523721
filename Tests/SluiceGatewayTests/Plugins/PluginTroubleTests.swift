import SluiceCore
import SluiceGateway
import SluiceWire
import Testing

/// What plugins are asked and ask themselves, and what waits for them, beside what does not.
@Suite(.timeLimit(.minutes(5))) struct `What waits for a plugin` {
    /// - Parameter milliseconds: for each call.
    static func files(milliseconds: Int = 1_000) throws -> [String: String] {
        let plugin = Built.plugin("FaultyC")
        let list = """
            { "plugins": [
                { "file": "\(plugin)", "sha256": "\(try PluginList.sha256(of: plugin))", "deadline_ms": \(milliseconds) }
            ] }
            """
        return FaultyApp.files.merging(["plugins.json": list]) { $1 }
    }

    /// More than there are connections, each of which asks for something itself while it is judged.
    @Test func `is judged when a plugin asks about users, from however many devices it comes at once`() async throws {
        try await RunningGateway.with(files: try Self.files()) { gateway in
            try await withThrowingTaskGroup(of: Int.self) { group in
                let token = try await gateway.anonymousToken()
                for number in 0..<16 {
                    group.addTask {
                        let session = try await gateway.session(token: token)
                        try await session.hello(["Order"])
                        try await session.subscribe(1, [("Order", "store == 'north'")])
                        for write in UInt64(1)...5 {
                            let values: [String: Value] = ["store": .string("north"), "title": .string("do-look"), "size": .int(1)]
                            try await session.upload(write, [TestSession.order("\(number)-\(write)", values)])
                        }
                        try await session.receive { $0.acknowledged == 5 }
                        defer { session.close() }
                        return session.compensations.count
                    }
                }
                #expect(try await group.reduce(0, +) == 0)
            }
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 80)
            #expect(try await gateway.metric("sluice_plugin_restarts_total") == 0)
        }
    }
}
