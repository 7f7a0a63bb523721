import Crypto
package import Hummingbird
import NIOCore
import SluiceCompression
package import SluiceCore
import SluiceNet
package import SluicePipeline

/// The result of one record of a request.
package struct IngestResult: Sendable {
    /// The number from 1: the line of NDJSON, or the position in the array.
    package var line: Int
    package var outcome: Result<IngestPlace?, SluiceError>
}

/// The result of a request.
package struct IngestSummary: Sendable {
    package var accepted = 0
    package var rejected = 0
    /// The rejected records, at most the first `Limits.ingestNamedRefusals`.
    var named: [(line: Int, error: SluiceError)] = []
    /// The error that ended the body early; nil if all of it was read.
    package var failure: SluiceError?

    mutating func count(_ result: IngestResult) {
        guard case .failure(let error) = result.outcome else {
            accepted += 1
            return
        }
        rejected += 1
        if named.count < Limits.ingestNamedRefusals { named.append((result.line, error)) }
    }
}

/// The format and encoding of a body, from its headers.
package struct IngestForm: Sendable {
    var form: RecordCutter.Form
    var encoding: ContentEncoding?

    /// - Throws: `unsupportedEncoding`.
    package init(_ request: Request) throws(SluiceError) {
        form = request.headers[.contentType]?.contains("ndjson") ?? false ? .lines : .json
        encoding = try ContentEncoding.parse(request.headers[.contentEncoding])
    }
}

/// Checks the sender's rights repeatedly, as a body may last for hours.
package struct RightsReview: Sendable {
    /// The time between two checks, in nanoseconds.
    package static let interval: UInt64 = 5_000_000_000
    /// The time for which a check without a result is retried, as during the restart of a plugin host. It is in nanoseconds, as is
    /// `pauses`, the first and the longest pause.
    package static let patience: UInt64 = 10_000_000_000
    private static let pauses: ClosedRange<UInt64> = 100_000_000...1_000_000_000

    let environment: any SluiceCore.Environment
    /// Returns the current rights. Throws the error that ends the body.
    let ask: @Sendable () async throws -> IngestRights

    package init(environment: any SluiceCore.Environment, ask: @escaping @Sendable () async throws -> IngestRights) {
        self.environment = environment
        self.ask = ask
    }

    /// Returns the current rights.
    ///
    /// - Throws: The error that ends the body, or a retriable error that persisted for `patience`.
    func answer() async throws -> IngestRights {
        let deadline = environment.monotonicNanoseconds() + Self.patience
        var pause = Self.pauses.lowerBound
        while true {
            do { return try await ask() } catch let error as SluiceError where error.code.isRetriable {
                guard environment.monotonicNanoseconds() + pause <= deadline, (try? await environment.sleep(nanoseconds: pause)) != nil
                else { throw error }
                pause = min(pause * 2, Self.pauses.upperBound)
            }
        }
    }
}

