import Foundation
#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Plain HTTP requests.
enum HTTP {
    static func post(_ url: String, _ body: Data, type: String, token: String? = nil) async throws -> (status: Int, body: String) {
        try await send("POST", url, body, type: type, token: token)
    }

    static func send(
        _ method: String, _ url: String, _ body: Data, type: String, token: String? = nil
    ) async throws -> (status: Int, body: String) {
        guard let address = URL(string: url) else { throw SceneFailure("\(url) is no address.") }
        var request = URLRequest(url: address)
        request.httpMethod = method
        request.httpBody = body
        request.timeoutInterval = 30
        request.setValue(type, forHTTPHeaderField: "Content-Type")
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let (data, response) = try await URLSession.shared.data(for: request)
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
    }
}
