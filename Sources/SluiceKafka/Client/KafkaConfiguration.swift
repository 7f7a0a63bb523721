import CRdKafka
import SluiceCore

/// The address of the brokers, and the bounds of memory that is held for them.
package struct KafkaConfiguration: Hashable, Sendable {
    /// The addresses as `host:port`, separated by commas.
    package var bootstrapServers: String
    /// The name of the client in the brokers' logs and quotas.
    package var clientID: String
    /// Further settings of the deployment. Those that the guarantees depend on (acks, idempotence, offsets) are rejected.
    package var settings: KafkaSettings = [:]
    /// The maximum duration of one request to the brokers. After it, and 2 s at least, a silent connection counts as broken.
    package var requestTimeout: Duration = .seconds(10)
    /// The maximum wait of a record for its acknowledgement, and of a sender for room in the queue.
    package var deliveryTimeout: Duration = .seconds(30)
    /// The time that a record waits for others to share its request, in milliseconds.
    package var lingerMilliseconds = 1
    /// The compression: `none`, `lz4`, `zstd`, `snappy` or `gzip`.
    package var compression = "lz4"
    /// The size of the largest record, in bytes. The topic's `max.message.bytes` must allow it, too.
    package var recordBytes = 20 << 20
    /// The limits of records, and of bytes, in flight. Beyond them senders wait, for at most `deliveryTimeout`.
    package var producerRecords = 100_000
    package var producerBytes = 64 << 20
    /// The limit of bytes that a reader has read and its consumer has not taken. Beyond it the reader stops polling. librdkafka
    /// holds as much again.
    package var readerBytes = 16 << 20
    /// The time that a broker may hold a fetch without new records, in milliseconds.
    ///
    /// New records are sent at once. An added partition is fetched after this time at the latest.
    package var fetchWaitMilliseconds = 100

    package init(bootstrapServers: String, clientID: String = "sluice", settings: KafkaSettings = [:]) {
        self.bootstrapServers = bootstrapServers
        self.clientID = clientID
        self.settings = settings
    }
}

enum ClientKind {
    case producer
    /// Reads partitions.
    case reader
    /// Sends requests about topics only.
    case admin
}

extension KafkaConfiguration {
    /// The size of the largest record that the producer accepts, in bytes: `recordBytes`, unless the deployment sets
    /// `message.max.bytes`.
    package var largestRecordBytes: Int {
        settings.pairs.last { $0.name == "message.max.bytes" }.flatMap { Int($0.value) } ?? recordBytes
    }

    /// Returns every setting of a client of this kind. Those of the deployment come last; the library ignores those of the other
    /// kind.
    ///
    /// - Throws: `configInvalid` for a reserved setting.
    func allSettings(for kind: ClientKind) throws(SluiceError) -> [(name: String, value: String)] {
        try settings.check()
        let own = commonSettings(for: kind) + (kind == .producer ? producerSettings : consumerSettings)
        return own + settings.pairs
    }

    private func commonSettings(for kind: ClientKind) -> [(name: String, value: String)] {
        [
            ("bootstrap.servers", bootstrapServers),
            ("client.id", clientID),
            // No thread polls the queue of an admin client.
            ("log.queue", kind == .admin ? "false" : "true"),
            ("socket.keepalive.enable", "true"),
            ("socket.nagle.disable", "true"),
            ("socket.timeout.ms", "\(max(requestTimeout.milliseconds, 2_000))"),
            ("reconnect.backoff.ms", "50"),
            ("reconnect.backoff.max.ms", "1000"),
            ("topic.metadata.refresh.fast.interval.ms", "100"),
        ]
    }

    private var producerSettings: [(name: String, value: String)] {
        [
            ("enable.idempotence", "true"),
            ("acks", "all"),
            ("partitioner", "murmur2"),
            ("linger.ms", "\(lingerMilliseconds)"),
            ("compression.codec", compression),
            ("message.max.bytes", "\(recordBytes)"),
            ("message.timeout.ms", "\(deliveryTimeout.milliseconds)"),
            ("retry.backoff.ms", "50"),
            // Room is claimed before a record is handed over (`ProducerRoom`), so that the library's own limits are never reached.
            ("queue.buffering.max.messages", "10000000"),
            ("queue.buffering.max.kbytes", "2097151"),
        ]
    }

    private var consumerSettings: [(name: String, value: String)] {
        [
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "error"),
            ("allow.auto.create.topics", "false"),
            ("check.crcs", "true"),
            ("fetch.wait.max.ms", "\(fetchWaitMilliseconds)"),
            ("fetch.min.bytes", "1"),
            // Also the pause after the local queue was full.
            ("fetch.error.backoff.ms", "20"),
            ("fetch.message.max.bytes", "1048576"),
            ("fetch.max.bytes", "\(max(recordBytes, 8 << 20))"),
            ("receive.message.max.bytes", "\(512 << 20)"),
            ("queued.min.messages", "10000"),
            ("queued.max.messages.kbytes", "\(max(readerBytes >> 10, 1))"),
        ]
    }

    /// Creates a client. The caller must destroy it with `rd_kafka_destroy`.
    ///
    /// - Throws: `configInvalid` with the setting.
    func makeClient(_ kind: ClientKind, events: Int32 = 0) throws -> KafkaPointer {
        let conf = unsafe rd_kafka_conf_new()
        do {
            for (name, value) in try allSettings(for: kind) {
                var answer = RD_KAFKA_CONF_OK
                let refusal = unsafe withErrorText {
                    unsafe answer = rd_kafka_conf_set(conf, name, value, $0, $1)
                    return answer == RD_KAFKA_CONF_OK
                }
                if let refusal { throw settings.refusal(of: name, reason: answer == RD_KAFKA_CONF_UNKNOWN ? nil : refusal) }
            }
        } catch {
            unsafe rd_kafka_conf_destroy(conf)
            throw error
        }
        if kind == .reader { unsafe FetchPause.add(to: conf) }
        // Without a callback, log lines are discarded.
        if kind == .admin { unsafe rd_kafka_conf_set_log_cb(conf, nil) }
        unsafe rd_kafka_conf_set_events(conf, events | RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_ERROR)
        var client: OpaquePointer?
        let refusal = unsafe withErrorText {
            unsafe client = rd_kafka_new(kind == .producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, $0, $1)
            return unsafe client != nil
        }
        guard let client = unsafe client else {
            // The client owns the configuration only if it was created.
            unsafe rd_kafka_conf_destroy(conf)
            throw settings.refusal(reason: refusal ?? "no reason given")
        }
        if kind != .admin { unsafe rd_kafka_set_log_queue(client, nil) }
        return unsafe KafkaPointer(client)
    }
}

/// The version of librdkafka, such as `2.0.2`.
var libraryVersion: String { unsafe rd_kafka_version_str().map { unsafe String(cString: $0) } ?? "" }

extension Duration {
    /// Whole milliseconds, at least 0 and within 32 bits, as librdkafka takes them.
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(min(max(seconds, 0), 2_000_000) * 1_000 + max(attoseconds, 0) / 1_000_000_000_000_000)
    }

    var nanoseconds: UInt64 { UInt64(milliseconds) * 1_000_000 }
}
