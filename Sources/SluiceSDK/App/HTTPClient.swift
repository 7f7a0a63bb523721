import Foundation
import SluiceCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request to the gateway and its answer. Bounded by a deadline; nothing is retried.
struct HTTPClient: Sendable {
    /// Without a slash at its end.
    let base: String
    let milliseconds: UInt
    /// The header that carries tokens.
    let authorizationHeader: String
    /// Nil: `URLSession`.
    let transport: (any NetworkTransport)?

    /// - Returns: the JSON of a success; null for an empty body.
    /// - Throws: `AppError`.
    func send(_ method: NetworkRequest.Method, _ path: String, token: String? = nil, body: JSON? = nil) async throws -> JSON {
        let url = base + path
        var headers: [String: String] = [:]
        if let token { headers[authorizationHeader] = "Bearer \(token)" }
        if body != nil { headers["Content-Type"] = "application/json" }
        let request = NetworkRequest(
            method: method, url: url, timeout: Double(milliseconds) / 1_000, headers: headers, body: body?.text ?? "")
        let (bytes, status) = try await perform(request)
        guard (200..<300).contains(status) else { throw AppError(status: status, body: bytes) }
        if bytes.isEmpty { return .null }
        do throws(SluiceError) {
            return try JSON.parse(bytes)
        } catch {
            throw AppError(.httpRequestFailed, "The answer of \(url) is no JSON: \(error.message)", status: status)
        }
    }

    private func perform(_ request: NetworkRequest) async throws -> ([UInt8], Int) {
        guard let transport else { return try await HTTPClient.perform(request) }
        let response = await transport.send(request)
        guard response.httpStatusCode > 0 else { throw HTTPClient.unreachable(request.url, response.body) }
        return (Array(response.body.utf8), response.httpStatusCode)
    }

    private static func perform(_ request: NetworkRequest) async throws -> ([UInt8], Int) {
        guard let url = URL(string: request.url) else {
            throw AppError(.httpRequestFailed, "\(request.url) is no address; check AppConfiguration.baseURL.")
        }
        var message = URLRequest(url: url, timeoutInterval: request.timeout)
        message.httpMethod = request.method.rawValue
        for (name, value) in request.headers { message.setValue(value, forHTTPHeaderField: name) }
        if !request.body.isEmpty { message.httpBody = Data(request.body.utf8) }
        return try await perform(message)
    }

    private static func perform(_ request: URLRequest) async throws -> ([UInt8], Int) {
        // By a result: after a throwing continuation, optimized code of Swift 6.3.1 does not return to the caller's actor.
        let result: Result<([UInt8], Int), AppError> = await withCheckedContinuation { continuation in
            let task = URLSession.shared.dataTask(with: request) { data, response, error in
                guard let response = response as? HTTPURLResponse else {
                    let reason = error?.localizedDescription ?? "no answer"
                    continuation.resume(returning: .failure(unreachable(request.url?.absoluteString ?? "The server", reason)))
                    return
                }
                continuation.resume(returning: .success((Array(data ?? Data()), response.statusCode)))
            }
            task.resume()
        }
        return try result.get()
    }

    private static func unreachable(_ url: String, _ reason: String) -> AppError {
        AppError(.httpRequestFailed, "\(url) could not be reached: \(reason.isEmpty ? "no answer" : reason)")
    }
}
