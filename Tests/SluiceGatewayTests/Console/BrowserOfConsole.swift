import Foundation
import GatewayTestSupport
import TestSupport
import Testing

/// A browser that follows no redirection and keeps no cookie by itself, as URLSession does.
struct BrowserOfConsole {
    typealias Answer = (status: Int, fields: [String: String], text: String)

    let gateway: RunningGateway

    func ask(
        _ method: String, _ path: String, form: String = "", cookie: String? = nil, _ fields: [String: String] = [:]
    ) async throws -> Answer {
        let address = try #require(URL(string: gateway.adminURL))
        let port = try #require(address.port)
        var head = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n"
        head += "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(form.utf8.count)\r\n"
        if let cookie { head += "Cookie: sluice_console=\(cookie)\r\n" }
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        let request = Array("\(head)\r\n\(form)".utf8)
        let bytes = try await LocalSocket.onThread {
            let socket = try LocalSocket(port: port, patience: 60)
            try socket.write(request)
            return try socket.readAll()
        }
        let answer = String(decoding: bytes, as: UTF8.self)
        let end = try #require(answer.range(of: "\r\n\r\n"), "\(answer)")
        let lines = answer[..<end.lowerBound].split(separator: "\r\n")
        let status = try #require(lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) })
        let pairs = lines.dropFirst().compactMap { line -> (String, String)? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (line[..<colon].lowercased(), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
        }
        return (status, Dictionary(pairs) { $1 }, String(answer[end.upperBound...]))
    }

    func logIn(_ token: String, _ fields: [String: String] = [:]) async throws -> Answer {
        try await ask("POST", "/console/login", form: "token=\(token)", ["Origin": gateway.adminURL].merging(fields) { $1 })
    }

    /// Returns the text of the console's cookie in a `Set-Cookie`.
    static func value(of cookie: String?) -> String? {
        cookie?.prefixMatch(of: /sluice_console=([^;]+);/).map { String($0.1) }
    }
}
