import Glibc
import SluiceCore
import Synchronization

/// The host's side of the socket: loads the plugin and answers calls, one at a time.
enum PluginServer {
    /// Serves until the other end is closed. Blocks the thread.
    static func run(descriptor: Int32) {
        let channel = ServerChannel(descriptor: descriptor)
        defer { channel.close() }
        var decoder = HostedDecoder()
        var plugin: LoadedPlugin?
        while case .bytes(let bytes) = Descriptors.read(descriptor) {
            decoder.feed(bytes)
            do {
                while let message = try decoder.next() {
                    guard case .call(let id, let hook, let deadline, let input) = message else { continue }
                    channel.send(.answer(id: id, answer(hook, deadline: deadline, input: input, plugin: &plugin, channel: channel)))
                }
            } catch { return }
        }
    }

    private static func answer(
        _ hook: Hook, deadline: UInt64, input: [UInt8], plugin: inout LoadedPlugin?, channel: ServerChannel
    ) -> HookAnswer {
        if hook == .load {
            let path = String(decoding: input, as: UTF8.self)
            do {
                let loaded = try PluginLoader.load(path: path) { level, text in channel.send(.log(level: level, text: text)) }
                plugin = loaded
                return HookAnswer(status: .ok, bytes: loaded.info.json.utf8)
            } catch { return HookAnswer(status: .unusable, bytes: error.hostedBytes) }
        }
        guard monotonicNow() < deadline else { return HookAnswer(status: .late, bytes: []) }
        return plugin?.call(hook, input) ?? HookAnswer(status: .failed, bytes: Array("no plugin is loaded".utf8))
    }
}

/// Writes messages, from the serving thread and from threads of the plugin that log.
private final class ServerChannel: Sendable {
    private let descriptor: Mutex<Int32>

    init(descriptor: Int32) { self.descriptor = Mutex(descriptor) }

    /// Blocks until the socket has taken the message; the gateway always reads. No effect once closed.
    func send(_ message: HostedMessage) {
        var bytes: [UInt8] = []
        if case .log(let level, let text) = message, text.utf8.count > PluginLimits.logLineBytes {
            let cut = String(decoding: text.utf8.prefix(PluginLimits.logLineBytes), as: UTF8.self)
            HostedProtocol.encode(.log(level: level, text: cut), into: &bytes)
        } else {
            HostedProtocol.encode(message, into: &bytes)
        }
        descriptor.withLock { descriptor in
            var rest = bytes[...]
            while descriptor >= 0, !rest.isEmpty {
                guard let count = Descriptors.send(descriptor, rest) else { return }
                rest.removeFirst(count)
            }
        }
    }

    /// Closed under the lock: the number may be another file's a moment later.
    func close() {
        descriptor.withLock { descriptor in
            Descriptors.close(descriptor)
            descriptor = -1
        }
    }
}
