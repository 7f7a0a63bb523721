import Foundation
import SluiceCore
import SluiceWire

/// A WebSocket by hand, so that it can break the rules. Blocking calls run on a thread of their own.
final class RawSocket: Sendable {
    private let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    /// Connects and upgrades. Throws what is answered to an upgrade that is refused.
    static func webSocket(_ url: String, speaking name: String = WireProtocol.name) async throws -> RawSocket {
        let port = UInt16(url.split(separator: ":").last ?? "") ?? 0
        return try await onThread {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var limit = timeval(tv_sec: 20, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let connected = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard connected == 0 else { throw Failure(what: "connecting failed: \(errno)") }
            let result = RawSocket(descriptor)
            let head =
                "GET \(WireProtocol.path(app: "shop")) HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                + "Sec-WebSocket-Protocol: \(name)\r\n\r\n"
            try result.write(Array(head.utf8))
            var answer = ""
            while !answer.hasSuffix("\r\n\r\n") { answer += String(decoding: try result.read(1), as: UTF8.self) }
            if answer.hasPrefix("HTTP/1.1 101 ") { return result }
            let length = answer.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
            let body = try result.read(length.flatMap { Int($0.dropFirst("content-length: ".count)) } ?? 0)
            throw Failure(what: answer + String(decoding: body, as: UTF8.self))
        }
    }

    func send(_ bytes: [UInt8]) async throws { try await Self.onThread { try self.write(bytes) } }

    /// A whole message in one frame, masked with zeros.
    func send(_ kind: PBClientMessage.OneOf_Kind) async throws {
        let bytes = try WireProtocol.encode(PBClientMessage(kind))
        try await send([0x82, 0xFE, UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF), 0, 0, 0, 0] + bytes)
    }

    /// The next binary message; nil when the gateway says goodbye instead.
    func message() async throws -> [UInt8]? {
        let frame = try await Self.onThread { try self.frame() }
        return frame.opcode == 2 ? frame.payload : nil
    }

    /// The code of the gateway's goodbye; messages before it are passed over.
    func closeCode() async throws -> Int? {
        try await Self.onThread {
            while true {
                let frame = try self.frame()
                if frame.opcode == 8 { return frame.payload.count >= 2 ? Int(frame.payload[0]) << 8 | Int(frame.payload[1]) : nil }
            }
        }
    }

    struct Failure: Error { var what: String }

    private func write(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Failure(what: "sending failed: \(errno)") }
            sent += count
        }
    }

    private func read(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes[filled...].withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard got > 0 else { throw Failure(what: "the connection ended: \(errno)") }
            filled += got
        }
        return bytes
    }

    /// A frame of the gateway: unmasked, and never in pieces.
    private func frame() throws -> (opcode: UInt8, payload: [UInt8]) {
        let head = try read(2)
        var length = Int(head[1] & 0x7F)
        if length >= 126 { length = try read(length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) } }
        return (head[0] & 0x0F, length == 0 ? [] : try read(length))
    }

    private static func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
        }
    }
}

#if canImport(Glibc)
    import Glibc
#endif
