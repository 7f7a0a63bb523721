import HTTPTypes
package import Hummingbird
import NIOCore
import SluiceCore
import SluiceNet
import SluicePipeline
import SluicePostgres
import SluiceValues

/// The answers of `POST /v1/ingest/<Type>`: one JSON document, or NDJSON with a line per record and a closing line.
package enum IngestAnswer {
    /// Returns `true` if the request asks for a line per record.
    static func isStreamed(_ request: Request) -> Bool {
        request.headers[values: .accept].contains { $0.contains("application/x-ndjson") }
    }

    static func json(_ summary: IngestSummary) -> JSON {
        var members: [JSON.Member] = [
            .init("accepted", .int(Int64(summary.accepted))),
            .init("rejected_count", .int(Int64(summary.rejected))),
            .init("rejected", .array(summary.named.map { .object(refusal($0.line, $0.error)) })),
            .init("complete", .bool(summary.failure == nil)),
        ]
        if let failure = summary.failure { members += ErrorResponse(failure).json.members ?? [] }
        return .object(members)
    }

    /// Returns 200 if all records were accepted, 207 if some were, and 422 if none was. A failure of the body or the gateway has its own
    /// status. It is 207 if records were accepted before and a retry cannot help.
    static func status(_ summary: IngestSummary) -> HTTPResponse.Status {
        if let failure = summary.failure {
            let status = failure.code.httpStatus
            return summary.accepted > 0 && !failure.code.isRetriable ? .init(code: 207) : status
        }
        return summary.rejected == 0 ? .ok : summary.accepted > 0 ? .init(code: 207) : .unprocessableContent
    }

    package static func response(_ summary: IngestSummary) -> Response {
        var response = JSONResponse(json(summary), status: status(summary)).response
        if let failure = summary.failure, failure.code.isRetriable { response.headers[.retryAfter] = String(IngestGate.retryAfter) }
        return response
    }

    // MARK: NDJSON

    static let streamedHeaders: HTTPFields = [.contentType: "application/x-ndjson", .cacheControl: "no-store"]

    static func lines(_ results: [IngestResult]) -> ByteBuffer {
        var text: [UInt8] = []
        text.reserveCapacity(results.count * 48)
        for result in results {
            switch result.outcome {
            case .success(let place): append(result.line, place, to: &text)
            case .failure(let error): text += JSON.object(refusal(result.line, error)).utf8
            }
            text.append(UInt8(ascii: "\n"))
        }
        return ByteBuffer(bytes: text)
    }

    private static func append(_ line: Int, _ place: IngestPlace?, to text: inout [UInt8]) {
        text += "{\"line\":\(line),\"accepted\":true".utf8
        if let place { text += ",\"partition\":\(place.partition),\"offset\":\(place.offset)".utf8 }
        text.append(UInt8(ascii: "}"))
    }

    /// Returns the closing line. An answer without it was cut off.
    static func closing(_ summary: IngestSummary) -> ByteBuffer {
        var whole = summary
        whole.named = []
        let members = (json(whole).members ?? []).filter { $0.key != "rejected" }
        return ByteBuffer(bytes: JSON.object([.init("summary", .object(members))]).utf8 + [UInt8(ascii: "\n")])
    }

    // MARK: Stored answers

    private static let replayed = HTTPField.Name("Idempotency-Replayed")

    /// Returns the stored answer with the header `Idempotency-Replayed`. As NDJSON it has the stored rejections and the closing line.
    static func replay(_ answer: IngestRequestStore.Answer, isStreamed: Bool) -> Response {
        let json = (try? JSON.parse(answer.json)) ?? .null
        var response = JSONResponse(json, status: .init(code: answer.status)).response
        if isStreamed {
            let summary = (json.members ?? []).filter { $0.key != "rejected" } + [.init("replayed", true)]
            let lines = (json["rejected"]?.array ?? []) + [.object([.init("summary", .object(summary))])]
            let text = lines.flatMap { $0.utf8 + [UInt8(ascii: "\n")] }
            response = Response(status: .ok, headers: streamedHeaders, body: ResponseBody(byteBuffer: ByteBuffer(bytes: text)))
        }
        if let replayed { response.headers[replayed] = "true" }
        return response
    }

    private static func refusal(_ line: Int, _ error: SluiceError) -> [JSON.Member] {
        let told = ClientError(error)
        return [
            .init("line", .int(Int64(line))), .init("accepted", .bool(false)), .init("code", .int(Int64(told.code.rawValue))),
            .init("error", .string(told.message)), .init("fix", .string(told.fix)),
        ]
    }
}
