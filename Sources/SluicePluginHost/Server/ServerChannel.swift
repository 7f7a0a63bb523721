import Glibc
import SluiceCore
import Synchronization

/// Writes messages from the serving thread and from threads of the plugin that log.
final class ServerChannel: Sendable {
    private let descriptor: Mutex<Int32>

    init(descriptor: Int32) { self.descriptor = Mutex(descriptor) }

    /// Sends a message. Blocks until the socket has accepted it; the gateway always reads. Does nothing once closed.
    func send(_ message: HostedMessage) {
        var bytes: [UInt8] = []
        // Cut here too: the text may have grown when invalid UTF-8 was replaced.
        if case .log(let level, let text) = message, text.utf8.count > PluginLimits.logLineBytes {
            let cut = String(decoding: text.utf8.prefix(PluginLimits.logLineBytes), as: UTF8.self)
            HostedProtocol.encode(.log(level: level, text: cut), into: &bytes)
        } else {
            HostedProtocol.encode(message, into: &bytes)
        }
        // The lock covers the whole message, or messages of two threads would interleave.
        descriptor.withLock { descriptor in
            var rest = bytes[...]
            while descriptor >= 0, !rest.isEmpty {
                guard let count = Descriptors.send(descriptor, rest) else { return }
                rest.removeFirst(count)
            }
        }
    }

    /// Closes the socket. Runs under the lock, because the descriptor's number may be reused at once.
    func close() {
        descriptor.withLock { descriptor in
            Descriptors.close(descriptor)
            descriptor = -1
        }
    }
}

/// Reads the gateway's messages. Only the serving thread uses it.
final class ServerInput {
    struct Call {
        var id: UInt64
        var hook: Hook
        var deadline: UInt64
        var processor: UInt64
        var input: [UInt8]
    }

    private let descriptor: Int32
    private var decoder = HostedDecoder()
    /// The calls that arrived while the plugin waited for an answer of the gateway.
    private var waiting: [Call] = []

    init(descriptor: Int32) { self.descriptor = descriptor }

    /// Blocks until a call arrives. Returns nil once the gateway has closed the socket.
    func nextCall() -> Call? {
        if !waiting.isEmpty { return waiting.removeFirst() }
        while let message = read() {
            if case .call(let id, let hook, let deadline, let processor, let input) = message {
                return Call(id: id, hook: hook, deadline: deadline, processor: processor, input: input)
            }
        }
        return nil
    }

    /// Blocks until the gateway has answered the open question. Returns nil once the gateway has closed the socket.
    func told() -> HookAnswer? {
        while let message = read() {
            switch message {
            case .told(let answer): return answer
            case .call(let id, let hook, let deadline, let processor, let input):
                waiting.append(Call(id: id, hook: hook, deadline: deadline, processor: processor, input: input))
            default: break
            }
        }
        return nil
    }

    /// Reads one message. Returns nil for a closed socket and for an invalid message.
    private func read() -> HostedMessage? {
        do {
            while true {
                if let message = try decoder.next() { return message }
                guard case .bytes(let bytes) = Descriptors.read(descriptor) else { return nil }
                decoder.feed(bytes)
            }
        } catch { return nil }
    }
}
