import CSluicePlugin

/// What a plugin may ask the gateway while a hook of it is called, on that hook's thread; counting is for any time and thread.
///
/// A plugin gets it by conforming to `AsksGateway`. Gateways before 1.2 of the interface have none of it (`isAvailable`).
public struct PluginGateway: Sendable {
    /// Whether the gateway is new enough to be asked.
    public let isAvailable: Bool
    private let find: @Sendable (String) throws -> PluginValue?
    private let parse: @Sendable (String, String) throws -> String
    private let add: @Sendable (String, UInt64) -> Void

    /// A user's custom data; nil when there is no such user. Takes a fraction of a millisecond or more, which does not count as the
    /// plugin's own time.
    /// - Throws: `PluginFailure` when it could not be had, outside of a hook, and without a gateway that is new enough.
    public func customData(of user: String) throws -> PluginValue? { try find(user) }

    /// Holds a predicate against the query language and the app's schema. Takes the same time.
    /// - Returns: its canonical text.
    /// - Throws: `PluginDenial` with what is wrong with it; `PluginFailure` as above.
    public func canonical(_ predicate: String, on type: String) throws -> String { try parse(type, predicate) }

    /// Adds to the metric `sluice_plugin_counts_total{name="PLUGIN.name"}`; nothing happens without a gateway that is new enough.
    /// - Parameter name: 1 to 64 of a-z, 0-9 and _; 32 names for each plugin.
    public func count(_ name: String, by amount: UInt64 = 1) { add(name, amount) }

    /// The host's table lives as long as the process.
    init(host: UnsafePointer<sluice_host>) {
        isAvailable = unsafe Int(host.pointee.size) >= MemoryLayout<sluice_host>.size
        guard isAvailable else {
            find = { _ in throw PluginFailure(Self.tooOld) }
            parse = { _, _ in throw PluginFailure(Self.tooOld) }
            add = { _, _ in }
            return
        }
        let table = unsafe HostTable(host: host)
        find = { user in try table.customData(of: user) }
        parse = { type, predicate in try table.canonical(predicate, on: type) }
        add = { name, amount in table.count(name, amount) }
    }

    private static let tooOld = "the gateway is to be upgraded: it has version 1.1 or older of the plugin interface, and cannot be asked"
}

@safe
// Sendable because: the table is constant; the host refuses questions on another thread than a hook's.
private struct HostTable: @unchecked Sendable {
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
        default: throw PluginFailure(answer.text)
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
        default: throw PluginFailure(answer.text)
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

/// Gathers what the other side answers.
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
