import Glibc
import SluiceCore
import Synchronization

/// The host's side of the socket: loads the plugin and answers calls, one at a time.
struct PluginServer {
    private let library: Int32
    private let descriptor: Int32
    private let channel: ServerChannel
    private var sandbox: HostSandbox?
    private let watch: ProcessorWatch?
    private var plugin: LoadedPlugin?
    /// Hooks that have been called since the plugin was loaded.
    private var warm: Set<Hook> = []

    /// - Parameters:
    ///   - library: the plugin's library, a file in memory.
    ///   - sandbox: what this process has been shut in by; nil inside the gateway.
    ///   - watch: what ends this process when a call runs over; nil inside the gateway.
    init(descriptor: Int32, library: Int32, sandbox: HostSandbox?, watch: ProcessorWatch? = nil) {
        self.library = library
        self.descriptor = descriptor
        self.sandbox = sandbox
        self.watch = watch
        channel = ServerChannel(descriptor: descriptor)
    }

    /// Serves until the other end is closed. Blocks the thread.
    mutating func serve() {
        defer { channel.close() }
        var decoder = HostedDecoder()
        while case .bytes(let bytes) = Descriptors.read(descriptor) {
            decoder.feed(bytes)
            do {
                while let message = try decoder.next() {
                    guard case .call(let id, let hook, let deadline, let processor, let input) = message else { continue }
                    channel.send(.answer(id: id, answer(hook, deadline: deadline, processor: processor, input: input)))
                }
            } catch { return }
        }
    }

    func run() {
        var server = self
        server.serve()
    }

    private mutating func answer(_ hook: Hook, deadline: UInt64, processor: UInt64, input: [UInt8]) -> HookAnswer {
        if hook == .load { return load(path: String(decoding: input, as: UTF8.self)) }
        guard monotonicNow() < deadline else { return HookAnswer(status: .late, bytes: []) }
        guard let plugin else { return HookAnswer(status: .failed, bytes: Array("no plugin is loaded".utf8)) }
        guard processor < .max else { return plugin.call(hook, input) }
        let budget = warm.insert(hook).inserted ? processor &+ PluginLimits.firstCallNanoseconds : processor
        let start = ProcessorWatch.used()
        watch?.begin(budget)
        let answer = plugin.call(hook, input)
        watch?.end()
        // The timer has the grain of the kernel's clock, and inside the gateway there is none.
        return ProcessorWatch.used() - start <= budget ? answer : HookAnswer(status: .overrun, bytes: [])
    }

    private mutating func load(path: String) -> HookAnswer {
        let channel = channel
        do {
            let loaded = try PluginLoader.load(library, path: path) { level, text in channel.send(.log(level: level, text: text)) }
            plugin = loaded
            sandbox?.seal()
            var info = loaded.info
            info.missing = sandbox?.missing ?? ["process"]
            return HookAnswer(status: .ok, bytes: info.json.utf8)
        } catch { return HookAnswer(status: .unusable, bytes: error.hostedBytes) }
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
