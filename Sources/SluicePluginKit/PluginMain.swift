public import CSluicePlugin

/// Makes a `RulePlugin` into what the gateway loads. The whole of a plugin's entry is
/// ```swift
/// @c @implementation
/// public func sluice_plugin_entry(
///     _ host: UnsafePointer<sluice_host>, _ plugin: UnsafeMutablePointer<sluice_plugin>, _ answer: UnsafePointer<sluice_sink>
/// ) -> sluice_status { PluginMain.register(MyPlugin.self, host, plugin, answer) }
/// ```
public enum PluginMain {
    /// Fills the table with the hooks that the type has. To be called from `sluice_plugin_entry` with its arguments.
    public static func register(
        _ type: (some RulePlugin).Type, _ host: UnsafePointer<sluice_host>, _ plugin: UnsafeMutablePointer<sluice_plugin>,
        _ answer: UnsafePointer<sluice_sink>
    ) -> sluice_status {
        let major = UInt32(SLUICE_PLUGIN_ABI_MAJOR)
        guard unsafe host.pointee.abi_major == major else {
            unsafe plugin.pointee.abi_major = major
            unsafe answer.pointee.append("built for version \(major) of the interface, the host has \(host.pointee.abi_major)")
            return SLUICE_FAILED
        }
        let instance = type.init(log: unsafe PluginLog(host: host))
        (instance as? any AsksGateway)?.connect(to: unsafe PluginGateway(host: host))
        var table = unsafe sluice_plugin()
        unsafe table.size = UInt32(MemoryLayout<sluice_plugin>.size)
        unsafe table.abi_major = major
        unsafe table.abi_minor = UInt32(SLUICE_PLUGIN_ABI_MINOR)
        // Never released: a plugin is never unloaded.
        unsafe table.state = Unmanaged.passRetained(Instance(instance, hostMinor: host.pointee.abi_minor)).toOpaque()
        unsafe table.name = lasting(type.name)
        unsafe table.version = lasting(type.version)
        if let keys = type.configKeys { unsafe table.config_schema = lasting(ConfigKey.json(keys).json) }
        unsafe table.configure = configureHook
        if instance is any SessionRules { unsafe table.open_session = openSessionHook }
        if instance is any SubscriptionRules { unsafe table.check_subscription = checkSubscriptionHook }
        if instance is any WriteRules { unsafe table.check_write = checkWriteHook }
        if instance is any IngestRules { unsafe table.ingest = ingestHook }
        if instance is any UserChangeRules { unsafe table.user_changed = userChangedHook }
        // A host of an older minor version has a shorter table: only what it knows is written.
        let room = unsafe min(Int(plugin.pointee.size), MemoryLayout<sluice_plugin>.size)
        unsafe withUnsafeBytes(of: table) { bytes in
            unsafe UnsafeMutableRawPointer(plugin).copyMemory(from: bytes.baseAddress!, byteCount: room)
        }
        return SLUICE_OK
    }

    /// Text that stays for the life of the process.
    private static func lasting(_ text: String) -> sluice_text {
        let bytes = UnsafeMutableBufferPointer<CChar>.allocate(capacity: max(text.utf8.count, 1))
        for (index, byte) in text.utf8.enumerated() { unsafe bytes[index] = CChar(bitPattern: byte) }
        return unsafe sluice_text(data: UnsafePointer(bytes.baseAddress), length: text.utf8.count)
    }
}

/// Keeps a plugin behind the opaque pointer that the interface hands round.
final class Instance {
    let plugin: any RulePlugin
    /// The minor version of the interface that the gateway has.
    let hostMinor: UInt32

    init(_ plugin: any RulePlugin, hostMinor: UInt32) {
        self.plugin = plugin
        self.hostMinor = hostMinor
    }
}

extension sluice_text {
    var bytes: [UInt8] { unsafe Array(UnsafeRawBufferPointer(start: data, count: length)) }
}

extension sluice_sink {
    func append(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            unsafe utf8.withMemoryRebound(to: CChar.self) { unsafe write(context, sluice_text(data: $0.baseAddress, length: $0.count)) }
        }
    }
}
