import Foundation
import Logging
import SluiceCore
import SluiceKafka

extension IngestField {
    /// What the dead-letter topic was told, read until it has every letter of the table: the record's own name by the letter's id. A
    /// letter may be told twice, when who told it was killed before it could note that.
    func lettersTold(of kept: [Int: String]) async throws -> [Int: String] {
        let reader = try KafkaReader(
            KafkaConfiguration(bootstrapServers: kafka, clientID: "letters"),
            logger: Logger(label: "letters") { _ in SwiftLogNoOpLogHandler() })
        do {
            try await reader.assign([KafkaPartition("\(app).ingest-rejected", 0): .beginning])
            var told: [Int: String] = [:]
            var batch = KafkaFetchBatch()
            let deadline = ContinuousClock.now + .seconds(120)
            while !Set(kept.keys).isSubset(of: told.keys), ContinuousClock.now < deadline {
                try await reader.next(into: &batch, timeout: .seconds(1))
                for entry in batch.entries {
                    let letter = try JSON.parse(Array(batch.value(of: entry)))
                    let object = try JSON.parse(Array((letter["object"]?.string ?? "").utf8))
                    told[Int(letter["id"]?.int ?? 0)] = object["_id"]?.string ?? ""
                }
            }
            await reader.close()
            return told
        } catch {
            await reader.close()
            throw error
        }
    }
}
