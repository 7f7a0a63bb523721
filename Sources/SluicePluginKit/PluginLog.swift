import CSluicePlugin

/// The gateway's log for a plugin. It may be used on any thread.
public struct PluginLog: Sendable {
    public enum Level: UInt32, Sendable { case debug, info, warning, error }

    private let write: @Sendable (Level, String) -> Void

    /// Creates a log that passes its lines to `write`, for tests of plugins.
    public init(write: @escaping @Sendable (Level, String) -> Void) { self.write = write }

    /// - Parameter host: A table that lives as long as the process.
    init(host: UnsafePointer<sluice_host>) {
        let channel = unsafe HostChannel(host: host)
        write = { level, message in channel.write(level, message) }
    }

    public func debug(_ message: String) { write(.debug, message) }
    public func info(_ message: String) { write(.info, message) }
    public func warning(_ message: String) { write(.warning, message) }
    public func error(_ message: String) { write(.error, message) }
}

@safe
private struct HostChannel: @unchecked Sendable {  // Sendable because: the table is constant, and log may be called on any thread.
    let host: UnsafePointer<sluice_host>

    init(host: UnsafePointer<sluice_host>) { unsafe self.host = host }

    func write(_ level: PluginLog.Level, _ message: String) {
        var message = message
        message.withUTF8 { utf8 in
            unsafe utf8.withMemoryRebound(to: CChar.self) { text in
                unsafe host.pointee.log(
                    host.pointee.context, sluice_log_level(rawValue: level.rawValue),
                    sluice_text(data: text.baseAddress, length: text.count))
            }
        }
    }
}
