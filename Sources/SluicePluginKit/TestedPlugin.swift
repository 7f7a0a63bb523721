import CSluicePlugin

/// A plugin in a test. It is called as by the gateway, through the C table with JSON and rows, but without a gateway.
///
/// ```swift
/// let rules = try TestedPlugin(OfficeHours.self, app: AppConfiguration(config: ["open": 8]))
/// let plan = try rules.openSession(PluginUser(id: "ann"), types: ["Task"])
/// #expect(plan["Task"]?.read == "TRUEPREDICATE")
/// ```
///
/// A denial of the plugin throws `PluginDenial`, a failure `PluginError`.
@safe
public final class TestedPlugin {
    /// The plugin's warnings from its last configuration.
    public private(set) var warnings: [String] = []
    private let table: sluice_plugin
    private let book = LogBook()
    /// The schema of the last configuration that the plugin accepted.
    private var schema: [String: PluginObjectType] = [:]

    /// Creates and configures a plugin.
    /// - Parameter users: Custom data by user, for plugins that request them. Checks of predicates return every predicate unchanged, as a
    ///   test has no query parser.
    public init(
        _ type: (some RulePlugin).Type, app: AppConfiguration = AppConfiguration(), users: [String: PluginValue] = [:]
    ) throws {
        book.users = users
        let host = UnsafeMutablePointer<sluice_host>.allocate(capacity: 1)
        unsafe host.initialize(
            to: sluice_host(
                size: UInt32(MemoryLayout<sluice_host>.size), abi_major: UInt32(SLUICE_PLUGIN_ABI_MAJOR),
                abi_minor: UInt32(SLUICE_PLUGIN_ABI_MINOR), reserved: 0, context: Unmanaged.passRetained(book).toOpaque(), log: keepLine,
                count: keepCount, custom_data: findUser, parse_predicate: takePredicate))
        var table = unsafe sluice_plugin()
        unsafe table.size = UInt32(MemoryLayout<sluice_plugin>.size)
        let answer = AnswerText()
        let status = unsafe answer.withSink { unsafe PluginMain.register(type, host, &table, $0) }
        unsafe self.table = table
        guard status == SLUICE_OK else { throw PluginError(answer.text) }
        try configure(app)
    }

    /// The lines that the plugin has logged, as `level: message`.
    public var log: [String] { book.lines }

    /// The plugin's counters by name.
    public var counts: [String: UInt64] { book.counts }

    /// Configures the plugin again, as after an edit of the app directory.
    public func configure(_ app: AppConfiguration) throws {
        let answer = try unsafe call(table.configure, app.value)
        warnings = (answer?["warnings"]?.array ?? []).compactMap(\.string)
        schema = app.schema
    }

    /// Calls the hook of `SessionRules`.
    public func openSession(_ user: PluginUser, types: [String]) throws -> [String: TypeRules] {
        let answer = try unsafe call(table.open_session, ["user": user.value, "types": .array(types.map { .string($0) })])
        var plan: [String: TypeRules] = [:]
        for member in answer?["types"]?.members ?? [] { plan[member.key] = try TypeRules(member.value) }
        return plan
    }

    /// - Returns: The queries to be ANDed to the requested ones.
    public func checkSubscription(_ user: PluginUser, queries: [PluginQuery]) throws -> [PluginQuery] {
        let answer = try unsafe call(table.check_subscription, ["user": user.value, "queries": .array(queries.map(\.value))])
        return try (answer?["queries"]?.array ?? []).map { try PluginQuery($0) }
    }

    /// - Returns: One verdict for each write, and the records.
    public func checkWrites(_ user: PluginUser, _ writes: [PluginWrite]) throws -> (verdicts: [WriteVerdict], records: [PluginRecord]) {
        guard let function = unsafe table.check_write else { throw PluginError(Self.lacking) }
        let answer = try unsafe TestedRows(writes, schema: schema).lend(user) { batch in
            unsafe Self.result { unsafe function(table.state, batch, $0) }
        }.get()
        if answer?["writes"]?.string == "allow" { return (writes.map { _ in .allow }, []) }
        let verdicts = try (answer?["writes"]?.array ?? []).map { try WriteVerdict($0) }
        guard verdicts.count == writes.count else { throw PluginError("\(verdicts.count) verdicts for \(writes.count) writes") }
        return (verdicts, try (answer?["records"]?.array ?? []).map { try PluginRecord($0) })
    }

