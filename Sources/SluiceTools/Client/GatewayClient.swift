package import Foundation
package import SluiceCore
package import SluiceValues

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A client of a gateway's HTTP interface, over TCP or a Unix socket.
package struct GatewayClient: Sendable {
    package let url: String
    /// The token for requests without an `Authorization` header.
    private let adminToken: String?
    /// The limit of a request over TCP without an answer, in seconds.
    private let patience: Double

    package static let socketScheme = "unix:"

    package init(url: String, adminToken: String? = nil, patience: Double = 60) {
        self.url = url
        self.patience = patience
        self.adminToken = adminToken
    }

    /// The path of the Unix socket; nil if the URL is an HTTP address.
    private var socket: String? { url.hasPrefix(Self.socketScheme) ? String(url.dropFirst(Self.socketScheme.count)) : nil }
    private var base: String { socket == nil ? url : "http://localhost" }

    package struct Answer: Sendable {
        package var status: Int
        package var json: JSON

        /// The error that the gateway reported; `badRequest` if the body holds no known code.
        package var error: SluiceError {
            let code = json["code"]?.int.flatMap { UInt16(exactly: $0) }.flatMap { ErrorCode(rawValue: $0) } ?? .badRequest
            return SluiceError(code, json["error"]?.string ?? "The gateway answered with status \(status).", fix: json["fix"]?.string)
        }
    }

    /// Returns the app id that the gateway serves.
    ///
    /// - Throws: `configMissing` if the answer names no app, as that of an older gateway; `connectionFailed`.
    package func app() async throws -> String {
        let answer = try await get("/health", [:])
        guard answer.status == 200, let app = answer.json["app"]?.string else {
            throw SluiceError(.configMissing, "\(url) does not say which app it serves.", fix: "Pass the app id: --app.")
        }
        return app
    }

    /// Logs in with one attempt.
    ///
    /// - Returns: An access token.
    /// - Throws: The gateway's error if the answer has no token.
    package func login(app: String, provider: String, _ credentials: JSON) async throws -> String {
        let path = "/api/client/v2.0/app/\(app)/auth/providers/\(provider)/login"
        let answer = try await post(path, Data(credentials.utf8), contentType: "application/json", token: nil, attempts: 1)
        guard let token = answer.json["access_token"]?.string else { throw answer.error }
        return token
    }

    /// Sends a GET request, without retries, and parses the body as JSON. A body that is not JSON becomes `null`.
    package func get(_ path: String, _ parameters: [String: String]) async throws -> Answer {
        var components = URLComponents(string: base + path)
        components?.queryItems = parameters.sorted { $0.key < $1.key }.map { URLQueryItem(name: $0.key, value: $0.value) }
        guard let address = components?.url else { throw SluiceError(.configInvalid, "\(url) is not an address.") }
        return try await send(URLRequest(url: address), attempts: 1)
    }

    /// Sends a POST request and parses the body as JSON. A body that is not JSON becomes `null`.
    /// - Parameter attempts: The attempts over TCP, at least one. The client retries connection errors, 5xx, and 409 or 429 with
    ///   `Retry-After`. It pauses for half a second, or for `Retry-After` clamped to 1...30 s. A Unix socket has one attempt.
    /// - Throws: The last error if every attempt failed.
    package func post(
        _ path: String, _ body: Data, contentType: String, token: String?, _ headers: [String: String] = [:], attempts: Int
    ) async throws -> Answer {
        guard let address = URL(string: base + path) else { throw SluiceError(.configInvalid, "\(url) is not an address.") }
        var request = URLRequest(url: address)
        request.httpMethod = "POST"
        request.httpBody = body
        request.setValue(contentType, forHTTPHeaderField: "Content-Type")
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        return try await send(request, attempts: attempts)
    }

    private func send(_ asked: URLRequest, attempts: Int) async throws -> Answer {
        var request = asked
        if let adminToken, request.value(forHTTPHeaderField: "Authorization") == nil {
            request.setValue("Bearer \(adminToken)", forHTTPHeaderField: "Authorization")
        }
        if let socket {
            let (status, body) = try UnixRequest.send(request, to: socket)
            return Answer(status: status, json: (try? JSON.parse(body)) ?? .null)
        }
        request.timeoutInterval = patience
        var last = SluiceError(.connectionFailed, "The gateway at \(url) cannot be reached.")
        var pause = Duration.milliseconds(500)
        for attempt in 0..<max(attempts, 1) {
            if attempt > 0 { try await Task.sleep(for: pause) }
            pause = .milliseconds(500)
            do {
                let (data, response) = try await URLSession.shared.data(for: request)
                let http = response as? HTTPURLResponse
                let answer = Answer(status: http?.statusCode ?? 0, json: (try? JSON.parse(Array(data))) ?? .null)
                let seconds = http?.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) }
                guard answer.status >= 500 || (seconds != nil && [409, 429].contains(answer.status)) else { return answer }
                if let seconds { pause = .seconds(min(max(seconds, 1), 30)) }
                last = answer.error
            } catch {
                last = SluiceError(
                    .connectionFailed, "The gateway at \(url) cannot be reached.", cause: .text(error.localizedDescription))
            }
        }
        throw last
    }
}
