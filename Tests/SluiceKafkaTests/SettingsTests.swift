import CRdKafka
import Foundation
import SluiceCore
import SluiceKafka
import SluicePorts
import Testing

@Suite struct `Settings of Kafka's clients` {
    /// What a text is refused with, by the reader or by one of the clients.
    private static func refusal(_ text: String) async -> String? {
        await failure {
            var configuration = KafkaConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test")
            configuration.settings = try KafkaSettings(parsing: text, file: "kafka.conf")
            try await withAdmin(configuration) { _ in }
            try await withProducer(configuration) { _ in }
            try await withReader(configuration) { _ in }
        }?.description
    }

    private static func lines(_ settings: KafkaSettings) -> [String] { settings.pairs.map { "\($0.name)=\($0.value)" } }

    @Test func `leave room in a record for an object before and after`() {
        #expect(KafkaConfiguration(bootstrapServers: "").recordBytes > 2 * Limits.rowBytes + 1 << 20)
    }

    @Test func `are read as kcat reads them`() async throws {
        let text = "# TLS\r\n\r\n  security.protocol =  ssl\n\tssl.key.password = a=b c \n   # sasl.mechanism=PLAIN\nclient.id=\n"
        let lines = ["security.protocol=ssl", "ssl.key.password=a=b c", "client.id="]
        #expect(Self.lines(try KafkaSettings(parsing: text, file: "kafka.conf")) == lines)
        #expect(await Self.refusal(text) == nil)
    }

    @Test(arguments: ["bootstrap.servers", "metadata.broker.list"])
    func `may name the brokers`(name: String) throws {
        var settings = try KafkaSettings(parsing: "client.id=a\n\(name) = b1:9093,b2:9093", file: "kafka.conf")
        let found = try settings.takeServers()
        #expect(found?.servers == "b1:9093,b2:9093" && found?.place == "kafka.conf:2: ")
        #expect(Self.lines(settings) == ["client.id=a"])
        var both = try KafkaSettings(parsing: "bootstrap.servers=a\nmetadata.broker.list=b", file: "kafka.conf")
        #expect { try both.takeServers() } throws: { "\($0)".contains("kafka.conf:2: ") }
    }

    @Test(arguments: [
        ("client.id=a\nsecret", "config-invalid (901): kafka.conf:2: this line has no '='. Write name=value"),
        ("secret/+secret==", "kafka.conf:1: the text before '=' is not a name of a setting"),
        ("=secret", "kafka.conf:1: the text before '=' is not a name of a setting"),
        ("client.id=a\n\nclient.id=secret", "kafka.conf:3: the setting client.id is in line 1 already. Remove one of them."),
        (
            "client.id=a\nssl.nonsense=secret",
            "kafka.conf:2: this librdkafka (\(String(cString: rd_kafka_version_str()))) knows no setting ssl.nonsense."
        ),
        ("#\nsecurity.protocol=secret", "kafka.conf:2: the Kafka setting security.protocol is refused: Invalid value \"…\""),
        ("linger.ms=-5", "kafka.conf:1: the Kafka setting linger.ms is refused: Configuration property"),
        ("linger.ms=-5", "value … is outside allowed range 0..900000. Correct or remove it."),
        ("opaque=secret", "kafka.conf:1: the Kafka setting opaque is refused: Property \"opaque\" must be set"),
        ("ssl.truststore.location=secret", "Java TrustStores are not supported, use `ssl.ca.location`"),
        ("sasl.mechanism=OAUTHBEARER", "kafka.conf:1: the Kafka setting sasl.mechanism names OAUTHBEARER"),
        ("security.protocol=ssl\nssl.ca.location=/secret", "kafka.conf:2: a Kafka client cannot be created: ssl.ca.location failed"),
        (
            "security.protocol=sasl_ssl\nsasl.mechanism=secret",
            "kafka.conf: a Kafka client cannot be created: Unsupported SASL mechanism: …."
        ),
        ("security.protocol=sasl_ssl\nsasl.mechanism=SCRAM-SHA-512", "sasl.username and sasl.password must be set"),
        ("max.in.flight=9", "kafka.conf:1: a Kafka client cannot be created: `max.in.flight` must be set <= 5"),
        ("acks=0", "kafka.conf:1: the Kafka setting acks cannot be changed. Remove it"),
    ])
    func `that are wrong are told by file and line, and without their values`(text: String, says: String) async {
        let said = await Self.refusal(text) ?? "nothing"
        #expect(said.contains(says), "\(said)")
        #expect(!said.contains("secret"), "\(said)")
    }

    /// Each would end a promise: what is acknowledged is stored, in order, and read once; waiting and memory have bounds.
    @Test(arguments: [
        "acks", "enable.idempotence", "retries", "message.send.max.retries", "delivery.report.only.error", "queuing.strategy",
        "isolation.level", "check.crcs", "auto.offset.reset", "group.id", "message.timeout.ms", "delivery.timeout.ms",
        "queue.buffering.max.messages", "queue.buffering.max.kbytes", "test.mock.num.brokers", "plugin.library.paths",
        "statistics.interval.ms", "log.queue",
    ])
    func `that promises hang on cannot be changed`(name: String) async {
        let said = await Self.refusal("\n\(name)=1") ?? "nothing"
        #expect(said.contains("kafka.conf:2: the Kafka setting \(name) cannot be changed."), "\(said)")
    }

    /// The library only notes that they are of no use to the other kind.
    @Test func `of producers do not trouble readers, nor the other way round`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        var configuration = cluster.configuration
        configuration.settings = try KafkaSettings(
            parsing: "linger.ms=2\nbatch.size=1000\ncompression.type=none\nfetch.min.bytes=1\nqueued.min.messages=10", file: "kafka.conf")
        _ = try await withProducer(configuration) { try await $0.produce(numbered("a", partitions: 1, count: 3)) }
        try await withReader(configuration) { reader in
            try await reader.assign([LogPartition("a", 0): .at(0)])
            #expect(try await read(reader, count: 3).map(\.value) == ["0", "1", "2"])
        }
    }
}
