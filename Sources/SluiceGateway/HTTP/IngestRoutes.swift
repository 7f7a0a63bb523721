import HTTPTypes
import Hummingbird
import NIOCore
import SluiceCore
import SluiceNet
import SluicePipeline

/// `POST /v1/ingest/<Type>`: asymmetric objects by HTTP, as one JSON object, a JSON array, or NDJSON (one object a line).
///
/// The answer comes when Kafka has every accepted object: `{"accepted": n, "rejected": [{"line": 3, "code": 801, …}]}`, with
/// status 200 when all were accepted, 207 when some were, 422 when none was. A line that is refused does not stop the
/// others. Sending a batch again is harmless: the primary key makes an object land once.
struct IngestRoutes: Sendable {
    let services: SessionServices

    /// One request's body, bytes. Beyond: 413 `body-too-large`.
    static let bodyBytes = 8 << 20

    func add(to router: Router<some RequestContext>) {
        router.post("/v1/ingest/:type") { request, context in
            try await self.take(request, type: try context.parameters.require("type"))
        }
    }

    private func take(_ request: Request, type name: String) async throws -> Response {
        let user = try await authenticate(request)
        guard let type = services.authority.current().schema[name], type.kind == .asymmetric else {
            throw ErrorResponse(SluiceError(.ingestUnknownType, "There is no asymmetric type \(name)."), status: .notFound)
        }
        let plan = try await services.rules.openSession(user: user.user, types: [name])
        guard plan[name].insert, plan[name].write != TypePlan.denied.write else {
            throw ErrorResponse(SluiceError(.permissionDenied, "The rules do not let this user insert into \(name)."), status: .forbidden)
        }
        var request = request
        let body: ByteBuffer
        do {
            body = try await request.collectBody(upTo: Self.bodyBytes)
        } catch is NIOTooManyBytesError {
            throw SluiceError(.bodyTooLarge, "The body is over \(Self.bodyBytes) bytes.")
        }
        let isLines = request.headers[.contentType]?.contains("ndjson") ?? false
        let lines = try isLines ? IngestLines.lines(of: body) : IngestLines.objects(of: body)
        return try await answer(lines, type: type)
    }

    private func authenticate(_ request: Request) async throws -> Authenticated {
        guard let header = request.headers[.authorization], header.hasPrefix("Bearer ") else {
            throw ErrorResponse(
                SluiceError(.badAuthentication, "The request has no access token.", fix: "Send Authorization: Bearer <access token>."),
                status: .unauthorized)
        }
        do {
            return try await services.authenticator.authenticate(token: String(header.dropFirst("Bearer ".count)))
        } catch let error as SluiceError {
            throw ErrorResponse(error, status: .unauthorized)
        }
    }

    private func answer(_ lines: [IngestLines.Line], type: ObjectType) async throws -> Response {
        var rejected: [(line: Int, error: SluiceError)] = []
        var objects: [(line: Int, json: JSON)] = []
        for line in lines {
            switch line.content {
            case .success(let json): objects.append((line.number, json))
            case .failure(let error): rejected.append((line.number, error))
            }
        }
        let errors = objects.isEmpty ? [] : try await services.ingest.submit(objects.map(\.json), type: type)
        for (object, error) in zip(objects, errors) {
            if let error { rejected.append((object.line, error)) }
        }
        rejected.sort { $0.line < $1.line }
        let accepted = lines.count - rejected.count
        let json: JSON = [
            "accepted": .int(Int64(accepted)),
            "rejected": .array(
                rejected.map { line, error in
                    [
                        "line": .int(Int64(line)), "code": .int(Int64(error.code.rawValue)), "error": .string(error.message),
                        "fix": .string(error.fix ?? error.code.fix),
                    ]
                }),
        ]
        let status: HTTPResponse.Status = rejected.isEmpty ? .ok : accepted > 0 ? .init(code: 207) : .unprocessableContent
        return JSONResponse(json, status: status).response
    }
}

/// A request's body cut into objects.
enum IngestLines {
    struct Line {
        /// From 1: the line of NDJSON, or the place in the array.
        var number: Int
        var content: Result<JSON, SluiceError>
    }

    /// NDJSON; empty lines are passed over.
    static func lines(of body: ByteBuffer) -> [Line] {
        body.readableBytesView.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated()
            .filter { !$0.element.allSatisfy { $0 == 0x20 || $0 == 0x0D || $0 == 0x09 } }
            .map { index, line in
                Line(number: index + 1, content: Result { () throws(SluiceError) in try JSON.parse(Array(line)) })
            }
    }

    /// One object, or an array of them.
    static func objects(of body: ByteBuffer) throws(SluiceError) -> [Line] {
        let json = try JSON.parse(Array(body.readableBytesView))
        return (json.array ?? [json]).enumerated().map { Line(number: $0.offset + 1, content: .success($0.element)) }
    }
}
