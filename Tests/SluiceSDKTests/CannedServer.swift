import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// An HTTP server on a port of the system's choice that gives prepared answers, one connection at a time.
final class CannedServer: Sendable {
    struct Request: Hashable, Sendable {
        var line: String
        var headers: [String: String]
        var body: String
    }

    struct Answer: Sendable {
        var status: Int
        var body: String
    }

    let port: UInt16
    private let socket: Int32
    private let log = Log()

    private final class Log: Sendable {
        let requests = Mutex<[Request]>([])
    }

    var requests: [Request] { log.requests.withLock { $0 } }
    var url: String { "http://127.0.0.1:\(port)" }

    init(_ answer: @escaping @Sendable (Request) -> Answer) throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.socket = socket
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                Glibc.bind(socket, address, length) == 0 && listen(socket, 8) == 0 && getsockname(socket, address, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [log] in
            while true {
                let connection = accept(socket, nil, nil)
                guard connection >= 0 else { break }
                CannedServer.serve(connection) { request in
                    log.requests.withLock { $0.append(request) }
                    return answer(request)
                }
                close(connection)
            }
            // Here and not in `deinit`: this thread would accept the connections of whoever gets the number next.
            close(socket)
        }
    }

    deinit { shutdown(socket, Int32(SHUT_RDWR)) }

    private static func serve(_ connection: Int32, _ answer: (Request) -> Answer) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let text = String(decoding: bytes, as: UTF8.self)
            if let end = text.range(of: "\r\n\r\n") {
                let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
                var headers: [String: String] = [:]
                for line in lines.dropFirst() {
                    let parts = line.split(separator: ":", maxSplits: 1)
                    headers[parts[0].lowercased()] = parts.last.map { $0.trimmingCharacters(in: .whitespaces) }
                }
                let body = text[end.upperBound...]
                if body.utf8.count >= Int(headers["content-length"] ?? "0") ?? 0 {
                    let reply = answer(Request(line: lines[0], headers: headers, body: String(body)))
                    let head = "HTTP/1.1 \(reply.status) X\r\nContent-Length: \(reply.body.utf8.count)\r\nConnection: close\r\n\r\n"
                    let output = Array((head + reply.body).utf8)
                    _ = write(connection, output, output.count)
                    return
                }
            }
            let count = read(connection, &buffer, buffer.count)
            if count <= 0 { return }
            bytes.append(contentsOf: buffer[..<count])
        }
    }
}
