import SluiceCore
import SluiceKafka
import Testing

/// The access lists of the brokers, and their decisions.
@Suite(.timeLimit(.minutes(2)))
struct AccessListTests {
    private static func access(_ broker: AccessListBroker) async throws -> ClusterAccess {
        var configuration = KafkaConfiguration(bootstrapServers: "127.0.0.1:\(broker.port)", clientID: "test")
        configuration.requestTimeout = .seconds(20)
        defer { broker.close() }
        return try await withAdmin(configuration) { await $0.access(ClusterFacts()) }
    }

    @Test func `of topics and of the cluster are read with their patterns, hosts and permissions`() async throws {
        let broker = try AccessListBroker([
            .init(kind: 4, name: "kafka-cluster", entries: [("User:a", "*", 8, 3)]),
            .init(kind: 2, name: "app.", pattern: 4, entries: [("User:a", "10.0.0.1", 3, 3), ("User:*", "*", 2, 2)]),
            .init(kind: 2, name: "*", entries: [("User:b", "*", 10, 3)]),
        ])
        let access = try await Self.access(broker)
        let wanted: [AccessLists.Entry] = [
            .init(.cluster, principal: "User:a", operation: .describe),
            .init(.topic("app."), isPrefix: true, principal: "User:a", host: "10.0.0.1", operation: .read),
            .init(.topic("app."), isPrefix: true, principal: "User:*", operation: .all, isAllowed: false),
            .init(.topic("*"), principal: "User:b", operation: .other),
        ]
        #expect(access == .lists(AccessLists(wanted)), "\(access)")
    }

    /// librdkafka drops the error of an answer without entries.
    @Test(arguments: [Int16(31), 54]) func `are empty if the brokers refuse to tell them`(error: Int16) async throws {
        #expect(try await Self.access(try AccessListBroker(error: error)) == .lists(AccessLists([])))
    }

    @Test func `are not asked for without an authorizer, and unread without an answer`() async throws {
        var open = ClusterFacts()
        open.defaults["authorizer.class.name"] = ""
        // The mock answers no such request.
        let cluster = try MockCluster()
        var configuration = cluster.configuration
        configuration.requestTimeout = .seconds(1)
        let (first, second) = try await withAdmin(configuration) { [open] in (await $0.access(open), await $0.access(ClusterFacts())) }
        #expect(first == .open)
        guard case .unread(let error) = second else {
            Issue.record("\(second)")
            return
        }
        #expect(error.code == .logUnreachable, "\(error)")
    }

    // MARK: Decisions

    private static let lists = AccessLists([
        .init(.topic("app."), isPrefix: true, principal: "User:a", operation: .read),
        .init(.topic("app.Item"), principal: "User:a", operation: .write), .init(.topic("app.Item"), principal: "User:b", operation: .all),
        .init(.topic("*"), principal: "User:c", operation: .all),
        .init(.topic("app.Item"), principal: "User:c", operation: .write, isAllowed: false),
        .init(.topic("app.Item"), principal: "User:a", host: "10.0.0.9", operation: .read, isAllowed: false),
        .init(.cluster, principal: "User:*", operation: .alter),
    ])

    @Test(arguments: [
        ("app.Item", AccessLists.Operation.read, "User:a", AccessLists.Verdict.allowed), ("app.Item", .write, "User:a", .allowed),
        ("app.Item", .describe, "User:a", .allowed), ("app.Item", .delete, "User:a", .missing(hasEntries: true)),
        ("app.Other", .write, "User:a", .missing(hasEntries: true)), ("app.Item", .write, "User:b", .allowed),
        ("app.Other", .read, "User:b", .missing(hasEntries: true)), ("other", .read, "User:c", .allowed),
        ("app.Item", .write, "User:c", .denied(lists.entries[4])), ("app.Item", .read, "User:c", .allowed),
    ])
    func `decide by name, beginning and wildcard, and a denial wins`(
        topic: String, operation: AccessLists.Operation, principal: String, verdict: AccessLists.Verdict
    ) {
        #expect(Self.lists.verdict(on: .topic(topic), operation, of: principal) == verdict)
    }

    @Test func `of the cluster say nothing of topics, and a resource without an entry is known as one`() {
        let cluster = AccessLists(Self.lists.entries.filter { $0.resource == .cluster })
        #expect(cluster.verdict(on: .cluster, .describe, of: "User:z") == .allowed)
        #expect(cluster.verdict(on: .topic("app.Item"), .read, of: "User:z") == .missing(hasEntries: false))
        #expect(AccessLists([]).verdict(on: .cluster, .describe, of: "User:z") == .missing(hasEntries: false))
    }

    @Test(arguments: [
        ("", "User:ANONYMOUS"), ("security.protocol=SSL", "User:ANONYMOUS"), ("security.protocol=SSL\nssl.certificate.location=c.pem", nil),
        ("security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=kim", "User:kim"),
        ("security.protocol=sasl_plaintext\nsasl.mechanisms=PLAIN\nsasl.username=kim", "User:kim"),
        ("security.protocol=SASL_SSL", nil), ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", nil),
    ])
    func `know an account by the name of its log-in`(settings: String, principal: String?) throws {
        #expect(try KafkaSettings(parsing: settings, file: "kafka.properties").principal == principal)
    }
}
