import CSluicePlugin

/// The services that the gateway offers to a plugin. All except `count` are available only during a hook, on the hook's thread. `count` is
/// available at any time on any thread.
///
/// A plugin receives it by conforming to `AsksGateway`.
public struct PluginGateway: Sendable {
    private let table: HostTable

    /// Returns a user's custom data, or nil if there is no such user. It takes a fraction of a millisecond or more, which does not count as
    /// the plugin's own time.
    /// - Throws: `PluginError` if the data are unavailable, and outside of a hook.
    public func customData(of user: String) throws -> PluginValue? { try table.customData(of: user) }

    /// Checks a predicate against the query language and the app's schema. It takes as long as `customData(of:)`.
    /// - Returns: The canonical text of the predicate.
    /// - Throws: `PluginDenial` with the error in the predicate. `PluginError` as in `customData(of:)`.
    public func canonical(_ predicate: String, on type: String) throws -> String { try table.canonical(predicate, on: type) }

    /// Adds to the metric `sluice_plugin_counts_total{name="PLUGIN.name"}`.
    /// - Parameter name: 1 to 64 characters of a-z, 0-9 and _. A plugin may use 32 names.
    public func count(_ name: String, by amount: UInt64 = 1) { table.count(name, amount) }

    /// - Parameter host: A table that lives as long as the process.
    init(host: UnsafePointer<sluice_host>) { table = unsafe HostTable(host: host) }
}

@safe
private struct HostTable: @unchecked Sendable {  // Sendable because: the table is constant; the host checks the thread of calls.
    let host: UnsafePointer<sluice_host>

    init(host: UnsafePointer<sluice_host>) { unsafe self.host = host }

    func customData(of user: String) throws -> PluginValue? {
        let answer = AnswerText()
        let status = unsafe Self.lend(user) { user in
            unsafe answer.withSink { unsafe host.pointee.custom_data(host.pointee.context, user, $0) }
        }
        switch status {
        case SLUICE_OK: return try PluginValue(parsing: answer.text)
        case SLUICE_DENY: return nil
        default: throw PluginError(answer.text)
        }
    }

    func canonical(_ predicate: String, on type: String) throws -> String {
        let answer = AnswerText()
        let status = unsafe Self.lend(type) { type in
            unsafe Self.lend(predicate) { predicate in
                unsafe answer.withSink { unsafe host.pointee.parse_predicate(host.pointee.context, type, predicate, $0) }
            }
        }
        switch status {
        case SLUICE_OK: return answer.text
        case SLUICE_DENY: throw PluginDenial(answer.text)
        default: throw PluginError(answer.text)
        }
    }

    func count(_ name: String, _ amount: UInt64) {
        _ = unsafe Self.lend(name) { unsafe host.pointee.count(host.pointee.context, $0, amount) }
    }

    private static func lend(_ text: String, _ body: (sluice_text) -> sluice_status) -> sluice_status {
        var text = text
        return text.withUTF8 { utf8 in
            unsafe utf8.withMemoryRebound(to: CChar.self) { unsafe body(sluice_text(data: $0.baseAddress, length: $0.count)) }
        }
    }
}

/// Collects the text that the other side writes to a sink.
final class AnswerText {
    private var bytes: [UInt8] = []
    var text: String { String(decoding: bytes, as: UTF8.self) }

    func add(_ piece: sluice_text) { unsafe bytes.append(contentsOf: piece.bytes) }

    func withSink<R>(_ body: (UnsafePointer<sluice_sink>) -> R) -> R {
        var sink = unsafe sluice_sink(context: Unmanaged.passUnretained(self).toOpaque(), write: addPiece)
        return withExtendedLifetime(self) { unsafe withUnsafePointer(to: &sink) { unsafe body($0) } }
    }
}

private func addPiece(context: UnsafeMutableRawPointer?, piece: sluice_text) {
    guard let context = unsafe context else { return }
    unsafe Unmanaged<AnswerText>.fromOpaque(context).takeUnretainedValue().add(piece)
}
