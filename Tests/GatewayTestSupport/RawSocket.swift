import Foundation
import SluiceCore
package import SluiceWire
import TestSupport

/// A WebSocket by hand, so that it can break the rules. Blocking calls run on a thread of their own.
package final class RawSocket: Sendable {
    private let socket: LocalSocket

    private init(_ socket: LocalSocket) { self.socket = socket }

    /// Connects and upgrades. Throws what is answered to an upgrade that is refused.
    package static func webSocket(
        _ url: String, path: String = WireProtocol.path(app: "shop"), speaking name: String = WireProtocol.name, host: String = "test",
        _ headers: String = ""
    ) async throws -> RawSocket {
        let port = Int(url.split(separator: ":").last ?? "") ?? 0
        return try await LocalSocket.onThread {
            let result = RawSocket(try LocalSocket(port: port, patience: 20))
            let head =
                "GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(headers)Connection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                + "Sec-WebSocket-Protocol: \(name)\r\n\r\n"
            try result.socket.write(Array(head.utf8))
            var answer = ""
            while !answer.hasSuffix("\r\n\r\n") { answer += String(decoding: try result.socket.read(1), as: UTF8.self) }
            if answer.hasPrefix("HTTP/1.1 101 ") { return result }
            let length = answer.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
            let body = try result.socket.read(length.flatMap { Int($0.dropFirst("content-length: ".count)) } ?? 0)
            throw Failure(what: answer + String(decoding: body, as: UTF8.self))
        }
    }

    package func send(_ bytes: [UInt8]) async throws { try await LocalSocket.onThread { try self.socket.write(bytes) } }

    /// A whole message in one frame, masked with zeros.
    package func send(_ kind: PBClientMessage.OneOf_Kind) async throws {
        let bytes = try WireProtocol.encode(PBClientMessage(kind))
        let length = (0..<8).map { UInt8(truncatingIfNeeded: UInt64(bytes.count) >> (56 - 8 * $0)) }
        try await send([0x82] + (bytes.count > 0xFFFF ? [0xFF] + length : [0xFE] + length.suffix(2)) + [0, 0, 0, 0] + bytes)
    }

    /// The next binary message; nil when the gateway says goodbye instead.
    package func message() async throws -> [UInt8]? {
        let frame = try await LocalSocket.onThread { try self.frame() }
        return frame.opcode == 2 ? frame.payload : nil
    }

    /// The code of the gateway's goodbye; messages before it are passed over.
    package func closeCode() async throws -> Int? {
        try await LocalSocket.onThread {
            while true {
                let frame = try self.frame()
                if frame.opcode == 8 { return frame.payload.count >= 2 ? Int(frame.payload[0]) << 8 | Int(frame.payload[1]) : nil }
            }
        }
    }

    package struct Failure: Error { package var what: String }

    /// A frame of the gateway: unmasked, and never in pieces.
    private func frame() throws -> (opcode: UInt8, payload: [UInt8]) {
        let head = try socket.read(2)
        var length = Int(head[1] & 0x7F)
        if length >= 126 { length = try socket.read(length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) } }
        return (head[0] & 0x0F, length == 0 ? [] : try socket.read(length))
    }
}
