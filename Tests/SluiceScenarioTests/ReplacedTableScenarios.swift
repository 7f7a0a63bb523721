import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceSDK
import Testing

/// An operator makes a table anew under its name, from one that was filled before devices synced last: PostgreSQL tells nobody.
@Suite(.timeLimit(.minutes(5))) struct `A table that is made anew` {
    private static let filled = """
        INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 3) AS i;
        CREATE TABLE fresh (LIKE orders INCLUDING ALL);
        INSERT INTO fresh (_id, store, size) VALUES ('n1', 'north', 10), ('n2', 'north', 2), ('old', 'north', 1)
        """
    private static let swapped = """
        BEGIN;
        ALTER TABLE orders RENAME TO before;
        ALTER TABLE fresh RENAME TO orders;
        COMMIT;
        INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 2);
        DELETE FROM orders WHERE _id = 'n2'
        """

    @MainActor
    private static func isSwapped(_ phone: Phone) async throws {
        try await phone.wait { Set($0.map(\._id)) == ["n1", "old", "new"] && $0.first { $0._id == "n1" }?.size == 10 }
    }

    /// Both ways, as with any table.
    @MainActor
    private static func goesOn(_ phones: [Phone], _ gateway: RunningGateway) async throws {
        try phones[0].add("late")
        try await phones[0].session.wait(for: .upload)
        try await gateway.sql("UPDATE orders SET size = 99 WHERE _id = 'old'; DELETE FROM orders WHERE _id = 'new'")
        for phone in phones {
            try await phone.wait { Set($0.map(\._id)) == ["n1", "old", "late"] && $0.first { $0._id == "old" }?.size == 99 }
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
        }
    }

    @MainActor
    @Test func `is what devices have soon, those that are there and those that come back`() async throws {
        let log = LinesOfLog()
        try await RunningGateway.with(logger: Logger(label: "test") { _ in log }) { @MainActor gateway in
            try await gateway.sql(Self.filled)
            let phones = [
                try await Phone.open(gateway, orders: ["store == 'north'"]), try await Phone.open(gateway, orders: ["store == 'north'"]),
            ]
            for phone in phones { #expect(phone.keys == ["n1", "n2", "n3"]) }
            phones[1].session.suspend()
            try await gateway.sql(Self.swapped)
            phones[1].session.resume()
            for phone in phones { try await Self.isSwapped(phone) }
            await log.wait(for: "A table was replaced, or not published completely", about: "\(ErrorCode.logGap.rawValue)")
            try await Self.goesOn(phones, gateway)
        }
    }

    @MainActor
    @Test(arguments: [false, true])
    func `is what devices have when no gateway saw it`(withKafka: Bool) async throws {
        let log = try AppLog()
        try await RunningGateway.deploy { @MainActor deployment in
            var phone: Phone?
            let kafka = withKafka ? log.broker : nil
            let port = try await deployment.run(log.files, port: 0, kafka: kafka) { @MainActor gateway in
                try await gateway.sql(Self.filled)
                phone = try await Phone.open(gateway, orders: ["store == 'north'"], mode: .manual())
                #expect(phone?.keys == ["n1", "n2", "n3"])
                return gateway.port
            }
            try await RunningGateway(url: "", adminURL: "", conninfo: deployment.conninfo).sql(Self.swapped)
            _ = try await deployment.run(log.files, port: port, kafka: kafka) { @MainActor gateway in
                let phone = try #require(phone)
                try await Self.isSwapped(phone)
                try await Self.goesOn([phone], gateway)
                return gateway.port
            }
        }
        if withKafka { try await log.deleteTopics() }
    }

    /// PostgreSQL publishes what happens to the partitions as the table's, except for this.
    @MainActor
    @Test func `is a partition that is truncated by itself, too, and what it had leaves`() async throws {
        let orders =
            "CREATE TABLE orders (_id text PRIMARY KEY, store text NOT NULL, title text, size bigint NOT NULL DEFAULT 0, secret text)"
        let tables = ShopApp.tables.replacing(
            orders,
            with: """
                \(orders) PARTITION BY RANGE (_id);
                CREATE TABLE low PARTITION OF orders FOR VALUES FROM ('a') TO ('m');
                CREATE TABLE high PARTITION OF orders FOR VALUES FROM ('m') TO ('zzz')
                """)
        try await RunningGateway.deploy(tables) { @MainActor deployment in
            try await deployment.run(ShopApp.files) { @MainActor gateway in
                try await gateway.sql("INSERT INTO orders (_id, store) VALUES ('a1', 'north'), ('a2', 'north'), ('n1', 'north')")
                let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
                #expect(phone.keys == ["a1", "a2", "n1"])
                try await gateway.sql("TRUNCATE low; INSERT INTO orders (_id, store) VALUES ('a3', 'north')")
                try await phone.wait { Set($0.map(\._id)) == ["a3", "n1"] }
                try phone.add("a4")
                try await phone.session.wait(for: .upload)
                try await gateway.sql("UPDATE orders SET size = 99 WHERE _id = 'n1'")
                try await phone.wait { Set($0.map(\._id)) == ["a3", "a4", "n1"] && $0.contains { $0._id == "n1" && $0.size == 99 } }
                #expect(phone.said.all.isEmpty, "\(phone.said.all)")
            }
        }
    }
}
