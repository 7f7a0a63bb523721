// Requests of HTTP/1.1 under test by any bytes, as a whole and in pieces: NIO's decoder and the guard behind it. Nothing may crash, or
// depend on the pieces, and no head that two servers may read in different ways may pass. `make fuzz` runs it.

import NIOCore
import NIOEmbedded
import NIOHTTP1

@testable import SluiceNet

/// A part of a request as the gateway's routes receive it, or the end of the connection.
private enum Part: Equatable {
    case head(HTTPRequestHead)
    case body([UInt8])
    case end
    case refused
}

/// Reads the bytes behind the first one, which has the size of the pieces.
func run(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let stream = Array(bytes.dropFirst())
    let (whole, pieces) = (parts(of: stream, piece: max(stream.count, 1)), parts(of: stream, piece: Int(first) + 1))
    if whole != pieces { fatalError("\(whole) as a whole, \(pieces) in pieces") }
    for case .head(let head) in whole { check(head) }
}

/// Checks the framing and the host of a head that has passed (RFC 9112, 3.2 and 6).
private func check(_ head: HTTPRequestHead) {
    let (hosts, lengths, codings) = (head.headers["host"], head.headers["content-length"], head.headers["transfer-encoding"])
    let isModern = head.version == .http1_1
    guard hosts.count == (isModern ? 1 : min(hosts.count, 1)), lengths.count + codings.count <= 1, isModern || codings.isEmpty,
        codings.allSatisfy({ $0.lowercased() == "chunked" }), lengths.allSatisfy({ UInt64($0) != nil })
    else { fatalError("this head has passed: \(head)") }
}

/// Returns the parts that pass. Bodies are joined, as their pieces may differ.
private func parts(of stream: [UInt8], piece: Int) -> [Part] {
    let channel = EmbeddedChannel()
    var parts: [Part] = []
    do {
        let decoder = ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes))
        try channel.pipeline.syncOperations.addHandlers([decoder, RequestGuard()])
        for start in stride(from: 0, to: stream.count, by: piece) {
            // Parts before a malformed one have passed.
            let isWhole = (try? channel.writeInbound(ByteBuffer(bytes: stream[start..<min(start + piece, stream.count)]))) != nil
            try take(from: channel, &parts)
            guard isWhole, try !isRefused(channel) else { return parts + [.refused] }
        }
        _ = try channel.finish(acceptAlreadyClosed: true)
    } catch { return parts + [.refused] }
    return parts
}

/// Takes the parts that have passed, and answers each request: a refusal waits for the responses before it.
private func take(from channel: EmbeddedChannel, _ parts: inout [Part]) throws {
    while let part = try channel.readInbound(as: HTTPServerRequestPart.self) {
        add(part, to: &parts)
        guard case .end = part else { continue }
        try channel.writeOutbound(HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok)))
        try channel.writeOutbound(HTTPServerResponsePart.end(nil))
    }
}

private func isRefused(_ channel: EmbeddedChannel) throws -> Bool {
    while let part = try channel.readOutbound(as: HTTPServerResponsePart.self) {
        if case .head(let head) = part, head.status == .badRequest { return true }
    }
    return false
}

private func add(_ part: HTTPServerRequestPart, to parts: inout [Part]) {
    switch part {
    case .head(let head): parts.append(.head(head))
    case .end: parts.append(.end)
    case .body(let bytes):
        let bytes = Array(bytes.readableBytesView)
        if case .body(let earlier)? = parts.last { parts[parts.count - 1] = .body(earlier + bytes) } else { parts.append(.body(bytes)) }
    }
}

/// The name of the inputs in the last line of the output.
let tested = "streams of requests"
