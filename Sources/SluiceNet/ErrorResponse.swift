package import HTTPTypes
package import Hummingbird
package import Logging
import NIOCore
package import SluiceCore
package import SluiceValues

/// An error as an HTTP response: App Services' fields (`error`, `error_code`, `link`) and Sluice's own (`code`, `fix`).
///
/// A response to clients has the texts of `ClientError`. One to operators has those of the error itself, with its cause.
package struct ErrorResponse: SluiceErrorConvertible, HTTPResponseError, Sendable {
    package var error: SluiceError
    package var asSluiceError: SluiceError { error }
    package var status: HTTPResponse.Status
    /// The name in `error_code`.
    package var name: String
    /// The value of `Retry-After`, in seconds; nil sends no such header.
    package var retryAfter: Int?

    /// - Parameters:
    ///   - status: The status; nil takes that of the error's code.
    ///   - name: App Services' name of the error, if it has one for this request only; nil takes that of the error's code.
    package init(_ error: SluiceError, status: HTTPResponse.Status? = nil, name: String? = nil, retryAfter: Int? = nil) {
        self.error = error
        self.status = status ?? error.code.httpStatus
        self.name = name ?? error.code.appServicesName
        self.retryAfter = retryAfter
    }

    /// The readers of a response.
    package enum Audience: Sendable { case clients, operators }

    /// The body for clients.
    package var json: JSON { json(for: .clients) }

    private func json(for audience: Audience) -> JSON {
        let forClients = ClientError(error)
        let isWhole = audience == .operators
        return .object([
            .init("error", .string(isWhole ? error.operatorText : forClients.message)),
            .init("error_code", .string(name)),
            .init("link", .string("docs/errors.md#\(error.code.name)")),
            .init("code", .int(Int64(error.code.rawValue))),
            .init("fix", .string(isWhole ? error.fix ?? error.code.fix : forClients.fix)),
        ])
    }

    /// The response for clients.
    package var response: Response { response(for: .clients) }

    /// Returns the response, with a challenge if the status is 401.
    package func response(for audience: Audience) -> Response {
        var response = JSONResponse(json(for: audience), status: status).response
        if let retryAfter { response.headers[.retryAfter] = String(retryAfter) }
        if status == .unauthorized { response.headers[.wwwAuthenticate] = "Bearer" }
        return response
    }

    package func response(from request: Request, context: some RequestContext) throws -> Response { response }
}

/// A JSON response, which no cache stores.
package struct JSONResponse: ResponseGenerator, Sendable {
    package var json: JSON
    package var status: HTTPResponse.Status

    package init(_ json: JSON, status: HTTPResponse.Status = .ok) {
        self.json = json
        self.status = status
    }

    package var response: Response {
        Response(
            status: status, headers: [.contentType: contentType, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: json.utf8)))
    }

    /// App Services' client libraries read errors of exactly the type `application/json` only. They also read a success of that type as an
    /// error if it has a text `error`, so such a success has a charset.
    private var contentType: String {
        let isSuccess = status.kind == .successful
        return isSuccess && json["error"]?.string != nil ? "application/json; charset=utf-8" : "application/json"
    }

    package func response(from request: Request, context: some RequestContext) throws -> Response { response }
}

/// Converts every error that a route throws to JSON in the shape of `ErrorResponse`. Add it to the router first.
package struct ErrorMiddleware<Context: RequestContext>: RouterMiddleware {
    private let audience: ErrorResponse.Audience
    private let logger: Logger?

    /// - Parameters:
    ///   - audience: the readers of the responses.
    ///   - logger: receives the details that responses withhold. `nil` uses the request's own.
    package init(for audience: ErrorResponse.Audience = .clients, logger: Logger? = nil) {
        self.audience = audience
        self.logger = logger
    }

    package func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as ErrorResponse {
            return answer(error, request, context)
        } catch let error as any SluiceErrorConvertible {
            return answer(ErrorResponse(error.asSluiceError), request, context)
        } catch let error as HTTPError {
            return Self.named(error, request).response
        } catch is NIOTooManyBytesError {
            return Self.named(HTTPError(.contentTooLarge), request).response
        } catch let error as any HTTPResponseError {
            return try error.response(from: request, context: context)
        } catch is CancellationError {
            return ErrorResponse(SluiceError(.shuttingDown, "The gateway is stopping.")).response
        } catch {
            // Not shown to the client: it may contain details for the operator only.
            (logger ?? context.logger).error("A request failed.", metadata: ["path": "\(request.uri.path)", "error": "\(error)"])
            return ErrorResponse(SluiceError(.internalError, "The gateway could not answer \(request.method) \(request.uri.path)."))
                .response
        }
    }

    /// Logs the details that the response withholds, then returns the response.
    private func answer(_ error: ErrorResponse, _ request: Request, _ context: Context) -> Response {
        if error.error.isWithheld {
            (logger ?? context.logger).error(
                "A request failed.", metadata: ["path": "\(request.uri.path)", "error": .string(error.error.description)])
        }
        return error.response(for: audience)
    }

    /// Returns Sluice's error for one of Hummingbird, with the request's method and path.
    private static func named(_ error: HTTPError, _ request: Request) -> ErrorResponse {
        switch error.status {
        case .notFound:
            ErrorResponse(
                SluiceError(.badRequest, "No route matches \(request.method) \(request.uri.path).", fix: "Check path and method."),
                status: .notFound)
        case .contentTooLarge:
            ErrorResponse(SluiceError(.bodyTooLarge, "The body of \(request.method) \(request.uri.path) is too large."))
        default:
            ErrorResponse(SluiceError(.badRequest, error.body ?? error.status.reasonPhrase), status: error.status)
        }
    }
}

extension Request {
    /// Reads and parses the whole body as JSON.
    /// - Parameter limit: the maximum size in bytes.
    /// - Throws: `bodyTooLarge` beyond the limit; `badJSON` with line and column.
    package func json(upTo limit: Int) async throws -> JSON {
        var request = self
        let buffer: ByteBuffer
        do { buffer = try await request.collectBody(upTo: limit) } catch is NIOTooManyBytesError {
            throw SluiceError(.bodyTooLarge, "The body is over \(limit) bytes.")
        }
        return try JSON.parse(Array(buffer.readableBytesView))
    }
}
