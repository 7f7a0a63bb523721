import Logging
package import SluiceCore
package import SluicePorts

/// Records that brokers reject, and the causes of failed writes.
extension KafkaLog {
    package func offer(_ batch: LogBatch) async throws -> LogOutcome {
        try await makingAnew(batch.topics) { try await self.offerByPartition(batch) }
    }

    private func offerByPartition(_ batch: LogBatch) async throws -> LogOutcome {
        var outcome = LogOutcome()
        var suspects: [Int] = []
        let all = Array(batch.entries.indices)
        try await send(all, of: batch, &outcome) { index, _, _ in suspects.append(index) }
        // Brokers reject whole requests. The faulty record is the one rejected alone, so each round sends one record per partition.
        while !suspects.isEmpty {
            var partitions: Set<LogPartition> = []
            var (round, rest): ([Int], [Int]) = ([], [])
            for index in suspects {
                if partitions.insert(batch.partition(of: index)).inserted { round.append(index) } else { rest.append(index) }
            }
            suspects = rest
            do {
                try await send(round, of: batch, &outcome) { index, error, outcome in outcome.refused[index] = error }
            } catch let error as SluiceError where !outcome.refused.isEmpty {
                outcome.failure = error
                return outcome
            }
        }
        return outcome
    }

    /// Sends some records of a batch and collects the brokers' results.
    ///
    /// - Throws: The first failure that is not a rejection, after all results are collected.
    private func send(
        _ indices: [Int], of batch: LogBatch, _ outcome: inout LogOutcome, refused: (Int, SluiceError, inout LogOutcome) -> Void
    ) async throws {
        var part = LogBatch(topics: batch.topics)
        part.arena = batch.arena
        part.entries = indices.count == batch.entries.count ? batch.entries : indices.map { batch.entries[$0] }
        var failure: SluiceError?
        // Keyed by numbers: a topic name is hashed once per partition, not once per record.
        var ends: [UInt64: (index: Int, end: Int64)] = [:]
        for (index, answer) in zip(indices, try await producer.offer(part)) {
            switch answer {
            case .stored(let offset):
                let entry = batch.entries[index]
                let place = UInt64(UInt32(bitPattern: entry.topic)) << 32 | UInt64(UInt32(bitPattern: entry.partition))
                ends[place] = (index, max(ends[place]?.end ?? 0, offset + 1))
            case .refused(let error): refused(index, error, &outcome)
            case .failed(let error): failure = failure ?? error
            }
        }
        for (index, end) in ends.values {
            outcome.ends[batch.partition(of: index)] = max(outcome.ends[batch.partition(of: index)] ?? 0, end)
        }
        if let failure { throw await explain(failure, of: batch) }
    }

    /// Explains a write without an acknowledgement if its topics have too few in-sync replicas. librdkafka retries such writes and then
    /// reports only a timeout.
    package func explain(_ error: SluiceError, of batch: LogBatch) async -> SluiceError {
        // Unreachable brokers cannot answer the admin request.
        guard error.code == .logDelivery, trouble == nil else { return error }
        let partitions = Set(batch.entries.map { LogPartition(batch.topics[Int($0.topic)], $0.partition) })
        do {
            return try await admin.replicaShortage(of: Array(partitions)) ?? error
        } catch {
            logger.debug("The in-sync replicas are unknown.", metadata: ["error": "\(error)"])
        }
        return error
    }

    package func recordBounds(of topics: [String]) async throws -> [String: Int] {
        let own = configuration.largestRecordBytes
        let found = try await admin.recordBounds(of: topics)
        return Dictionary(topics.map { ($0, min(own, found[$0] ?? own)) }, uniquingKeysWith: min)
    }
}

extension LogBatch {
    fileprivate func partition(of index: Int) -> LogPartition {
        LogPartition(topics[Int(entries[index].topic)], entries[index].partition)
    }
}
