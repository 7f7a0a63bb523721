import Dispatch
import Foundation
import Hummingbird
import NIOCore
import SluiceCore
import SluiceNet
import Testing

@Suite(.timeLimit(.minutes(1)))
struct FlowTests {
    @Test func `the server pings, and a peer that answers stays`() async throws {
        // A hundred pings may go unanswered, so that a slow machine ends nothing; 150 are seen.
        try await withServer(limits: .init(pingInterval: .milliseconds(40), silence: .seconds(4))) { server in
            let client = try await RawClient.connect(port: server.port, answersPings: true)
            _ = try await client.upgrade()
            for _ in 0..<150 { #expect(try await client.readFrame().opcode == 9) }
            try await client.send(clientFrame(Array("!still here".utf8)))
            var frame = try await client.readFrame()
            while frame.opcode == 9 { frame = try await client.readFrame() }
            #expect(frame == .binary(Array("!still here".utf8)))
        }
    }

    @Test func `a silent peer is dropped`() async throws {
        try await withServer(limits: .init(pingInterval: .milliseconds(20), silence: .milliseconds(100))) { server in
            let client = try await RawClient.webSocket(port: server.port)
            _ = try await client.readToEnd()
            #expect(try await server.nextOwner().end() == .silent)
        }
    }

    @Test func `a reader that does not read shows in bufferedBytes, and drains when it does`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port, reads: false)
            let owner = try await server.nextOwner()
            let socket = try await owner.open()
            let frame = SharedFrame.encode(binary: [UInt8](repeating: 9, count: 1 << 20))
            for _ in 0..<32 { socket.send(frame) }
            #expect(await owner.next() == .writable(false))
            // What the kernel's buffers of both ends take is at most a few megabytes.
            #expect(socket.bufferedBytes > 8 << 20)
            #expect(socket.bufferedBytes <= 32 * frame.byteCount)
            try await client.startReading()
            for _ in 0..<32 { #expect(try await client.readFrame().payload.count == 1 << 20) }
            #expect(await owner.next() == .writable(true))
            #expect(try await socket.eventLoop.submit { socket.bufferedBytes }.get() == 0)
        }
    }

    @Test func `pings of a peer that does not read are not hoarded`() async throws {
        try await withServer(limits: .init(outboxWatermark: 1...2)) { server in
            let client = try await RawClient.webSocket(port: server.port, reads: false)
            let owner = try await server.nextOwner()
            let socket = try await owner.open()
            socket.send(.encode(binary: [UInt8](repeating: 9, count: 24 << 20)))
            #expect(await owner.next() == .writable(false))
            let full = socket.bufferedBytes
            for number in 0..<200 { try await client.send(clientFrame([UInt8(number)], opcode: 9)) }
            try await client.send(clientFrame([0]))
            #expect(await owner.next() == .message([0]))
            #expect(socket.bufferedBytes <= full)
            try await client.startReading()
            #expect(try await client.readFrame().payload.count == 24 << 20)
            #expect(try await client.readFrame() == .pong([199]))
        }
    }

    @Test func `paused reading holds messages back until it resumes`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            let owner = try await server.nextOwner()
            let socket = try await owner.open()
            socket.pauseReading()
            // The pause is in force when the loop has passed it.
            try await socket.eventLoop.submit {}.get()
            try await client.send(clientFrame([1]))
            socket.send(.encode(binary: [7]))
            #expect(try await client.readFrame() == .binary([7]))
            try await client.send(clientFrame([2]))
            socket.resumeReading()
            #expect(await owner.next() == .message([1]))
            #expect(await owner.next() == .message([2]))
        }
    }

    @Test func `a frame of the event loop follows those that other threads sent before it`() async throws {
        try await withServer { server in
            let client = try await RawClient.webSocket(port: server.port)
            let socket = try await server.nextOwner().open()
            try await socket.eventLoop.submit {
                let isSent = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    socket.send(.encode(binary: [1]))
                    isSent.signal()
                }
                // The loop is here, so it has not written the frame.
                isSent.wait()
                socket.send(.encode(binary: [2]))
            }.get()
            socket.send(.encode(binary: [3]))
            for number: UInt8 in 1...3 { #expect(try await client.readFrame() == .binary([number])) }
        }
    }

    @Test func `one frame reaches a thousand connections`() async throws {
        try await withServer { server in
            let port = server.port
            var clients: [RawClient] = []
            var sockets: [ServerSocket] = []
            for _ in 0..<1_000 {
                clients.append(try await RawClient.webSocket(port: port))
                sockets.append(try await server.nextOwner().open())
            }
            #expect(server.server.connectionCount == 1_000)
            let batch = SharedFrame.join((0..<16).map { .encode(binary: [UInt8($0)]) })
            ServerSocket.send(batch, toAll: sockets)
            ServerSocket.send(.encode(binary: [99]), toAll: sockets)
            for client in clients {
                for number in 0..<16 { #expect(try await client.readFrame() == .binary([UInt8(number)])) }
                #expect(try await client.readFrame() == .binary([99]))
                await client.close()
            }
        }
    }
}
