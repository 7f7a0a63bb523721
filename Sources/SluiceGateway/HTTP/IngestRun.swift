import Crypto
package import Hummingbird
import NIOCore
import SluiceCompression
package import SluiceCore
import SluiceNet
package import SluicePipeline

/// What became of one record of a request.
package struct IngestResult: Sendable {
    /// From 1: the line of NDJSON, or the place in the array.
    package var line: Int
    package var outcome: Result<IngestPlace?, SluiceError>
}

/// What a request came to.
package struct IngestSummary: Sendable {
    package var accepted = 0
    package var rejected = 0
    /// The first `Limits.ingestNamedRefusals`.
    var named: [(line: Int, error: SluiceError)] = []
    /// Why the rest of the body was not taken; nil when all of it was.
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

/// How a request's body is written, by its headers.
package struct IngestForm: Sendable {
    var form: RecordCutter.Form
    var encoding: ContentEncoding?

    /// - Throws: `unsupportedEncoding`.
    package init(_ request: Request) throws(SluiceError) {
        form = request.headers[.contentType]?.contains("ndjson") ?? false ? .lines : .json
        encoding = try ContentEncoding.parse(request.headers[.contentEncoding])
    }
}

/// Asks again what the sender of a body may, while the body comes, which may take hours.
package struct RightsReview: Sendable {
    /// Nanoseconds between two questions.
    package static let interval: UInt64 = 5_000_000_000
    /// Nanoseconds for which a question is repeated that has no answer for now, as while a plugin starts again or PostgreSQL does; and
    /// between two tries, at first and at most.
    package static let patience: UInt64 = 10_000_000_000
    private static let pauses: ClosedRange<UInt64> = 100_000_000...1_000_000_000

    let environment: any SluiceCore.Environment
    /// Throws why the sender may not go on.
    let ask: @Sendable () async throws -> IngestRights

    package init(environment: any SluiceCore.Environment, ask: @escaping @Sendable () async throws -> IngestRights) {
        self.environment = environment
        self.ask = ask
    }

    /// What the sender may now.
    /// - Throws: why they may not go on, or why nobody knows for `patience`.
    func answer() async throws -> IngestRights {
        let deadline = environment.monotonicNanoseconds() + Self.patience
        var pause = Self.pauses.lowerBound
        while true {
            do { return try await ask() } catch let error as SluiceError where error.code.isPassing {
                guard environment.monotonicNanoseconds() + pause <= deadline, (try? await environment.sleep(nanoseconds: pause)) != nil
                else { throw error }
                pause = min(pause * 2, Self.pauses.upperBound)
            }
        }
    }
}

/// Leads one request's body into the log, a piece after the other: the next piece is read from the socket when the records of the one
/// before are acknowledged. Memory is a piece, the record that has begun, and the decompressor's window.
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
    ///   - rights: of the user who sends the body, at its beginning.
    ///   - review: what they are later on.
    /// - Throws: `internalError` when there is no memory for decompressing.
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

    /// SHA-256 of what was read, decompressed.
    var digest: [UInt8] { Array(hash.finalize()) }

    /// Reads the body to its end, or to what is wrong with it; the summary then says which.
    /// - Parameter each: is told of the records of one piece, in order, once they are acknowledged.
    /// - Throws: what `each` throws.
    @concurrent package func run(_ body: RequestBody, each: @concurrent ([IngestResult]) async throws -> Void) async throws {
        var pieces = body.makeAsyncIterator()
        do {
            while let piece = try await Self.next(&pieces) { try await take(piece, each) }
            try decompressor?.finish()
            var records: [RecordCutter.Record] = []
            let end = Result { () throws(SluiceError) in try cutter.finish(into: &records) }
            try await submit(records, each)
            try end.get()
        } catch let error as SluiceError {
            summary.failure = error
        }
    }

    /// Reads the body to its end for its digest alone.
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
            throw SluiceError(.badRequest, "The body ended in the middle.", fix: "Send the rest again.", detail: "\(error)")
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

    /// Records that are cut and not handed over, and the bytes since the last were.
    private var waiting: [RecordCutter.Record] = []
    private var waitingBytes = 0

    /// The end of the body: what waited, and what its end gave.
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
