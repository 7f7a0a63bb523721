import Logging
import SluiceCore
import SluiceWire

/// A batch of asymmetric objects that is not acknowledged yet.
struct WaitingBatch {
    var number: UInt64
    var objects: [ObjectChange]
    /// Those of its objects that were refused, once the others cannot be lost any more; and whether they are kept, too. What is done is not
    /// done again when what comes after it fails: the log would get another copy each time, and other rules could refuse what it has.
    var refused: [RejectedWrite]?
    var isRefusalKept = false
}

/// How a session takes asymmetric objects: one batch after the other, beside its other messages.
///
/// Whether objects can be taken may depend on plugins and on Kafka, on which nothing else depends that the client sends. So a batch
/// waits by itself until they are back, unacknowledged, and the session goes on.
extension Session {
    func ingest(_ batch: PBIngest) async throws {
        guard file != nil else { return }
        let objects = try SessionMessages.objects(batch.objects, schema: services.authority.current().schema)
        // Who sends more than the protocol allows waits with everything else.
        while batches.count >= Limits.ingestWindow, let ingesting { await ingesting.value }
        guard state.phase == .open else { return }
        batches.append(WaitingBatch(number: batch.number, objects: objects))
        guard ingesting == nil else { return }
        // Unstructured because: what comes after it does not wait for it; it ends when no batch waits, or with the session.
        ingesting = Task { await self.ingestWaiting() }
    }

    private func ingestWaiting() async {
        defer {
            ingesting = nil
            batches = []
        }
        while let batch = batches.first {
            do {
                guard let answer = try await patientlyTake(batch) else { return }
                send(answer)
                batches.removeFirst()
            } catch {
                return fail(error as? SluiceError ?? SluiceError(.internalError, "Objects could not be taken.", detail: "\(error)"))
            }
        }
    }

    /// Tries again with growing pauses what may pass by itself.
    /// - Returns: the acknowledgement; nil when the session is over.
    private func patientlyTake(_ batch: WaitingBatch) async throws -> [UInt8]? {
        var batch = batch
        var pause = Doubt.firstPause
        while true {
            await settleDoubt()
            guard state.phase == .open, !channel.isClosed, !Task.isCancelled else { return nil }
            do { return try await take(&batch) } catch let error as SluiceError where error.code.sessionAction == .transient {
                logger.warning(
                    "Asymmetric objects of a device wait.", metadata: ["batch": "\(batch.number)", "error": .string(error.description)])
            } catch is CancellationError {
                // Of this task, or of something that is tried again.
            }
            guard (try? await services.environment.sleep(nanoseconds: pause)) != nil else { return nil }
            pause = min(pause * 2, Doubt.longestPause)
        }
    }

    /// - Returns: the acknowledgement, also of a batch that was taken before.
    private func take(_ batch: inout WaitingBatch) async throws -> [UInt8] {
        guard let file else { return [] }
        guard batch.number > file.ingest else {
            let kept = try await services.clients.ingestAnswer(id: file.id, number: batch.number)
            return kept ?? SessionMessages.ingestAck(number: batch.number, rejected: [])
        }
        let sender = "device/\(user?.user.id ?? "")/\(file.id)"
        let schema = services.authority.current()
        let refused: [RejectedWrite]
        if let known = batch.refused {
            refused = known
        } else {
            refused = try await services.ingest.submit(batch.objects, from: sender, plan: plan, schema: schema)
            batch.refused = refused
        }
        if !batch.isRefusalKept {
            try await services.ingest.keep(refused, from: sender, schema: schema.schema)
            batch.isRefusalKept = true
        }
        let answer = SessionMessages.ingestAck(number: batch.number, rejected: refused)
        try await services.clients.recordIngest(id: file.id, number: batch.number, answer: refused.isEmpty ? nil : answer)
        self.file?.ingest = batch.number
        return answer
    }
}
