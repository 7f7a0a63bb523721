package import CSluicePlugin
import Glibc
package import SluiceCore

/// Opens plugins.
package enum PluginLoader {
    /// Opens the library, calls its entry once and checks the table. The library stays loaded for the life of the process.
    /// - Parameters:
    ///   - library: The descriptor of the file. Its number must be unique among the libraries of the process.
    ///   - path: The path for errors.
    ///   - desk: The services offered to the plugin.
    /// - Throws: `pluginMissing`, `pluginABIMismatch` or `pluginRefused`, with the file.
    static func load(_ library: Int32, path: String, desk: PluginHostServices) throws(SluiceError) -> LoadedPlugin {
        let entry = try unsafe symbol(library, path: path)
        let host = unsafe desk.makeTable()
        var table = unsafe sluice_plugin()
        unsafe table.size = UInt32(MemoryLayout<sluice_plugin>.size)
        unsafe table.abi_major = UInt32(SLUICE_PLUGIN_ABI_MAJOR)
        unsafe table.abi_minor = UInt32(SLUICE_PLUGIN_ABI_MINOR)
        let collector = AnswerCollector()
        let status = unsafe collector.withSink { sink in unsafe entry(host, &table, sink) }
        if let error = unsafe mismatch(path, major: table.abi_major, minor: table.abi_minor) { throw error }
        guard status == SLUICE_OK else {
            let reason = String(decoding: collector.bytes, as: UTF8.self)
            throw SluiceError(.pluginRefused, "\(path) refused to start: \(reason.isEmpty ? "it gives no reason" : reason)")
        }
        return unsafe LoadedPlugin(path: path, table: table)
    }

    /// Returns an error that names the side to upgrade, or nil if the plugin has the gateway's major version.
    package static func mismatch(_ path: String, major: UInt32, minor: UInt32) -> SluiceError? {
        let ours = UInt32(SLUICE_PLUGIN_ABI_MAJOR)
        guard major != ours else { return nil }
        let remedy = major > ours ? "the gateway is to be upgraded" : "the plugin is to be built with this release's sluice_plugin.h"
        return SluiceError(
            .pluginABIMismatch,
            "\(path) is built for version \(major).\(minor) of the plugin interface; this is \(ours).\(SLUICE_PLUGIN_ABI_MINOR): \(remedy)")
    }

    private typealias Entry =
        @convention(c) (
            UnsafePointer<sluice_host>, UnsafeMutablePointer<sluice_plugin>, UnsafePointer<sluice_sink>
        ) -> sluice_status

    private static func symbol(_ file: Int32, path: String) throws(SluiceError) -> Entry {
        // By descriptor, so that the checked bytes are loaded and not a file that has replaced them.
        let name = "/proc/self/fd/\(file)"
        // Never unloaded, because threads of the plugin may keep running its code.
        guard let library = unsafe dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) else {
            let reason = unsafe dlerror().map { unsafe String(cString: $0) } ?? "no reason given"
            let told = reason.hasPrefix("\(name): ") ? String(reason.dropFirst(name.count + 2)) : reason
            throw SluiceError(.pluginMissing, "\(path) cannot be loaded", cause: .text(told))
        }
        guard let address = unsafe dlsym(library, "sluice_plugin_entry") else {
            throw SluiceError(
                .pluginMissing, "\(path) is not a plugin: it exports no sluice_plugin_entry",
                fix: "Export sluice_plugin_entry as sluice_plugin.h declares it.")
        }
        return unsafe unsafeBitCast(address, to: Entry.self)
    }
}

/// An opened plugin. Its hooks are called on one thread at a time.
@safe
final class LoadedPlugin {
    let info: PluginInfo
    private let table: sluice_plugin

    fileprivate init(path: String, table: sluice_plugin) {
        let table = unsafe table.declared
        unsafe self.table = table
        let name = unsafe table.name.string
        let file = path.split(separator: "/").last.map(String.init) ?? path
        let hooks = Hook.allCases.filter {
            unsafe $0.takesRows ? Self.rowsFunction($0, of: table) != nil : Self.function($0, of: table) != nil
        }
        info = unsafe PluginInfo(
            name: name.isEmpty ? file : name, version: table.version.string, hooks: Set(hooks),
            configSchema: table.config_schema.data == nil ? nil : table.config_schema.string)
    }