/// Submits a request's body to the log in pieces. The next piece is read once the previous one's records are acknowledged. Memory holds a
/// piece, the incomplete record, and the decompressor's window.
package final class IngestRun {
    private let type: ObjectType
    private let schema: Schema
    private var rights: IngestRights
    private let review: RightsReview
    private var reviewed: UInt64
    private let intake: any IngestIntake
    private let gate: IngestGate
    private let decompressor: Decompressor?
    private var cutter: RecordCutter
    private var hash = SHA256()
    package private(set) var summary = IngestSummary()

    /// - Parameters:
    ///   - rights: The sender's rights at the start of the body.
    ///   - review: The later checks of the rights.
    /// - Throws: `internalError` if there is no memory for the decompressor.
    package init(
        _ form: IngestForm, type: ObjectType, schema: Schema, rights: IngestRights, review: RightsReview, intake: any IngestIntake,
        gate: IngestGate
    ) throws(SluiceError) {
        self.type = type
        self.schema = schema
        self.rights = rights
        self.review = review
        reviewed = review.environment.monotonicNanoseconds()
        self.intake = intake
        self.gate = gate
        decompressor = try form.encoding.map { (encoding) throws(SluiceError) in try Decompressor(encoding) }
        cutter = RecordCutter(form.form)
    }

    /// The SHA-256 of the decompressed bytes read so far.
    var digest: [UInt8] { Array(hash.finalize()) }

    /// Reads the body to its end or to its first error, which `summary.failure` then holds.
    ///
    /// - Parameter each: Receives the results of one piece, in order, once they are acknowledged.
    /// - Throws: Errors of `each` that are not a `SluiceError`.
    @concurrent package func run(_ body: RequestBody, each: @concurrent ([IngestResult]) async throws -> Void) async throws {
        var pieces = body.makeAsyncIterator()
        do {
            while let piece = try await Self.next(&pieces) { try await take(piece, each) }
            try decompressor?.finish()
            var records: [RecordCutter.Record] = []
            // The records before an error at the end are submitted first.
            let end = Result { () throws(SluiceError) in try cutter.finish(into: &records) }
            try await submit(records, each)
            try end.get()
        } catch let error as SluiceError {
            summary.failure = error
        }
    }

    /// Reads the body to its end for its digest only.
    @concurrent func skip(_ body: RequestBody) async throws {
        var pieces = body.makeAsyncIterator()
        while let piece = try await Self.next(&pieces) {
            guard let decompressor else {
                hash.update(data: piece)
                continue
            }
            decompressor.feed(piece)
            while let bytes = try decompressor.next() { hash.update(data: bytes) }
        }
        try decompressor?.finish()
    }

    @concurrent private static func next(_ pieces: inout RequestBody.AsyncIterator) async throws -> [UInt8]? {
        do {
            return try await pieces.next().map { Array($0.readableBytesView) }
        } catch is CancellationError {
            throw SluiceError(.shuttingDown, "The gateway is stopping.")
        } catch {
            throw SluiceError(.badRequest, "The body is incomplete.", fix: "Send the rest again.", cause: ErrorCause(error))
        }
    }

    @concurrent private func take(_ piece: [UInt8], _ each: @concurrent ([IngestResult]) async throws -> Void) async throws {
        guard let decompressor else { return try await cut(piece, each) }
        decompressor.feed(piece)
        while let bytes = try decompressor.next() { try await cut(bytes, each) }
    }

    @concurrent private func cut(_ bytes: [UInt8], _ each: @concurrent ([IngestResult]) async throws -> Void) async throws {
        hash.update(data: bytes)
        var records = waiting
        // An error in the middle of a piece must not lose the records before it: they are submitted first.
        let outcome = Result { () throws(SluiceError) in try cutter.feed(bytes, into: &records) }
        waiting = []
        waitingBytes += bytes.count
        if case .success = outcome, records.count < Limits.ingestPieceObjects, waitingBytes < Limits.ingestPieceBytes {
            waiting = records
            return
        }
        waitingBytes = 0
        try await hand(records, each)
        try outcome.get()
    }

    /// The records that are not submitted yet, and the bytes received since the last submission.
    private var waiting: [RecordCutter.Record] = []
    private var waitingBytes = 0

    /// Submits the remaining records and those from the end of the body.
    @concurrent private func submit(
        _ records: [RecordCutter.Record], _ each: @concurrent ([IngestResult]) async throws -> Void
    ) async throws {
        let all = waiting + records
        waiting = []
        try await hand(all, each)
    }

    @concurrent private func hand(_ records: [RecordCutter.Record], _ each: @concurrent ([IngestResult]) async throws -> Void) async throws
    {
        for start in stride(from: 0, to: records.count, by: Limits.ingestPieceObjects) {
            let piece = records[start..<min(start + Limits.ingestPieceObjects, records.count)]
            let texts = piece.compactMap(\.bytes)
            try await reviewRights()
            let outcomes = try await gate.holding(texts.reduce(0) { $0 + $1.count }) {
                texts.isEmpty ? [] : try await intake.submit(texts, type: type, schema: schema, rights: rights)
            }
            var next = outcomes.makeIterator()
            let results = piece.map { record in
                // Records that are too large have no bytes and were not submitted, so the outcomes are assigned in order.
                let outcome = record.bytes == nil ? nil : next.next()
                return IngestResult(line: record.number, outcome: outcome ?? .failure(IngestCheck.tooLarge(type.name)))
            }
            for result in results { summary.count(result) }
            try await each(results)
        }
    }

    @concurrent private func reviewRights() async throws {
        guard review.environment.monotonicNanoseconds() - reviewed >= RightsReview.interval else { return }
        rights = try await review.answer()
        reviewed = review.environment.monotonicNanoseconds()
    }
}
