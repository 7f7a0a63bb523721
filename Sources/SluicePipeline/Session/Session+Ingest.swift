import Logging
import SluiceCore
import SluicePorts
import SluiceWire

/// The ingest of asymmetric objects: one batch at a time, beside the session's other messages.
///
/// Ingest may depend on plugins and on Kafka, which no other message needs. A batch waits unacknowledged until both are available, and
/// the session continues.
extension Session {
    func ingest(_ batch: PBIngest) async throws {
        guard file != nil else { return }
        let objects = try SessionMessages.objects(batch.objects, schema: services.authority.current().schema)
        // Backpressure: a client that exceeds the protocol's window blocks its other messages too.
        while machine.ingest.isFull, let taking = tasks.taking { await taking.value }
        perform(machine.handle(.ingest(WaitingBatch(number: batch.number, objects: objects))))
    }

    func takeBatches() async {
        defer {
            tasks.taking = nil
            machine.batchesEnded()
        }
        while let batch = machine.ingest.batches.first {
            do {
                guard let answer = try await patientlyTake(batch) else { return }
                send(answer)
                machine.batchAcknowledged()
            } catch {
                return fail(SluiceError(error, otherwise: .internalError, "Asymmetric objects could not be stored."))
            }
        }
    }

    /// Takes a batch and retries transient failures with a growing back-off.
    /// - Returns: the acknowledgement; nil once the session has ended.
    private func patientlyTake(_ batch: WaitingBatch) async throws -> [UInt8]? {
        var batch = batch
        var pause = RulesBackoff.firstPause
        while true {
            // Each attempt needs the current permissions, which may change during a pause.
            await rulesAvailable()
            guard machine.isOpen, !channel.isClosed, !Task.isCancelled else { return nil }
            do { return try await take(&batch) } catch let error as SluiceError where error.code.sessionAction == .transient {
                logger.warning(
                    "Asymmetric objects of a device wait for the rules or the log.",
                    metadata: ["batch": "\(batch.number)", "error": .string(error.description)])
            } catch is CancellationError {
                // Of this task, or of a step that is retried.
            }
            guard (try? await services.environment.sleep(nanoseconds: pause)) != nil else { return nil }
            pause = min(pause * 2, RulesBackoff.longestPause)
        }
    }

    /// Takes a batch unless it was taken before.
    /// - Returns: the acknowledgement, also of a batch taken before.
    private func take(_ batch: inout WaitingBatch) async throws -> [UInt8] {
        guard let file else { return [] }
        // A resend: return the stored acknowledgement, which lists the rejected objects.
        guard batch.number > file.ingest else {
            guard batch.changesets.isEmpty else { return SessionMessages.ingestAck(number: batch.number, rejected: []) }
            let kept = try await services.clients.ingestAnswer(id: file.id, number: batch.number)
            return kept ?? SessionMessages.ingestAck(number: batch.number, rejected: [])
        }
        let sender = "device/\(user?.user.id ?? "")/\(file.id)"
        let schema = services.authority.current()
        let refused: [WriteRejection]
        if let known = batch.refused {
            refused = known
        } else {
            refused = try await services.ingest.submit(batch.objects, from: sender, permissions: boundPermissions())
            batch.refused = refused
        }
        if !batch.isRefusalKept {
            try await services.ingest.keep(refused, from: sender, schema: schema.schema)
            batch.isRefusalKept = true
        }
        guard batch.changesets.isEmpty else { return try await record(batch, refused, of: file.id) }
        let answer = SessionMessages.ingestAck(number: batch.number, rejected: refused)
        // Last: once the number is recorded, a resend is answered and not taken again.
        try await services.clients.recordIngest(id: file.id, number: batch.number, answer: refused.isEmpty ? nil : answer)
        self.file?.ingest = batch.number
        return answer
    }

    /// Records a batch of changesets and sends its compensating writes. A later session sends them again until the client confirms them.
    /// - Returns: the acknowledgement.
    private func record(_ batch: WaitingBatch, _ refused: [WriteRejection], of file: ClientID) async throws -> [UInt8] {
        let recorded = try await services.clients.recordIngest(id: file, number: batch.number, rejected: batch.numbered(refused))
        self.file?.ingest = batch.number
        for compensation in recorded { send(SessionMessages.compensation(id: compensation.id, writes: compensation.writes)) }
        return SessionMessages.ingestAck(number: batch.number, rejected: [])
    }
}

extension WaitingBatch {
    /// Returns rejections of its objects with their changesets. Of objects with the same key, the earlier ones count as rejected first.
    fileprivate func numbered(_ rejections: [WriteRejection]) -> [WriteRejection] {
        var numbers: [ObjectKey: [UInt64]] = [:]
        for (object, number) in zip(objects, changesets).reversed() { numbers[object.object, default: []].append(number) }
        return rejections.map { rejection in
            var rejection = rejection
            rejection.changeset = numbers[rejection.object]?.popLast() ?? number
            return rejection
        }
    }
}
