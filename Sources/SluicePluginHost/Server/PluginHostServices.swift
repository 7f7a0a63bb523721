import CSluicePlugin
import Glibc
import SluiceCore
import Synchronization

/// The services behind a plugin's `sluice_host`: the log and counters at any time, questions only within a hook and on its thread.
///
/// The table of each plugin is allocated once and never freed, because the plugin may log from its own threads at any time.
@safe
final class PluginHostServices: @unchecked Sendable {  // Sendable because: only the serving thread uses the input; the channel has a lock.
    private let input: ServerInput
    private let channel: ServerChannel
    /// The thread of the running hook; nil outside of a hook.
    private let hookThread = Mutex<pthread_t?>(nil)
    private let counters = Mutex<Set<String>>([])

    /// The live contexts by address. A plugin may pass any other pointer, which must not be dereferenced.
    private static let desks = Mutex<[UInt: PluginHostServices]>([:])

    init(input: ServerInput, channel: ServerChannel) {
        self.input = input
        self.channel = channel
    }

    /// Opens the desk for questions. Runs on the serving thread before a hook; `close` runs after it.
    func open() { hookThread.withLock { $0 = pthread_self() } }
    func close() { hookThread.withLock { $0 = nil } }

    /// Returns a new table for the plugin's entry. It is never freed.
    func makeTable() -> UnsafePointer<sluice_host> {
        let address = unsafe UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
        Self.desks.withLock { $0[address] = self }
        let host = UnsafeMutablePointer<sluice_host>.allocate(capacity: 1)
        unsafe host.initialize(
            to: sluice_host(
                size: UInt32(MemoryLayout<sluice_host>.size), abi_major: UInt32(SLUICE_PLUGIN_ABI_MAJOR),
                abi_minor: UInt32(SLUICE_PLUGIN_ABI_MINOR), reserved: 0, context: UnsafeMutableRawPointer(bitPattern: address),
                log: hostLog, count: hostCount, custom_data: hostCustomData, parse_predicate: hostParse))
        return unsafe UnsafePointer(host)
    }

    fileprivate static func at(_ context: UnsafeMutableRawPointer?) -> PluginHostServices? {
        let address = UInt(bitPattern: context)
        return desks.withLock { $0[address] }
    }

    fileprivate func log(_ level: UInt8, _ text: String) { channel.send(.log(level: level, text: text)) }

    /// Forwards a count to the gateway.
    /// - Returns: the reason if it was not counted; nil if it was.
    fileprivate func count(_ name: String, _ amount: UInt64) -> String? {
        guard Self.isCounter(name) else { return "the name of a counter has 1 to \(PluginLimits.counterNameBytes) of a-z, 0-9 and _" }
        let isKnown = counters.withLock { counters in
            // The bound limits the gateway's metrics, which have a series for each name.
            if counters.count < PluginLimits.counters { counters.insert(name) }
            return counters.contains(name)
        }
        guard isKnown else { return "a plugin has \(PluginLimits.counters) counters at most" }
        channel.send(.count(name: name, amount: amount))
        return nil
    }

    /// Returns `true` for a valid name of a counter: a-z, 0-9 and _.
    static func isCounter(_ name: String) -> Bool {
        (1...PluginLimits.counterNameBytes).contains(name.utf8.count) && name.utf8.allSatisfy(isNameByte)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool { (97...122).contains(byte) || (48...57).contains(byte) || byte == 95 }

    /// Asks the gateway and blocks until the answer. Fails outside of a hook and on other threads.
    fileprivate func ask(_ question: HostQuestion) -> HookAnswer {
        // Another thread would read from the input concurrently with the serving thread.
        guard hookThread.withLock({ $0 == pthread_self() }) else {
            return Self.failed("the call was made outside of a hook, or on another thread")
        }
        channel.send(.ask(question))
        return input.told() ?? Self.failed("the gateway has closed the connection")
    }

    fileprivate static func failed(_ reason: String) -> HookAnswer { HookAnswer(status: .failed, bytes: Array(reason.utf8)) }
}

private func hostLog(context: UnsafeMutableRawPointer?, level: sluice_log_level, message: sluice_text) {
    guard let desk = unsafe PluginHostServices.at(context) else { return }
    // Cut before decoding: a plugin may pass any length.
    let cut = unsafe sluice_text(data: message.data, length: Int(min(message.size, UInt(PluginLimits.logLineBytes))))
    unsafe desk.log(UInt8(clamping: level.rawValue), cut.string)
}

private func hostCount(context: UnsafeMutableRawPointer?, name: sluice_text, amount: UInt64) -> sluice_status {
    guard let desk = unsafe PluginHostServices.at(context), unsafe name.size <= PluginLimits.counterNameBytes else { return SLUICE_FAILED }
    guard let wrong = unsafe desk.count(name.string, amount) else { return SLUICE_OK }
    desk.log(UInt8(SLUICE_LOG_WARNING.rawValue), "the counter is unchanged: \(wrong)")
    return SLUICE_FAILED
}

private func hostCustomData(
    context: UnsafeMutableRawPointer?, user: sluice_text, answer: UnsafePointer<sluice_sink>
) -> sluice_status {
    unsafe ask(context, [user], answer) { .customData(user: $0[0]) }
}

private func hostParse(
    context: UnsafeMutableRawPointer?, type: sluice_text, predicate: sluice_text, answer: UnsafePointer<sluice_sink>
) -> sluice_status {
    unsafe ask(context, [type, predicate], answer) { .parse(type: $0[0], predicate: $0[1]) }
}

private func ask(
    _ context: UnsafeMutableRawPointer?, _ texts: [sluice_text], _ sink: UnsafePointer<sluice_sink>,
    _ question: ([String]) -> HostQuestion
) -> sluice_status {
    let answer: HookAnswer
    if let desk = unsafe PluginHostServices.at(context) {
        // Check the lengths first, because decoding reads all of the bytes.
        let isTooLong = unsafe texts.contains { unsafe $0.size > PluginLimits.questionBytes }
        answer =
            isTooLong
            ? PluginHostServices.failed("a text has more than \(PluginLimits.questionBytes) bytes")
            : desk.ask(question(unsafe texts.map { unsafe $0.string }))
    } else {
        answer = PluginHostServices.failed("the context is not the host's")
    }
    unsafe answer.bytes.withUnsafeBytes { bytes in
        let piece = unsafe sluice_text(data: bytes.assumingMemoryBound(to: CChar.self).baseAddress, length: bytes.count)
        unsafe sink.pointee.write(sink.pointee.context, piece)
    }
    switch answer.status {
    case .ok: return SLUICE_OK
    case .denied: return SLUICE_DENY
    case .failed, .unusable, .late, .overrun: return SLUICE_FAILED
    }
}

extension sluice_text {
    /// The length as an unsigned number. A negative `length` becomes larger than any limit.
    var size: UInt { unsafe UInt(bitPattern: length) }

    var string: String {
        guard let data = unsafe data else { return "" }
        return unsafe String(decoding: UnsafeRawBufferPointer(start: data, count: length), as: UTF8.self)
    }
}
