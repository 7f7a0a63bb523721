import Foundation
import SluiceCore
import SluiceSync
import SluiceValues

/// Sends one request to the gateway and waits for its answer, bounded by a deadline. Never retries.
struct HTTPClient: Sendable {
    /// The server's address, without a trailing slash.
    let base: String
    let milliseconds: UInt
    /// The header that carries tokens.
    let authorizationHeader: String
    /// The app's transport; nil: the platform's, which is `URLSession` on Apple's platforms and SwiftNIO elsewhere.
    let transport: (any NetworkTransport)?
    /// The keys that the server may have. An own transport checks keys itself.
    let pins: KeyPins

    /// Sends a request.
    /// - Returns: the JSON of a 2xx answer; null for an empty body.
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
            throw AppError(.httpRequestFailed, "The answer of \(url) is not valid JSON: \(error.message)", status: status)
        }
    }

    private func perform(_ request: NetworkRequest) async throws -> ([UInt8], Int) {
        guard let transport else { return try await HTTPClient.perform(request, pins) }
        let response = await transport.send(request)
        guard response.httpStatusCode > 0 else { throw HTTPClient.unreachable(request.url, response.body) }
        return (Array(response.body.utf8), response.httpStatusCode)
    }

    #if canImport(Darwin)
        private static func perform(_ request: NetworkRequest, _ pins: KeyPins) async throws -> ([UInt8], Int) {
            guard let url = URL(string: request.url) else { throw unusable(request.url) }
            do { try pins.check(request.url, isSecure: url.scheme?.lowercased() == "https") } catch {
                throw unreachable(request.url, error.operatorText)
            }
            var message = URLRequest(url: url, timeoutInterval: request.timeout)
            message.httpMethod = request.method.rawValue
            for (name, value) in request.headers { message.setValue(value, forHTTPHeaderField: name) }
            if !request.body.isEmpty { message.httpBody = Data(request.body.utf8) }
            // A result, not a throwing continuation: after one, optimized code of Swift 6.3.1 does not return to the caller's actor.
            let result: Result<([UInt8], Int), AppError> = await withCheckedContinuation { continuation in
                let task = URLSession.shared.dataTask(with: message)
                task.delegate = SystemRequest(pins) { answer in
                    continuation.resume(returning: answer.mapError { unreachable(request.url, $0.operatorText) })
                }
                task.resume()
            }
            return try result.get()
        }
    #else
        /// Sends by SwiftNIO. Foundation's `URLSession` on Linux spins on a core while it waits for the answer to a request with a body.
        private static func perform(_ request: NetworkRequest, _ pins: KeyPins) async throws -> ([UInt8], Int) {
            guard URL(string: request.url)?.host != nil else { throw unusable(request.url) }
            let milliseconds = UInt64(max(0, min(request.timeout, NetworkRequest.longest)) * 1_000)
            // A result, for the same reason as above.
            let result: Result<HTTPTransport.Response, SluiceError>
            do {
                result = .success(
                    try await HTTPTransport(pins: pins).send(
                        HTTPTransport.Request(
                            method: request.method.rawValue, url: request.url, headers: request.headers, body: Array(request.body.utf8),
                            milliseconds: milliseconds)))
            } catch {
                result = .failure(error)
            }
            switch result {
            case .success(let response): return (response.body, response.status)
            case .failure(let error): throw unreachable(request.url, error.operatorText)
            }
        }
    #endif

    private static func unusable(_ url: String) -> AppError {
        AppError(.httpRequestFailed, "\(url) is no address; check AppConfiguration.baseURL.")
    }

    private static func unreachable(_ url: String, _ reason: String) -> AppError {
        AppError(.httpRequestFailed, "\(url) could not be reached: \(reason.isEmpty ? "no answer" : reason)")
    }
}
