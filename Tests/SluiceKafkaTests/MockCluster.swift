import CRdKafka
import SluiceCore
import SluiceKafka
import SluicePorts

/// librdkafka's in-process brokers, for errors that a real one cannot be asked for.
final class MockCluster: @unchecked Sendable {  // Sendable because: the mock cluster's functions lock inside; the pointers never change.
    private let client: OpaquePointer
    fileprivate let cluster: OpaquePointer
    let brokers: Int32

    init(brokers: Int32 = 1) throws {
        self.brokers = brokers
        let reason = UnsafeMutablePointer<CChar>.allocate(capacity: 512)
        defer { reason.deallocate() }
        let settings = rd_kafka_conf_new()
        rd_kafka_conf_set(settings, "log_level", "0", reason, 512)
        guard let client = rd_kafka_new(RD_KAFKA_PRODUCER, settings, reason, 512),
            let cluster = rd_kafka_mock_cluster_new(client, brokers)
        else { throw SluiceError(.internalError, "No mock cluster can be made.") }
        self.client = client
        self.cluster = cluster
    }

    deinit {
        rd_kafka_mock_cluster_destroy(cluster)
        rd_kafka_destroy(client)
    }

    var bootstrapServers: String { String(cString: rd_kafka_mock_cluster_bootstraps(cluster)) }

    func createTopic(_ name: String, partitions: Int32) {
        rd_kafka_mock_topic_create(cluster, name, partitions, 1)
    }

    func failNextProduceRequests(_ errors: [rd_kafka_resp_err_t]) {
        errors.withUnsafeBufferPointer { rd_kafka_mock_push_request_errors_array(cluster, 0, $0.count, $0.baseAddress) }
    }

    func setDown(_ isDown: Bool) {
        for broker in 1...brokers {
            if isDown { rd_kafka_mock_broker_set_down(cluster, broker) } else { rd_kafka_mock_broker_set_up(cluster, broker) }
        }
    }

    /// A configuration that suits the mock: it sleeps through a fetch instead of answering when a record comes.
    var configuration: KafkaConfiguration {
        var configuration = KafkaConfiguration(bootstrapServers: bootstrapServers, clientID: "test")
        configuration.fetchWaitMilliseconds = 1
        configuration.compression = "none"
        return configuration
    }
}

extension MockCluster {
    /// The kinds of requests, as the protocol numbers them.
    enum Request: Int16 {
        case produce = 0
        case fetch = 1
        case listOffsets = 2
    }

    /// Answers the next requests of a kind with errors.
    func failNext(_ request: Request, _ errors: [rd_kafka_resp_err_t]) {
        errors.withUnsafeBufferPointer { rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, $0.count, $0.baseAddress) }
    }

    /// Has the brokers answer questions about a topic with an error, until it is set to none.
    func setError(of topic: String, _ error: rd_kafka_resp_err_t) { rd_kafka_mock_topic_set_error(cluster, topic, error) }

    /// Moves a partition to a broker; -1 leaves it without a leader.
    func setLeader(of partition: LogPartition, to broker: Int32) {
        rd_kafka_mock_partition_set_leader(cluster, partition.topic, partition.partition, broker)
    }
}