    /// - Returns: One verdict for each object.
    public func ingest(type: String, _ objects: [PluginRow]) throws -> [IngestVerdict] {
        guard let function = unsafe table.ingest else { throw PluginError(Self.lacking) }
        let inserts = objects.map { PluginWrite(type: type, operation: "insert", before: nil, after: $0) }
        let answer = try unsafe TestedRows(inserts, of: type, schema: schema).lend(nil) { batch in
            unsafe Self.result { unsafe function(table.state, batch, $0) }
        }.get()
        if answer?["objects"]?.string == "accept" { return objects.map { _ in .accept } }
        let verdicts = try (answer?["objects"]?.array ?? []).map { try IngestVerdict($0) }
        guard verdicts.count == objects.count else { throw PluginError("\(verdicts.count) verdicts for \(objects.count) objects") }
        return verdicts
    }

    /// Calls the hook of `UserChangeRules`.
    public func userChanged(_ user: PluginUser) throws { _ = try unsafe call(table.user_changed, ["user": user.value]) }

    /// Calls the hook of `FunctionHandler`.
    /// - Returns: The result of the function.
    public func callFunction(_ call: PluginFunctionCall) throws -> PluginValue {
        try unsafe self.call(table.call_function, call.value) ?? .null
    }

    /// Calls the hook of `LoginHandler`.
    public func authenticate(payload: PluginValue, requestID: String = "") throws -> PluginIdentity {
        guard let answer = try unsafe call(table.authenticate, ["payload": payload, "request_id": .string(requestID)]) else {
            throw PluginError(unusable: "id")
        }
        return try PluginIdentity(answer)
    }

    private typealias Function = @convention(c) (UnsafeMutableRawPointer?, sluice_text, UnsafePointer<sluice_sink>) -> sluice_status

    private static let lacking = "the plugin lacks this hook"

    private func call(_ function: Function?, _ input: PluginValue) throws -> PluginValue? {
        guard let function = unsafe function else { throw PluginError(Self.lacking) }
        let bytes = Array(input.json.utf8)
        return try unsafe bytes.withUnsafeBytes { bytes in
            let input = unsafe sluice_text(data: bytes.assumingMemoryBound(to: CChar.self).baseAddress, length: bytes.count)
            return unsafe Self.result { unsafe function(table.state, input, $0) }
        }.get()
    }

    /// Returns the answer of a hook.
    private static func result(_ hook: (UnsafePointer<sluice_sink>) -> sluice_status) -> Result<PluginValue?, any Error> {
        let answer = AnswerText()
        switch unsafe answer.withSink(hook) {
        case SLUICE_OK: return Result { answer.text.isEmpty ? nil : try PluginValue(parsing: answer.text) }
        case SLUICE_DENY: return .failure(PluginDenial(answer.text))
        default: return .failure(PluginError(answer.text))
        }
    }
}

/// The failure of a call between gateway and plugin: unusable input, no answer, or an answer of another form.
///
/// The gateway treats it as a denial. A hook that denies throws `PluginDenial`.
public struct PluginError: Error, Hashable, Sendable, CustomStringConvertible {
    public var reason: String
    public init(_ reason: String) { self.reason = reason }
    public var description: String { reason }
}

private final class LogBook {
    var lines: [String] = []
    var counts: [String: UInt64] = [:]
    var users: [String: PluginValue] = [:]
}

private func keepLine(context: UnsafeMutableRawPointer?, level: sluice_log_level, message: sluice_text) {
    guard let context = unsafe context else { return }
    let word = ["debug", "info", "warning", "error"][Int(min(level.rawValue, 3))]
    unsafe Unmanaged<LogBook>.fromOpaque(context).takeUnretainedValue()
        .lines.append("\(word): \(String(decoding: message.bytes, as: UTF8.self))")
}

private func book(_ context: UnsafeMutableRawPointer?) -> LogBook? {
    unsafe context.map { unsafe Unmanaged<LogBook>.fromOpaque($0).takeUnretainedValue() }
}

private func keepCount(context: UnsafeMutableRawPointer?, name: sluice_text, amount: UInt64) -> sluice_status {
    unsafe book(context)?.counts[String(decoding: name.bytes, as: UTF8.self), default: 0] += amount
    return SLUICE_OK
}

private func findUser(context: UnsafeMutableRawPointer?, user: sluice_text, answer: UnsafePointer<sluice_sink>) -> sluice_status {
    guard let data = unsafe book(context)?.users[String(decoding: user.bytes, as: UTF8.self)] else { return SLUICE_DENY }
    unsafe answer.pointee.append(data.json)
    return SLUICE_OK
}

private func takePredicate(
    context: UnsafeMutableRawPointer?, type: sluice_text, predicate: sluice_text, answer: UnsafePointer<sluice_sink>
) -> sluice_status {
    unsafe answer.pointee.append(String(decoding: predicate.bytes, as: UTF8.self))
    return SLUICE_OK
}
