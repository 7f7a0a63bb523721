package import Logging
import SluiceCore
package import SluicePorts
import SluiceValues

/// Stores a device's rejected objects, so that no user input is lost once the device has received the rejection.
///
/// They are among the dead letters before the device's message is acknowledged. If the gateway crashes in between, they are stored twice.
package struct IngestRejections: Sendable {
    private let store: any IngestStore
    private let observer: any IngestObserver
    private let logger: Logger

    package init(store: any IngestStore, observer: any IngestObserver, logger: Logger) {
        self.store = store
        self.observer = observer
        self.logger = logger
    }

    /// Stores rejected objects.
    /// - Parameter sender: The source to record with a dead letter.
    func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws {
        guard !refused.isEmpty else { return }
        _ = try await store.commit(accepted: [], refused: refused.map { Self.object($0, sender, schema) })
        for (name, refused) in Dictionary(grouping: refused, by: \.object.type) {
            // The name of an unknown class is client input, so it must not reach the observer.
            if schema[name] != nil { observer.took(name, IngestTally(refused: refused.count)) }
            logger.info(
                "Objects of a device are rejected.",
                metadata: [
                    "type": "\(name)", "source": "\(sender)", "count": "\(refused.count)", "code": "\(refused[0].code.rawValue)",
                    "reason": "\(refused[0].reason)", "rule": "\(refused[0].rule ?? "")",
                ])
        }
    }

    private static func object(_ write: WriteRejection, _ sender: String, _ schema: Schema) -> RejectedObject {
        var values = write.values
        let key = schema[write.object.type].flatMap { type in type.primaryKey.map { type.properties[$0].name } }
        values[key ?? "_id"] = write.object.key
        let record = IngestRecord(type: write.object.type, bytes: ExtendedJSON.json(values).utf8[...], sender: sender)
        return RejectedObject(record: record, code: write.code, reason: write.reason)
    }
}
