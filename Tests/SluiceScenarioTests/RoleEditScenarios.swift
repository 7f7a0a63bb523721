import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceReplica
import SluiceSync
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// Roles that are edited while a device is in the middle of something.
@Suite(.timeLimit(.minutes(5))) struct `Roles that are edited meanwhile` {
    /// The shop in which everybody reads orders up to a size.
    private static func files(upTo size: Int) -> [String: String] {
        var files = ShopApp.files
        // What may be written may be read, so both are bounded.
        let filter = #"{ "size": { "$lte": \#(size) } }"#
        let role = NoteApp.role("everybody", read: filter, write: filter)
        files[ShopApp.table("orders", "rules")] = #"{ "database": "public", "collection": "orders", "roles": [\#(role)] }"#
        return files
    }

    /// Puts an app directory's files into a folder, each at once.
    private static func put(_ files: [String: String], in folder: Phone.Folder) throws {
        for (path, text) in files { try folder.put(text, at: path) }
    }

    private static func write(_ device: EngineDevice, _ key: String) throws {
        let transaction = try device.replica.beginWrite()
        try transaction.create(type: 0, key: .string(key), values: ["store": .string("north"), "size": .int(3)])
        try transaction.commit()
    }

    @Test func `Scenario 26: in a bootstrap and in a client reset, the device ends with what it may see then`() async throws {
        let (all, few) = (Self.files(upTo: 1_000_000), Self.files(upTo: 500))
        let folder = try Phone.Folder()
        try await RunningGateway.deploy { deployment in
            let (device, port) = try await deployment.run(all) { gateway in
                try await gateway.sql(Self.rows)
                let path = folder.replica
                let device = try EngineDevice(gateway, token: try await gateway.anonymousToken(), path: path)
                try device.subscribe()
                await device.untilRowsCome()
                return (device, gateway.port)
            }
            try await deployment.run(few, port: port) { gateway in
                try await device.engine.wait(for: .download, milliseconds: 60_000)
                #expect(Set(try device.sizes().values) == Set(1...500))
                #expect(!device.reports.contains { $0.isReset })
                try await Phone.forgetDevices(gateway)
            }
            try Self.write(device, "mine")
            try await deployment.run(all, port: port) { _ in
                for await report in device.news where report.isReset { break }
                await device.untilRowsCome()
            }
            try await deployment.run(few, port: port) { gateway in
                try await device.engine.wait(for: .upload, milliseconds: 60_000)
                try await device.engine.wait(for: .download, milliseconds: 60_000)
                let sizes = try device.sizes()
                #expect(sizes.count == 501 && sizes["mine"] == 3 && sizes["n500"] == 500 && sizes["n501"] == nil)
                #expect(device.reports.count { $0.isReset } == 1, "the edit brings no reset of its own")
                #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
                try await Self.checkFresh(gateway, folder, token: try await gateway.anonymousToken())
                await device.stop()
            }
        }
    }

    @Test func `Scenario 26: a running gateway's roles are edited while rows of a set come`() async throws {
        let (all, few) = (Self.files(upTo: 1_000_000), Self.files(upTo: 500))
        let folder = try Phone.Folder()
        try Self.put(all, in: folder)
        try await RunningGateway.deploy { deployment in
            try await deployment.run(all, directory: folder.url.path) { gateway in
                try await gateway.sql(Self.rows)
                let session = try await gateway.openSession()
                try await session.sendSubscribe(1, [("Order", "store == 'north'")])
                // It reads no further, so that the edit comes before the end of the set whatever the machine does.
                try await session.receive { $0.brought.rows > 0 }
                #expect(session.completed == 0)
                try Self.put(few, in: folder)
                try await gateway.untilMetric("sluice_rule_generation", is: 2)
                try await session.receive(within: 120) { $0.completed == 1 && $0.keys("Order").count == 500 }
                #expect(session.keys("Order") == Set((1...500).map { "n\($0)" }))
                // It is live from there on, by the new roles.
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('many', 'north', 501), ('one', 'north', 1)")
                try await session.receive { $0.keys("Order").contains("one") }
                #expect(!session.keys("Order").contains("many") && session.error == nil)
                session.close()
            }
        }
    }

    @Test func `Scenario 26: a running gateway's roles are edited while a client reset downloads`() async throws {
        let (all, few) = (Self.files(upTo: 1_000_000), Self.files(upTo: 500))
        let (folder, place) = (try Phone.Folder(), try Phone.Folder())
        try Self.put(all, in: folder)
        try await RunningGateway.deploy { deployment in
            try await deployment.run(all, directory: folder.url.path) { gateway in
                let token = try await gateway.anonymousToken()
                let device = try await Self.resetWhileItDownloads(gateway, token: token, in: place) { try Self.put(few, in: folder) }
                await device.stop()
            }
        }
    }

    @Test func `Scenario 27: a user's data change while rows of a set come`() async throws {
        let role = NoteApp.role("member", read: #"{ "team": "%%user.custom_data.team" }"#, write: "false")
        try await NoteApp.with(["Note": "[\(role)]"]) { gateway in
            try await gateway.sql(
                """
                INSERT INTO "Note" (_id, owner_id, team, text)
                SELECT 'n' || g, 'x', CASE WHEN g <= 500 THEN 'blue' ELSE 'red' END, repeat('t', 1000) FROM generate_series(1, 20000) g
                """)
            let ann = try await gateway.account(customData: #"{ "team": "red" }"#)
            try await HeldRelay.with(gateway.url, passing: 1 << 20) { relay in
                let session = try await TestSession.connect(relay.url, token: ann.token)
                try await session.hello(["Note"])
                try await session.sendSubscribe(1, [("Note", "TRUEPREDICATE")])
                try await session.receive { $0.brought.rows > 0 }
                try await gateway.setCustomData(#"{ "team": "blue" }"#, of: ann.id)
                try await gateway.untilMetric("sluice_bootstraps_total", is: 2)
                relay.open()
                try await session.receive(within: 120) { $0.completed == 1 }
                #expect(session.keys("Note") == Set((1...500).map { "n\($0)" }) && session.bootstraps == 1)
                try await gateway.sql(#"INSERT INTO "Note" (_id, owner_id, team) VALUES ('r', 'x', 'red'), ('b', 'x', 'blue')"#)
                try await session.receive { $0.keys("Note").contains("b") }
                #expect(!session.keys("Note").contains("r") && session.error == nil)
                session.close()
            }
        }
    }

    @Test func `Scenario 27: a user's data change while a client reset downloads, and a new file hears nothing of it`() async throws {
        var files = ShopApp.files
        let filter = #"{ "size": { "$lte": "%%user.custom_data.most" } }"#
        let role = NoteApp.role("everybody", read: filter, write: filter)
        files[ShopApp.table("orders", "rules")] = #"{ "database": "public", "collection": "orders", "roles": [\#(role)] }"#
        let place = try Phone.Folder()
        try await RunningGateway.deploy { [files] deployment in
            try await deployment.run(files) { gateway in
                let ann = try await gateway.account(customData: #"{ "most": 1000000 }"#)
                let device = try await Self.resetWhileItDownloads(gateway, token: ann.token, in: place) {
                    try await gateway.setCustomData(#"{ "most": 500 }"#, of: ann.id)
                }
                try await Self.checkFresh(gateway, place, token: ann.token)
                await device.stop()
            }
        }
    }

    /// A device with 20,000 rows and one of its own that is not uploaded, whose rows come anew after a client reset while `edit`
    /// leaves it sizes up to 500: it ends with those and its own, by one reset alone.
    private static func resetWhileItDownloads(
        _ gateway: RunningGateway, token: String, in place: Phone.Folder, edit: () async throws -> Void
    ) async throws -> EngineDevice {
        try await gateway.sql(rows)
        let device = try EngineDevice(gateway, token: token, path: place.replica)
        try device.subscribe()
        try await device.engine.wait(for: .download, milliseconds: 120_000)
        #expect(try device.sizes().count == 20_000)
        device.engine.pause()
        for await report in device.news where report == .connection(.disconnected) { break }
        try write(device, "mine")
        try await Phone.forgetDevices(gateway)
        device.engine.start()
        for await report in device.news where report.isReset { break }
        await device.untilRowsCome()
        try await edit()
        // What the session makes of the edit has no event to wait for.
        try #require(try await eventually(every: .milliseconds(50)) { try device.sizes().count == 501 })
        let sizes = try device.sizes()
        #expect(sizes.count == 501 && sizes["mine"] == 3 && sizes["n500"] == 500 && sizes["n501"] == nil, "\(sizes.count)")
        try await device.engine.wait(for: .upload, milliseconds: 120_000)
        #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
        #expect(device.reports.count { $0.isReset } == 1, "what was edited brings no reset of its own")
        return device
    }

    private static let rows = """
        INSERT INTO orders (_id, store, title, size)
        SELECT 'n' || g, 'north', repeat('t', 50), g FROM generate_series(1, 20000) g
        """

    /// Everybody reads what their own role, which is that of their team, lets through.
    private static func notes(redMayRead teams: String) -> [String: String] {
        let roles = ["red": teams, "green": #"["green"]"#].sorted { $0.key < $1.key }.map { team, teams in
            NoteApp.role(
                team, when: #"{ "%%user.custom_data.team": "\#(team)" }"#, read: #"{ "team": { "$in": \#(teams) } }"#, write: "false")
        }
        return NoteApp.files(["Note": "[\(roles.joined(separator: ", "))]"])
    }

    @Test func `Scenario 26: an edited role is live, with the exact difference for those who have it, and a broken one is not`()
        async throws
    {
        let (few, more) = (Self.notes(redMayRead: #"["red"]"#), Self.notes(redMayRead: #"["red", "blue"]"#))
        let folder = try Phone.Folder()
        try Self.put(few, in: folder)
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            try await deployment.run(few, directory: folder.url.path) { gateway in
                try await gateway.sql(
                    "INSERT INTO \"Note\" SELECT team || g, 'x', team FROM generate_series(1, 10) g, unnest('{red,green,blue}'::text[]) team"
                )
                try await gateway.untilOlderTransactionsEnd()
                let red = try await gateway.noteSession(try await gateway.account(customData: #"{ "team": "red" }"#), ["Note"])
                let green = try await gateway.noteSession(try await gateway.account(customData: #"{ "team": "green" }"#), ["Note"])
                #expect(red.brought == (10, 0) && green.brought == (10, 0))
                try Self.put(more, in: folder)
                try await red.receive { $0.bootstraps == 2 }
                #expect(red.brought == (10, 10) && red.keys("Note").count == 20)

                // What plugins do not accept, and what is not valid JSON, changes nothing, and is counted.
                let rules = ShopApp.table("Note", "rules")
                for (number, broken) in ["{", #"{ "database": "public", "collection": "Note", "roles": [{ "name": 1 }] }"#].enumerated() {
                    try Self.put([rules: broken], in: folder)
                    try await gateway.untilMetric("sluice_rules_refused_total", is: Double(number + 1))
                }
                try await gateway.sql("INSERT INTO \"Note\" VALUES ('b', 'x', 'blue'), ('g', 'x', 'green')")
                try await red.receive { $0.keys("Note").contains("b") }

                // An edit takes away, at once; one that is equal does nothing.
                try Self.put(few, in: folder)
                try await red.receive { $0.bootstraps == 3 }
                #expect(red.brought == (0, 10) && red.keys("Note").count == 10)
                try Self.put(few, in: folder)
                try await gateway.sql("INSERT INTO \"Note\" VALUES ('b2', 'x', 'blue'), ('r2', 'x', 'red'), ('g2', 'x', 'green')")
                try await red.receive { $0.keys("Note").contains("r2") }
                try await green.receive { $0.keys("Note").contains("g2") }
                #expect(!red.keys("Note").contains("b2") && green.bootstraps == 1)
                #expect(try await gateway.metric("sluice_rule_generation") == 3)
                red.close()
                green.close()
            }
        }
    }

    @Test func `Another plugin in the place of one is live, and what is none changes nothing`() async throws {
        let folder = try Phone.Folder()
        let library = folder.url.appendingPathComponent("plugins/libRules.so")
        /// A file takes another's place at once, as a deployment is to do it.
        @Sendable func install(_ bytes: Data, isListed: Bool = true, config: JSON = .null) throws {
            try FileManager.default.createDirectory(at: library.deletingLastPathComponent(), withIntermediateDirectories: true)
            try bytes.write(to: library, options: .atomic)
            guard isListed else { return }
            var list = try PluginList(of: folder.url.path)
            _ = try list.add(library.path, config: config)
        }
        @Sendable func built(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: Built.plugin(name))) }
        // It has nothing to say of sessions.
        try install(try built("WeatherIngest"))
        try Self.put(ShopApp.files, in: folder)
        let files = try AppDirectory.load(at: folder.url.path).files
        let log = LinesOfLog()
        try await RunningGateway.deploy { deployment in
            try await deployment.run(files, directory: folder.url.path, logger: Logger(label: "test") { _ in log }) { gateway in
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
                let session = try await gateway.openSession()
                try await session.subscribe(1, [("Order", "store == 'north'")])
                func refuses(_ number: Int, _ words: String) async throws {
                    try await gateway.untilMetric("sluice_rules_refused_total", is: Double(number))
                    await log.wait(for: "The edited rules cannot be used", about: words)
                    #expect(try await gateway.metric("sluice_rule_generation") == 1)
                }
                try install(Data("nothing of the kind".utf8), isListed: false)
                try await refuses(1, "libRules.so has the SHA-256")
                try install(Data("nothing of the kind".utf8))
                try await refuses(2, "libRules.so cannot be loaded")
                // A library that does not keep to the interface.
                try install(try built("FaultyC"), config: ["word": "configured-to-misspell"])
                try await refuses(3, "open_session")
                // One that ends when it is configured, each time that it is tried.
                try install(try built("FaultyC"), config: ["word": "do-crash"])
                try await refuses(4, "signal 11")
                let whole = try built("DenyAllC")
                try install(whole.prefix(whole.count / 2), config: ["allow": ["Order"]])
                try await refuses(5, "bytes and its headers state")
                try install(try built("OtherVersionC"))
                try await refuses(6, "libRules.so is built for version 2.4 of the plugin interface")
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n2', 'north', 1)")
                try await session.receive { $0.keys("Order") == ["n1", "n2"] }
                try install(try built("DenyAllC"))
                try await session.receive { $0.bootstraps == 2 }
                #expect(session.keys("Order").isEmpty)
                try await session.upload(1, [TestSession.order("mine", ["store": .string("north"), "size": .int(1)])])
                try await session.receive { $0.compensations.count == 1 }
                try install(try built("WeatherIngest"))
                try await session.receive { $0.bootstraps == 3 }
                #expect(session.keys("Order") == ["n1", "n2"])
                session.close()
            }
        }
    }

    /// A file that is new has nothing that the edit could change.
    private static func checkFresh(_ gateway: RunningGateway, _ folder: Phone.Folder, token: String) async throws {
        let path = folder.url.appendingPathComponent("b.replica").path
        let fresh = try EngineDevice(gateway, token: token, path: path)
        try fresh.subscribe()
        try await fresh.engine.wait(for: .download, milliseconds: 60_000)
        #expect(try fresh.sizes().count == 501)
        #expect(!fresh.reports.contains { $0.isInterruption || $0.isReset }, "\(fresh.reports)")
        await fresh.stop()
    }
}
