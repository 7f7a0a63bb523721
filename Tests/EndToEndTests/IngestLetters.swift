import Foundation
import Logging
import SluiceCore
import SluiceKafka
import SluicePorts
import SluiceValues

extension IngestField {
    /// What the dead-letter topic was told, read until it has every letter of the table, and then until nothing more comes: the record's
    /// own name by the letter's id, and the ids that were told more than once.
    func lettersTold(of kept: [Int: String]) async throws -> (told: [Int: String], twice: [Int]) {
        let reader = try KafkaReader(
            KafkaConfiguration(bootstrapServers: kafka, clientID: "letters"),
            logger: Logger(label: "letters") { _ in SwiftLogNoOpLogHandler() })
        do {
            try await reader.assign([LogPartition("\(app).ingest-rejected", 0): .beginning])
            var told: [Int: String] = [:]
            var batch = KafkaFetchBatch()
            let deadline = ContinuousClock.now + .seconds(120)
            var twice: [Int] = []
            var isWhole = false
            while !isWhole || !batch.entries.isEmpty, ContinuousClock.now < deadline {
                try await reader.next(into: &batch, timeout: .seconds(1))
                for entry in batch.entries {
                    let letter = try JSON.parse(Array(batch.value(of: entry)))
                    let object = try JSON.parse(Array((letter["object"]?.string ?? "").utf8))
                    let id = Int(letter["id"]?.int ?? 0)
                    if told.updateValue(object["_id"]?.string ?? "", forKey: id) != nil { twice.append(id) }
                }
                isWhole = Set(kept.keys).isSubset(of: told.keys)
            }
            await reader.close()
            return (told, twice)
        } catch {
            await reader.close()
            throw error
        }
    }
}