    /// Calls a hook. A missing hook is a failure.
    func call(_ hook: Hook, _ input: [UInt8]) -> HookAnswer {
        let collector = AnswerCollector()
        guard let result = hook.takesRows ? callRows(hook, input, collector) : call(hook, input, collector) else {
            return HookAnswer(status: .failed, bytes: Array("\(info.name) has no hook \(hook.name) for this input".utf8))
        }
        guard !collector.isOverfull else {
            let error = SluiceError(
                .pluginBadAnswer, "\(info.name) answered \(hook.name) with more than \(PluginLimits.messageBytes) bytes")
            return HookAnswer(status: .unusable, bytes: error.hostedBytes)
        }
        let status: HookAnswer.Status = result == SLUICE_OK ? .ok : result == SLUICE_DENY ? .denied : .failed
        return HookAnswer(status: status, bytes: collector.bytes)
    }

    private func call(_ hook: Hook, _ input: [UInt8], _ collector: AnswerCollector) -> sluice_status? {
        guard let function = unsafe Self.function(hook, of: table) else { return nil }
        return unsafe input.withUnsafeBytes { bytes in
            let text = unsafe sluice_text(data: bytes.assumingMemoryBound(to: CChar.self).baseAddress, length: bytes.count)
            return unsafe collector.withSink { sink in unsafe function(table.state, text, sink) }
        }
    }

    /// Calls a hook with rows; nil also for a malformed frame, which no gateway sends.
    private func callRows(_ hook: Hook, _ frame: [UInt8], _ collector: AnswerCollector) -> sluice_status? {
        guard let function = unsafe Self.rowsFunction(hook, of: table) else { return nil }
        return unsafe RowFrame.withWrites(in: frame) { writes in
            unsafe collector.withSink { sink in unsafe function(table.state, writes, sink) }
        }
    }

    private typealias Function = @convention(c) (UnsafeMutableRawPointer?, sluice_text, UnsafePointer<sluice_sink>) -> sluice_status

    private static func function(_ hook: Hook, of table: sluice_plugin) -> Function? {
        switch hook {
        case .load: nil
        case .configure: unsafe table.configure
        case .openSession: unsafe table.open_session
        case .checkSubscription: unsafe table.check_subscription
        case .userChanged: unsafe table.user_changed
        case .callFunction: unsafe table.call_function
        case .authenticate: unsafe table.authenticate
        case .checkWrite, .ingest: nil
        }
    }

    private typealias RowsFunction =
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<sluice_writes>, UnsafePointer<sluice_sink>) -> sluice_status

    private static func rowsFunction(_ hook: Hook, of table: sluice_plugin) -> RowsFunction? {
        switch hook {
        case .checkWrite: unsafe table.check_write
        case .ingest: unsafe table.ingest
        case .load, .configure, .openSession, .checkSubscription, .userChanged, .callFunction, .authenticate: nil
        }
    }
}

extension sluice_plugin {
    /// The table with the part beyond its declared size cleared. The plugin has not set that part.
    package var declared: sluice_plugin {
        var table = unsafe self
        let declared = unsafe Int(size)
        unsafe withUnsafeMutableBytes(of: &table) { bytes in
            // The size and the version are always there.
            for offset in min(max(declared, 16), bytes.count)..<bytes.count { unsafe bytes[offset] = 0 }
        }
        return unsafe table
    }
}

/// Collects the pieces of an answer, up to the limit.
private final class AnswerCollector {
    private(set) var bytes: [UInt8] = []
    private(set) var isOverfull = false

    func append(_ piece: UnsafeRawBufferPointer) {
        guard bytes.count + piece.count <= PluginLimits.messageBytes else {
            isOverfull = true
            return
        }
        unsafe bytes.append(contentsOf: piece)
    }

    func withSink<R>(_ body: (UnsafePointer<sluice_sink>) -> R) -> R {
        var sink = unsafe sluice_sink(context: Unmanaged.passUnretained(self).toOpaque(), write: sinkWrite)
        return withExtendedLifetime(self) { unsafe withUnsafePointer(to: &sink) { unsafe body($0) } }
    }
}

private func sinkWrite(context: UnsafeMutableRawPointer?, piece: sluice_text) {
    guard let context = unsafe context, let data = unsafe piece.data else { return }
    // Longer pieces are cut to one byte above the limit, which marks the answer as too large. Their bytes are not read.
    let length = unsafe Int(min(piece.size, UInt(PluginLimits.messageBytes) + 1))
    unsafe Unmanaged<AnswerCollector>.fromOpaque(context).takeUnretainedValue()
        .append(UnsafeRawBufferPointer(start: data, count: length))
}
