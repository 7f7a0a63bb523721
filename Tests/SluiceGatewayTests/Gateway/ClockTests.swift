import GatewayTestSupport
import SluiceCore
import Testing

/// Of writes that know nothing of each other the latest counts, by clocks that may be wrong.
@Suite(.timeLimit(.minutes(5))) struct `A device whose clock is ahead` {
    /// By five minutes at most (DESIGN section 5), however far it is.
    @Test func `by a day has the last word for minutes, not for a day`() async throws {
        let now = SystemEnvironment().wallMilliseconds()
        let (day, later): (Int64, Int64) = (86_400_000, 600_000)
        @Sendable func write(_ title: String, at milliseconds: Int64, in gateway: RunningGateway) async throws {
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            let change = NoteApp.change("Order", "n1", ["title": .string(title)])
            try await session.upload(1, [change], time: HybridTime(milliseconds: milliseconds), base: .zero)
            try await session.receive { $0.acknowledged == 1 }
            #expect(session.compensations.isEmpty && session.error == nil)
            session.close()
        }
        try await RunningGateway.deploy { deployment in
            try await deployment.run(ShopApp.files) { gateway in
                try await gateway.sql("INSERT INTO orders (_id, store, title, size) VALUES ('n1', 'north', 'first', 1)")
                try await write("ahead", at: now + day, in: gateway)
                try await write("at the same time", at: now, in: gateway)
                #expect(try await gateway.texts("SELECT title FROM orders") == ["ahead"])
            }
            try await deployment.run(ShopApp.files, environment: Ahead(milliseconds: later)) { gateway in
                try await write("later", at: now + later, in: gateway)
                #expect(try await gateway.texts("SELECT title FROM orders") == ["later"])
            }
        }
    }
}
