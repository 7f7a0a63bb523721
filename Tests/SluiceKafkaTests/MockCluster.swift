import CRdKafka
import SluiceCore
import SluiceKafka

/// librdkafka's in-process brokers, for errors that a real one cannot be asked for.
// Sendable because: the mock cluster's functions lock inside; the pointers never change.
final class MockCluster: @unchecked Sendable {
    private let client: OpaquePointer
    private let cluster: OpaquePointer
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
