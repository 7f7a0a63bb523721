import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePorts
import SluiceValues
import SluiceWire
import Testing

@Suite(.timeLimit(.minutes(3))) struct `Records of a plugin` {
    private static let audited = #"{ "plugins": [{ "file": "libAuditTrail.so", "config": { "types": ["Order"] } }] }"#

    @Test func `are in their topic when the write they belong to is acknowledged`() async throws {
        let kafka = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        let app = "shop-\(UUID().uuidString.prefix(8).lowercased())"
        try await RunningGateway.deploy { deployment in
            let files = ShopApp.files.merging([
                "plugins.json": Self.audited, "realm_config.json": #"{ "app_id": "\#(app)", "name": "shop" }"#,
            ]) { $1 }
            try await deployment.run(files, kafka: kafka) { gateway in
                let session = try await gateway.openSession()
                try await session.subscribe(1, [("Order", "store == 'north'")])
                try await session.upload(1, [TestSession.order("mine", ["store": .string("north"), "size": .int(1)])])
                try await session.receive { $0.keys("Order") == ["mine"] }
                let records = try await Self.records(of: app, at: kafka)
                #expect(records.map { $0["operation"]?.string } == ["insert"])
                #expect(records.first?["id"]?.string == "mine" && records.first?["after"]?["size"]?.int == 1)
                session.close()
            }
        }
    }

    @Test func `that cannot be kept have their writes undone, and operators are told why`() async throws {
        try await RunningGateway.with(files: ["plugins.json": Self.audited]) { gateway in
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            try await session.upload(1, [TestSession.order("mine", ["store": .string("north"), "size": .int(1)])])
            try await session.receive { $0.compensations.count == 1 }
            #expect(try await gateway.eventually("SELECT count(*) FROM orders", is: 0))
            let reason = try #require(session.compensations.first?.error.message)
            #expect(reason == "The rules of the server could not be asked about this write, so it was undone.")
            let named = "SELECT count(*) FROM sluice.rejected_write WHERE rule LIKE '%(___): %' AND reason NOT LIKE '%ecord%'"
            #expect(try await gateway.eventually(named, is: 1))
            session.close()
        }
    }

    private static func records(of app: String, at address: String) async throws -> [JSON] {
        let log = try KafkaLog(KafkaConfiguration(bootstrapServers: address, clientID: "test"), logger: Logger.quiet)
        let partitions = (0..<4).map { LogPartition("\(app).records.audit", $0) }
        let ends = try await log.ends(of: partitions)
        var records: [JSON] = []
        let reader = try await log.makeReader()
        try await reader.assign(Dictionary(uniqueKeysWithValues: partitions.map { ($0, 0) }))
        var fetch = LogFetch()
        while records.count < ends.values.reduce(0, +) {
            fetch = try await reader.next(fetch, milliseconds: 1_000)
            for entry in fetch.entries { records.append(try JSON.parse(Array(fetch.arena[entry.value]))) }
        }
        await reader.close()
        await log.close()
        return records
    }
}
