import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import SluiceCore
import SluiceNet
import SluicePipeline
import SluicePorts

/// The route `POST /v1/ingest/<Type>`: asymmetric objects as a JSON object, a JSON array, or NDJSON, optionally with gzip or zstd
/// (docs/ingest.md).
///
/// A body may have any size. It is read in pieces, and a piece is answered once the log has acknowledged it. The answer is one JSON
/// document, or a line per record (`Accept: application/x-ndjson`). A rejected record does not stop the others. A repeated body is
/// harmless, as the primary key makes an object take effect once. If the sender loses the right to insert, the rest of the body is
/// rejected.
struct IngestRoutes: Sendable {
    let services: SessionServices
    let keys: APIKeys
    let idempotency: IdempotencyKeys
    let gate = IngestGate()

    func add(to router: Router<some ProvableContext>) {
        router.post("/v1/ingest/:type") { request, context in
            do {
                return try await self.take(request, type: try context.parameters.require("type"), proven: { context.senderIsProven() })
            } catch let error as SluiceError where error.code.isRetriable {
                throw ErrorResponse(error, retryAfter: IngestGate.retryAfter)
            }
        }
    }

    /// - Parameter proven: Called once the sender has authenticated.
    private func take(_ request: Request, type name: String, proven: () -> Void) async throws -> Response {
        let (sender, user) = try await authenticate(request)
        proven()
        let schema = services.authority.current().schema
        guard let type = schema[name], type.kind == .asymmetric else {
            throw ErrorResponse(SluiceError(.ingestUnknownType, "No asymmetric class is named \(name)."), status: .notFound)
        }
        let form = try IngestForm(request)
        let rights = try await rights(of: user, type, schema)
        let review = RightsReview(environment: services.environment) {
            try await self.rights(of: try await self.user(of: sender), type, schema)
        }
        let body = Body(form: form, type: type, schema: schema, rights: rights, review: review, intake: services.ingest, gate: gate)
        // Authentication precedes the gate: unauthenticated requests must not occupy its places.
        let pass = try gate.enter()
        let lease: IdempotencyKeys.Lease?
        switch try await idempotency.begin(request, user: user.id, type: name) {
        case .first(let mine): lease = mine
        case nil: lease = nil
        case .repeated(let answer):
            let run = try body.run()
            try await run.skip(request.body)
            try IdempotencyKeys.check(answer, type: name, body: run.digest)
            // Keeps the place in the gate until the body has been read.
            withExtendedLifetime(pass) {}
            return IngestAnswer.replay(answer, isStreamed: IngestAnswer.isStreamed(request))
        }
        let work = Work(body: body, pass: pass, lease: lease, logger: services.logger)
        return IngestAnswer.isStreamed(request) ? stream(request, work) : IngestAnswer.response(try await work.run(request.body) { _ in })
    }

    /// Returns a line per record as soon as it is acknowledged, while the body is still being read.
    private func stream(_ request: Request, _ work: Work) -> Response {
        Response(
            status: .ok, headers: IngestAnswer.streamedHeaders,
            body: ResponseBody { writer in
                let summary = try await work.run(request.body) { try await writer.write(IngestAnswer.lines($0)) }
                try await writer.write(IngestAnswer.closing(summary))
                try await writer.finish(nil)
            })
    }

    /// A body to read, with the rights of its sender.
    private struct Body: Sendable {
        let form: IngestForm
        let type: ObjectType
        let schema: Schema
        let rights: IngestRights
        let review: RightsReview
        let intake: any IngestIntake
        let gate: IngestGate

        func run() throws(SluiceError) -> IngestRun {
            try IngestRun(form, type: type, schema: schema, rights: rights, review: review, intake: intake, gate: gate)
        }
    }

    /// An admitted request.
    private struct Work: Sendable {
        let body: Body
        let pass: IngestGate.Pass
        let lease: IdempotencyKeys.Lease?
        let logger: Logger

        @concurrent func run(
            _ content: RequestBody, each: @concurrent ([IngestResult]) async throws -> Void
        ) async throws -> IngestSummary {
            do {
                let run = try body.run()
                try await run.run(content) { results in
                    try await lease?.renew()
                    try await each(results)
                }
                if let failure = run.summary.failure, failure.isWithheld {
                    // The answer withholds the cause.
                    logger.error(
                        "A body of objects was not stored completely.",
                        metadata: ["type": "\(body.type.name)", "error": .string(failure.description)])
                }
                await lease?.finish(run.summary, body: run.digest)
                return run.summary
            } catch {
                await lease?.release()
                throw error
            }
        }
    }

    // MARK: Authentication

    private static let keyHeader = HTTPField.Name("apiKey")

    private enum Sender {
        case user(Authenticated)
        case key(String)
    }

    /// Authenticates by an access token or by an API key. The key is in `apiKey` or is the bearer; a key has no dots, a token has two.
    private func authenticate(_ request: Request) async throws -> (Sender, UserContext) {
        do {
            if let name = Self.keyHeader, let key = request.headers[name] { return (.key(key), try await user(of: .key(key))) }
            guard let header = request.headers[.authorization], header.lowercased().hasPrefix("bearer ") else {
                throw SluiceError(
                    .badAuthentication, "The request has no access token and no API key.",
                    fix: "Send Authorization: Bearer with a token or a key.")
            }
            let text = String(header.dropFirst("Bearer ".count))
            guard text.contains(".") else { return (.key(text), try await user(of: .key(text))) }
            let user = try await services.authenticator.authenticate(token: text)
            return (.user(user), user.user)
        } catch let error as SluiceError {
            let isClients = [ErrorCode.providerDisabled, .userDisabled].contains(error.code) || error.code.httpStatus == .unauthorized
            throw ErrorResponse(error, status: isClients ? .unauthorized : nil)
        }
    }

    /// Returns the current data of the sender. The token must not have expired at the start of a body.
    private func user(of sender: Sender) async throws -> UserContext {
        switch sender {
        case .user(let user): try await services.authenticator.current(user)
        case .key(let key): try await keys.account(of: key).context
        }
    }

    /// - Throws: `permissionDenied` if the user may not insert, or if the rule is unusable.
    private func rights(of user: UserContext, _ type: ObjectType, _ schema: Schema) async throws -> IngestRights {
        let plan = try await services.rules.openSession(user: user, types: [type.name])
        let rights = IngestRights(plan[type.name], type: type, schema: schema)
        if let unusable = rights.unusable {
            services.logger.warning(
                "Objects sent by HTTP are rejected, because their rule cannot be used.",
                metadata: ["type": "\(type.name)", "user": "\(user.id)", "rule": "\(unusable.rule)"])
            throw SluiceError(.permissionDenied, unusable.error.message)
        }
        guard rights.mayInsert else {
            throw SluiceError(.permissionDenied, "The rules do not let this user insert into \(type.name).")
        }
        return rights
    }
}
