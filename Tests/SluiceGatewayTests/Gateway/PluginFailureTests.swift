import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceValues
import SluiceWire
import Testing

@Suite struct `A gateway with a bad plugin` {
    @Test func `does not start when the plugin is not there, and names it`() async throws {
        await #expect { try await RunningGateway.with(plugins: ["/nowhere/libNothing.so"]) { _ in } } throws: { error in
            (error as? SluiceError)?.code == .pluginMissing && "\(error)".contains("/nowhere/libNothing.so")
        }
    }

    @Test func `does not start with a plugin of another version, and names both versions`() async throws {
        await #expect { try await RunningGateway.with(plugins: ["OtherVersionC"]) { _ in } } throws: { error in
            (error as? SluiceError)?.code == .pluginABIMismatch && "\(error)".contains("libOtherVersionC.so")
        }
    }

    @Test func `does not start with a file that is no plugin`() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).so").path
        try Data("nothing of the kind".utf8).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        await #expect { try await RunningGateway.with(plugins: [path]) { _ in } } throws: { error in
            (error as? SluiceError)?.code == .pluginMissing && "\(error)".contains(path)
        }
    }

    @Test func `ends the session in which the plugin crashes with a named error, and lives on`() async throws {
        try await RunningGateway.with(files: FaultyApp.files, plugins: ["FaultyC"], isDevelopment: true) { gateway in
            try await gateway.sql("INSERT INTO stores (_id, name, size) VALUES ('one', 'One', 2)")
            let healthy = try await gateway.openSession(["Store"])
            try await healthy.subscribe(1, [("Store", "TRUEPREDICATE")])
            #expect(healthy.keys("Store") == ["one"])
            for word in ["do-crash", "do-abort", "do-exit"] {
                try await gateway.createUser("\(word)@example.com", customData: #"{"word": "\#(word)"}"#)
                let login = try await gateway.login("\(word)@example.com")
                let session = try await gateway.session(token: try #require(login.json["access_token"]?.string))
                try await session.sendHello(["Store"])
                let error = try await session.failure()
                #expect(error.code == .pluginCrashed, "\(word): \(error)")
                #expect(session.error?.action == .transient)
            }
            try await gateway.sql("INSERT INTO stores (_id, name, size) VALUES ('two', 'Two', 2), ('small', 'Small', 1)")
            try await healthy.receive { $0.keys("Store") == ["one", "two"] }
            // The plugin is back for new sessions.
            let next = try await gateway.openSession(["Store"])
            try await next.subscribe(1, [("Store", "TRUEPREDICATE")])
            #expect(next.keys("Store") == ["one", "two"])
            #expect(next.rows["Store"]?[.string("one")]?["size"] == nil)
        }
    }

    @Test func `tells the plugin when a user's data change, and asks it anew`() async throws {
        let log = LinesOfLog()
        let logger = Logger(label: "test") { _ in log }
        try await RunningGateway.with(files: FaultyApp.files, plugins: ["FaultyC"], isDevelopment: true, logger: logger) { gateway in
            try await gateway.sql("INSERT INTO stores (_id, name, size) VALUES ('one', 'One', 2)")
            let healthy = try await gateway.openSession(["Store"])
            try await healthy.subscribe(1, [("Store", "TRUEPREDICATE")])
            let account = try await gateway.account()
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Store"])
            try await session.subscribe(1, [("Store", "TRUEPREDICATE")])
            // What the plugin makes of it is its failure; it is asked about the session all the same.
            try await gateway.setCustomData(#"{ "word": "do-fail" }"#, of: account.id)
            await log.wait(for: "A session waits for its permissions.")
            #expect(log.lines.contains { $0.message == "A plugin failed in user_changed." })

            // Nothing passes meanwhile, what the client asks for waits, and nobody is disconnected.
            try await gateway.sql("INSERT INTO stores (_id, name, size) VALUES ('two', 'Two', 2)")
            try await healthy.receive { $0.keys("Store") == ["one", "two"] }
            try await session.sendMark(7)
            #expect(session.keys("Store") == ["one"] && session.error == nil)

            // With an answer everything goes on, from where it stood.
            try await gateway.setCustomData("{}", of: account.id)
            try await session.receive { $0.keys("Store") == ["one", "two"] }
            #expect(session.error == nil)

            // A denial is an answer.
            try await gateway.setCustomData(#"{ "word": "do-deny" }"#, of: account.id)
            try await session.receive { $0.keys("Store") == [] }
            #expect(session.error == nil)
        }
    }

    @Test func `takes up edited rules once the plugin can, without another edit`() async throws {
        let log = LinesOfLog()
        let (folder, other) = (try Phone.Folder(), try Phone.Folder())
        let app = ShopApp.files.merging(FaultyApp.files) { $1 }.filter { !$0.value.isEmpty }
        let files = try RunningGateway.listing([Built.plugin("FaultyC")], in: app)
        for (path, text) in files { try folder.put(text, at: path) }
        try await RunningGateway.deploy { deployment in
            try await deployment.run(files, directory: folder.url.path, logger: Logger(label: "test") { _ in log }) { gateway in
                let needed = other.url.appendingPathComponent("needed").path
                try folder.put(#"{ "name": "need", "value": "do-need:\#(needed);" }"#, at: "values/need.json")
                await log.wait(for: "The edited rules cannot be used yet")
                #expect(try await gateway.metric("sluice_rule_generation") == 1)
                try other.put("", at: "needed")
                try await gateway.untilMetric("sluice_rule_generation", is: 2)
                #expect(try await gateway.metric("sluice_rules_refused_total") == 1)
            }
        }
    }
}
