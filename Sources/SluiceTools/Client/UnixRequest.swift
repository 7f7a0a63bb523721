import Foundation
import SluiceCore
import SluiceGateway

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif
#if canImport(Glibc)
    import Glibc
#endif

/// One HTTP request over a Unix socket, which `URLSession` does not support. Each read or write blocks the thread for at most 60 s.
enum UnixRequest {
    private static let seconds = 60
    private static let answerBytes = 64 << 20

    static func send(_ request: URLRequest, to path: String) throws(SluiceError) -> (status: Int, body: [UInt8]) {
        guard let socket = UnixSocket.connect(path) else { throw failure(path) }
        defer { close(socket) }
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(socket, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        let bytes = text(of: request)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw failure(path) }
            sent += count
        }
        return try parse(receive(socket), path)
    }

    private static func failure(_ path: String) -> SluiceError {
        SluiceError(.connectionFailed, "The gateway at the socket \(path) cannot be reached.", fix: "Check the path, and run as its owner.")
    }

    private static func text(of request: URLRequest) -> [UInt8] {
        let body = request.httpBody ?? Data()
        let query = request.url?.query(percentEncoded: true).map { "?\($0)" } ?? ""
        var head = "\(request.httpMethod ?? "GET") \(request.url?.path(percentEncoded: true) ?? "/")\(query) HTTP/1.1\r\n"
        head += "Host: localhost\r\nConnection: close\r\nContent-Length: \(body.count)\r\n"
        for (name, value) in request.allHTTPHeaderFields ?? [:] { head += "\(name): \(value)\r\n" }
        return Array("\(head)\r\n".utf8) + body
    }

    /// Reads until the gateway closes the connection, a read times out, or about 64 MiB have arrived.
    private static func receive(_ socket: Int32) -> [UInt8] {
        var received: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while received.count < answerBytes {
            let count = piece.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { break }
            received += piece.prefix(count)
        }
        return received
    }

    private static func parse(_ bytes: [UInt8], _ path: String) throws(SluiceError) -> (status: Int, body: [UInt8]) {
        let end = Array("\r\n\r\n".utf8)
        guard let split = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { throw failure(path) }
        let words = String(decoding: bytes[..<split], as: UTF8.self).prefix { $0 != "\r\n" }.split(separator: " ")
        guard words.count >= 2, let status = Int(words[1]) else { throw failure(path) }
        return (status, Array(bytes[(split + end.count)...]))
    }
}
