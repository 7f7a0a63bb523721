import SluiceCore
import SluicePipeline

/// The topics of an app, as a gateway with Kafka uses them.
package struct RequiredTopics: Sendable {
    package struct Topic: Hashable, Sendable {
        package enum Use: Hashable, Sendable {
            case changes, progress, ingest, deadLetters, userEvents
        }

        package var name: String
        package var use: Use
        /// The number of partitions that the gateway creates it with.
        package var partitions: Int32

        package init(name: String, use: Use, partitions: Int32) {
            self.name = name
            self.use = use
            self.partitions = partitions
        }
    }

    package let all: [Topic]

    package init(_ app: AppConfiguration) {
        let topics = app.topics
        var all = [Topic(name: topics.progress, use: .progress, partitions: 1)]
        if let events = topics.userEvents { all.append(Topic(name: events, use: .userEvents, partitions: 1)) }
        all += Partitioning.readable(app.schema).map {
            Topic(name: topics.changes(of: $0.name), use: .changes, partitions: GatewaySchema.partitionsPerTopic)
        }
        let asymmetric = app.schema.types.filter { $0.kind == .asymmetric }
        all += asymmetric.map { Topic(name: topics.ingest(of: $0.name), use: .ingest, partitions: GatewaySchema.partitionsPerTopic) }
        if !asymmetric.isEmpty { all.append(Topic(name: topics.deadLetters, use: .deadLetters, partitions: 1)) }
        self.all = all
    }
}
