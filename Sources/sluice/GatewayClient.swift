import Foundation
import SluiceCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A gateway's HTTP interface, as the command line uses it.
struct GatewayClient {
    let url: String

    struct Answer {
        var status: Int
        var json: JSON

        /// What the gateway said was wrong.
        var error: SluiceError {
            let code = json["code"]?.int.flatMap { UInt16(exactly: $0) }.flatMap { ErrorCode(rawValue: $0) } ?? .badRequest
            return SluiceError(code, json["error"]?.string ?? "The gateway answered with status \(status).", fix: json["fix"]?.string)
        }
    }

    /// - Returns: an access token.
    func login(app: String, provider: String, _ credentials: JSON) async throws -> String {
        let path = "/api/client/v2.0/app/\(app)/auth/providers/\(provider)/login"
        let answer = try await post(path, Data(credentials.utf8), contentType: "application/json", token: nil, attempts: 1)
        guard let token = answer.json["access_token"]?.string else { throw answer.error }
        return token
    }

    /// Posts and reads the JSON that comes back.
    /// - Parameter attempts: how often to try while nobody answers or the gateway is not ready (5xx), half a second apart.
    func post(_ path: String, _ body: Data, contentType: String, token: String?, attempts: Int) async throws -> Answer {
        guard let address = URL(string: url + path) else { throw SluiceError(.configInvalid, "\(url) is not an address.") }
        var request = URLRequest(url: address)
        request.httpMethod = "POST"
        request.httpBody = body
        request.timeoutInterval = 60
        request.setValue(contentType, forHTTPHeaderField: "Content-Type")
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        var last = SluiceError(.connectionFailed, "The gateway at \(url) cannot be reached.")
        for attempt in 0..<max(attempts, 1) {
            if attempt > 0 { try await Task.sleep(for: .milliseconds(500)) }
            do {
                let (data, response) = try await URLSession.shared.data(for: request)
                let status = (response as? HTTPURLResponse)?.statusCode ?? 0
                let answer = Answer(status: status, json: (try? JSON.parse(Array(data))) ?? .null)
                if status < 500 { return answer }
                last = answer.error
            } catch {
                last = SluiceError(.connectionFailed, "The gateway at \(url) cannot be reached: \(error.localizedDescription)")
            }
        }
        throw last
    }
}
