import CRdKafka
import SluiceCore

/// An operation on the brokers, by its name in access lists.
enum KafkaOperation: String {
    case create = "Create"
    case delete = "Delete"
    case describe = "Describe"
    case describeConfigs = "DescribeConfigs"
    case read = "Read"
    case write = "Write"

    /// Returns the error of an operation that an access list denies; nil for any other error.
    ///
    /// - Parameter topic: The topic; nil for an operation on the whole cluster.
    func denial(_ error: rd_kafka_resp_err_t, topic: String?) -> SluiceError? {
        let resource: String
        let option: String
        var operation = rawValue
        switch error {
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
            let topic = topic ?? "*"
            resource = "the topic \(topic)"
            option = "--topic '\(topic)'"
        case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
            resource = "a group"
            option = "--group '*'"
        case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
            resource = "the cluster"
            option = "--cluster"
            // Before Kafka 3.0 an idempotent producer needs a right of its own on the cluster.
            if self == .write { operation = "IdempotentWrite" }
        default: return nil
        }
        return SluiceError(
            .logNotAuthorized, "The Kafka brokers deny the operation \(operation) on \(resource).",
            fix: "Allow it: kafka-acls --add --allow-principal User:NAME --operation \(operation) \(option)", cause: cause(of: error))
    }
}

/// Returns the error of a topic that has fewer in-sync replicas than a write needs.
///
/// - Parameters:
///   - inSync: The number of replicas in sync now; nil if unknown.
///   - needed: The topic's `min.insync.replicas`; nil if unknown.
func replicaShortage(topic: String, partition: Int32?, inSync: Int? = nil, needed: Int? = nil) -> SluiceError {
    let place = partition.map { "\(topic)[\($0)]" } ?? topic
    let counts = inSync.map { " (\($0) of the \(needed.map(String.init) ?? "needed") that min.insync.replicas requires)" } ?? ""
    return SluiceError(
        .logReplicas, "The partition \(place) has not enough in-sync replicas for a write\(counts).",
        fix: "Start the brokers that are down, or lower min.insync.replicas of the topic \(topic) below its replication factor.")
}
