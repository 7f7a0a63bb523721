public import CSluicePlugin

/// A plugin's type, created by `PluginMain.export`.
public typealias PluginExport = UnsafeMutableRawPointer

/// The entry point that every plugin exports.
@c @implementation
public func sluice_plugin_entry(
    _ host: UnsafePointer<sluice_host>, _ plugin: UnsafeMutablePointer<sluice_plugin>, _ answer: UnsafePointer<sluice_sink>
) -> sluice_status { unsafe PluginMain.enter(host, plugin, answer) }

/// The object behind a `PluginExport`.
private final class Exported {
    let type: any RulePlugin.Type

    init(type: any RulePlugin.Type) { self.type = type }
}

/// Converts a `RulePlugin` to a library that the gateway loads. A plugin exports itself in one line, anywhere in its module:
/// ```swift
/// @c func sluice_plugin_type() -> PluginExport { PluginMain.export(MyPlugin.self) }
/// ```
/// The kit defines the entry that the gateway calls, `sluice_plugin_entry`, which calls that function for the type.
public enum PluginMain {
    /// Returns the value for `sluice_plugin_type` to return.
    public static func export(_ type: (some RulePlugin).Type) -> PluginExport {
        unsafe PluginExport(Unmanaged.passRetained(Exported(type: type)).toOpaque())
    }

    fileprivate static func enter(
        _ host: UnsafePointer<sluice_host>, _ plugin: UnsafeMutablePointer<sluice_plugin>, _ answer: UnsafePointer<sluice_sink>
    ) -> sluice_status {
        guard let export = unsafe sluice_plugin_type() else {
            unsafe answer.pointee.append(
                "the plugin does not say which type it is: it needs the line "
                    + "`@c func sluice_plugin_type() -> PluginExport { PluginMain.export(MyPlugin.self) }`")
            return SLUICE_FAILED
        }
        let exported = unsafe Unmanaged<Exported>.fromOpaque(export).takeRetainedValue()
        return unsafe register(exported.type, host, plugin, answer)
    }

    /// Fills the table with the hooks that the type implements.
    package static func register(
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
        // Never released, because a plugin is never unloaded.
        unsafe table.state = Unmanaged.passRetained(Instance(instance)).toOpaque()
        unsafe table.name = lasting(type.name)
        unsafe table.version = lasting(type.version)
        if let keys = type.configKeys { unsafe table.config_schema = lasting(ConfigKey.json(keys).json) }
        unsafe table.configure = configureHook
        if instance is any SessionRules { unsafe table.open_session = openSessionHook }
        if instance is any SubscriptionRules { unsafe table.check_subscription = checkSubscriptionHook }
        if instance is any WriteRules { unsafe table.check_write = checkWriteHook }
        if instance is any IngestRules { unsafe table.ingest = ingestHook }
        if instance is any UserChangeRules { unsafe table.user_changed = userChangedHook }
        if instance is any FunctionHandler { unsafe table.call_function = callFunctionHook }
        if instance is any LoginHandler { unsafe table.authenticate = authenticateHook }
        // The table of an older host has no place for later hooks, so only the part that both know is written.
        let room = unsafe min(Int(plugin.pointee.size), MemoryLayout<sluice_plugin>.size)
        unsafe withUnsafeBytes(of: table) { bytes in
            unsafe UnsafeMutableRawPointer(plugin).copyMemory(from: bytes.baseAddress!, byteCount: room)
        }
        return SLUICE_OK
    }

    /// Returns text that lives as long as the process.
    private static func lasting(_ text: String) -> sluice_text {
        let bytes = UnsafeMutableBufferPointer<CChar>.allocate(capacity: max(text.utf8.count, 1))
        for (index, byte) in text.utf8.enumerated() { unsafe bytes[index] = CChar(bitPattern: byte) }
        return unsafe sluice_text(data: UnsafePointer(bytes.baseAddress), length: text.utf8.count)
    }
}

/// The owner of a plugin behind the opaque pointer of the interface.
final class Instance {
    let plugin: any RulePlugin
    private var tables = ColumnTables()
    /// The last writer and their JSON. Batches of one session have the same user, so decoding is rare.
    private var lastUser: (json: [UInt8], user: PluginUser)?

    init(_ plugin: any RulePlugin) { self.plugin = plugin }

    func user(_ json: UnsafeRawBufferPointer) throws -> PluginUser {
        if let lastUser, unsafe lastUser.json.elementsEqual(json) { return lastUser.user }
        let bytes = unsafe Array(json)
        let user = try PluginUser(try PluginValue(parsing: bytes))
        lastUser = (bytes, user)
        return user
    }

    func writes(_ writes: UnsafePointer<sluice_writes>, in batch: RowBatch) -> [PluginWrite] {
        let types = unsafe (0..<writes.pointee.type_count).map { unsafe sluice_type_at(writes, $0) }
        let tables = unsafe types.map { unsafe self.tables.table(of: $0.pointee) }
        func row(_ row: sluice_row, _ table: ColumnTable) -> PluginRow? {
            guard let cells = unsafe row.cells else { return nil }
            return unsafe PluginRow(batch, table, start: UnsafeRawPointer(cells) - UnsafeRawPointer(row.arena))
        }
        return unsafe (0..<writes.pointee.write_count).map { index in
            let write = unsafe sluice_write_at(writes, index).pointee
            let table = unsafe tables[types.firstIndex(of: write.type) ?? 0]
            return unsafe PluginWrite(
                type: table.type, operation: Self.name(write.operation), before: row(write.before, table), after: row(write.after, table))
        }
    }

    private static func name(_ operation: UInt32) -> String {
        switch sluice_operation(rawValue: operation) {
        case SLUICE_INSERT: "insert"
        case SLUICE_UPDATE: "update"
        default: "delete"
        }
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
