import Foundation
import SluiceCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One request to the gateway and its answer. Bounded by a deadline; nothing is retried.
struct HTTPClient: Sendable {
    let base: String
    let milliseconds: UInt

    /// - Returns: the JSON of a success; null for an empty body.
    /// - Throws: `AppError`.
    func send(_ method: String, _ path: String, token: String? = nil, body: JSON? = nil) async throws -> JSON {
        guard let url = URL(string: base + path) else {
            throw AppError(.httpRequestFailed, "\(base + path) is no address; check AppConfiguration.baseURL.")
        }
        var request = URLRequest(url: url, timeoutInterval: Double(milliseconds) / 1_000)
        request.httpMethod = method
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        if let body {
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(body.utf8)
        }
        let (bytes, status) = try await HTTPClient.perform(request)
        guard (200..<300).contains(status) else { throw AppError(status: status, body: bytes) }
        if bytes.isEmpty { return .null }
        do throws(SluiceError) {
            return try JSON.parse(bytes)
        } catch {
            throw AppError(.httpRequestFailed, "The answer of \(url) is no JSON: \(error.message)", status: status)
        }
    }

    private static func perform(_ request: URLRequest) async throws -> ([UInt8], Int) {
        // By a result: after a throwing continuation, optimized code of Swift 6.3.1 does not return to the caller's actor.
        let result: Result<([UInt8], Int), AppError> = await withCheckedContinuation { continuation in
            let task = URLSession.shared.dataTask(with: request) { data, response, error in
                guard let response = response as? HTTPURLResponse else {
                    let reason = error?.localizedDescription ?? "no answer"
                    let url = request.url?.absoluteString ?? "The server"
                    continuation.resume(returning: .failure(AppError(.httpRequestFailed, "\(url) could not be reached: \(reason)")))
                    return
                }
                continuation.resume(returning: .success((Array(data ?? Data()), response.statusCode)))
            }
            task.resume()
        }
        return try result.get()
    }
}
