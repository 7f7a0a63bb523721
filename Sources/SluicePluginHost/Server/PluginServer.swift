import Glibc
import SluiceCore
import SluiceValues
import Synchronization

/// The host's side of the socket: loads the plugin and answers calls, one at a time.
struct PluginServer {
    private let library: Int32
    private let input: ServerInput
    private let channel: ServerChannel
    private let desk: PluginHostServices
    private var sandbox: HostSandbox?
    private let watch: ProcessorWatch?
    private var plugin: LoadedPlugin?
    /// The hooks called since the plugin was loaded.
    private var warm: Set<Hook> = []

    /// - Parameters:
    ///   - library: The descriptor of the plugin's library, a memory file.
    ///   - sandbox: The sandbox of this process; nil inside the gateway.
    ///   - watch: The timer that ends this process when a call overruns; nil inside the gateway.
    init(descriptor: Int32, library: Int32, sandbox: HostSandbox?, watch: ProcessorWatch? = nil) {
        self.library = library
        self.sandbox = sandbox
        self.watch = watch
        input = ServerInput(descriptor: descriptor)
        channel = ServerChannel(descriptor: descriptor)
        desk = PluginHostServices(input: input, channel: channel)
    }

    /// Serves until the other end is closed. Blocks the thread.
    mutating func serve() {
        defer { channel.close() }
        while let call = input.nextCall() {
            channel.send(.answer(id: call.id, answer(call.hook, deadline: call.deadline, processor: call.processor, input: call.input)))
        }
    }

    func run() {
        var server = self
        server.serve()
    }

    private mutating func answer(_ hook: Hook, deadline: UInt64, processor: UInt64, input: [UInt8]) -> HookAnswer {
        if hook == .load { return load(path: String(decoding: input, as: UTF8.self)) }
        // The caller has stopped waiting, so the work would be wasted.
        guard monotonicNow() < deadline else { return HookAnswer(status: .late, bytes: []) }
        guard let plugin else { return HookAnswer(status: .failed, bytes: Array("no plugin is loaded".utf8)) }
        desk.open()
        defer { desk.close() }
        guard processor < .max else { return plugin.call(hook, input) }
        let budget = warm.insert(hook).inserted ? processor &+ PluginLimits.firstCallNanoseconds : processor
        let start = ProcessorWatch.used()
        watch?.begin(budget)
        let answer = plugin.call(hook, input)
        watch?.end()
        // The timer has the resolution of the kernel's clock, and the gateway itself has no timer.
        return ProcessorWatch.used() - start <= budget ? answer : HookAnswer(status: .overrun, bytes: [])
    }

    private mutating func load(path: String) -> HookAnswer {
        do {
            let loaded = try PluginLoader.load(library, path: path, desk: desk)
            plugin = loaded
            // Seal only after the load, which has to read the libraries that the plugin depends on.
            sandbox?.seal()
            var info = loaded.info
            info.missing = sandbox?.missing ?? ["process"]
            return HookAnswer(status: .ok, bytes: info.json.utf8)
        } catch { return HookAnswer(status: .unusable, bytes: error.hostedBytes) }
    }
}
