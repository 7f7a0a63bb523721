import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceDevServer
import SluicePostgres
import TestSupport
import Testing

/// What the console is for: it is there when other things are not.
@Suite(.timeLimit(.minutes(5))) struct `The operator console in trouble` {
    @Test func `shows the error of a part that hangs in its place, and all others`() async throws {
        try await RunningGateway.with { gateway in
            let other = try await PostgresConnection.connect(gateway.conninfo)
            _ = try await other.script("BEGIN; LOCK TABLE sluice.quarantine IN ACCESS EXCLUSIVE MODE")
            let begin = ContinuousClock.now
            // More looks than the pool has connections.
            for _ in 0..<3 {
                let pages = try await withThrowingTaskGroup(of: PageOfConsole.self) { group in
                    for _ in 0..<4 { group.addTask { try await gateway.console().page } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                for page in pages {
                    #expect(page.text("unfit").contains("The quarantine could not be read within 2 s."), "\(page.text("unfit"))")
                    #expect(page.text("refused").contains("None.") && page.number("Slot") != nil && page.text("status").contains("Ready."))
                }
            }
            #expect(.now - begin < .seconds(30))
            _ = try await other.script("ROLLBACK")
            await other.close()
            let isBack = try await eventually { try await gateway.console().page.text("unfit").contains("None.") }
            #expect(isBack)
        }
    }

    @Test func `says what is not ready, and is there without PostgreSQL`() async throws {
        let folder = "/tmp/sluice-console-\(UInt64.random(in: .min ... .max))"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let server = try await PrivatePostgres.start(in: folder, settings: ["fsync": "off"])
        do {
            let connection = try await PostgresConnection.connect(server.conninfo)
            _ = try await connection.script(ShopApp.tables)
            await connection.close()
            try await RunningGateway.Deployment(conninfo: server.conninfo).run(ShopApp.files) { gateway in
                #expect(try await gateway.console().page.text("status").contains("Ready."))
                await server.stop()
                let told = try await found {
                    let page = try await gateway.console().page
                    return page.text("status").contains("Ready.") ? nil : page
                }
                let page = try #require(told, "It says that it is ready.")
                let status = page.text("status")
                #expect(status.contains("Not ready: publisher.") && status.contains("What to do: "), "\(status)")
                #expect(page.source.contains("<title>NOT READY – shop – Sluice</title>"))
                for part in ["refused", "unfit", "flow"] {
                    #expect(page.text(part).contains("postgres-unreachable"), "\(page.text(part))")
                }
                #expect(page.number("Sessions") == 0 && page.row("Publishes")?[1] == "no")
                let why = try await gateway.console("/console/why", [("user", "x"), ("type", "Order"), ("id", "x")])
                #expect(why.status == 503 && why.page.text("answer").contains("postgres-unreachable"), "\(why.page.text("answer"))")
            }
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }
}
