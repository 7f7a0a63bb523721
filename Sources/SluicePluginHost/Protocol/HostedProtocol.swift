package import SluiceCore
import SluiceValues

/// The messages between the gateway and a plugin's host process, over a stream socket.
///
/// A message is a 32-bit length, a kind byte and content; integers are little-endian. The gateway sends calls. The host answers each in
/// order and logs in between. Both sides are of one release, so the protocol has no version.
package enum HostedMessage: Hashable, Sendable {
    /// Calls a hook.
    /// - Parameters:
    ///   - deadline: The deadline in nanoseconds of the monotonic clock, which both processes share. A later call is not made.
    ///   - processor: The plugin's processor time, in nanoseconds; `.max` is unbounded.
    case call(id: UInt64, hook: Hook, deadline: UInt64, processor: UInt64, input: [UInt8])
    case answer(id: UInt64, HookAnswer)
    /// A log line. The levels are those of sluice_plugin.h.
    case log(level: UInt8, text: String)
    /// A question of the plugin within a call. One question is open at a time.
    case ask(HostQuestion)
    /// The answer to a question.
    case told(HookAnswer)
    /// An increment of one of the plugin's counters.
    case count(name: String, amount: UInt64)
}

/// A question of a plugin within a call.
package enum HostQuestion: Hashable, Sendable {
    case customData(user: String)
    case parse(type: String, predicate: String)
}

package enum HostedProtocol {
    private enum Kind: UInt8 { case call = 1, answer, log, askCustomData, askParse, told, count }

    /// The maximum number of bytes of a message beside its content.
    static let overhead = 4 + 1 + 8 + 1 + 8 + 8

    /// Appends one message with its length.
    package static func encode(_ message: HostedMessage, into bytes: inout [UInt8]) {
        let start = bytes.count
        append(UInt32(0), to: &bytes)
        switch message {
        case .call(let id, let hook, let deadline, let processor, let input):
            bytes.append(Kind.call.rawValue)
            append(id, to: &bytes)
            bytes.append(hook.rawValue)
            append(deadline, to: &bytes)
            append(processor, to: &bytes)
            bytes.append(contentsOf: input)
        case .answer(let id, let answer):
            bytes.append(Kind.answer.rawValue)
            append(id, to: &bytes)
            bytes.append(answer.status.rawValue)
            bytes.append(contentsOf: answer.bytes)
        case .log(let level, let text):
            bytes.append(Kind.log.rawValue)
            bytes.append(level)
            bytes.append(contentsOf: text.utf8)
        case .ask(.customData(let user)):
            bytes.append(Kind.askCustomData.rawValue)
            bytes.append(contentsOf: user.utf8)
        case .ask(.parse(let type, let predicate)):
            bytes.append(Kind.askParse.rawValue)
            append(UInt32(clamping: type.utf8.count), to: &bytes)
            bytes.append(contentsOf: type.utf8)
            bytes.append(contentsOf: predicate.utf8)
        case .told(let answer):
            bytes.append(Kind.told.rawValue)
            bytes.append(answer.status.rawValue)
            bytes.append(contentsOf: answer.bytes)
        case .count(let name, let amount):
            bytes.append(Kind.count.rawValue)
            append(amount, to: &bytes)
            bytes.append(contentsOf: name.utf8)
        }
        let length = UInt32(clamping: bytes.count - start - 4)
        for index in 0..<4 { bytes[start + index] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(index))) }
    }

    private static func append(_ value: some FixedWidthInteger & UnsignedInteger, to bytes: inout [UInt8]) {
        for shift in stride(from: 0, to: value.bitWidth, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    /// Decodes one message without its length.
    /// - Throws: `pluginBadAnswer`.
    package static func decode(_ bytes: ArraySlice<UInt8>) throws(SluiceError) -> HostedMessage {
        var rest = bytes
        switch Kind(rawValue: try integer(&rest, UInt8.self)) {
        case .call:
            let id = try integer(&rest, UInt64.self)
            guard let hook = Hook(rawValue: try integer(&rest, UInt8.self)) else { throw malformed("an unknown hook") }
            let deadline = try integer(&rest, UInt64.self)
            return .call(id: id, hook: hook, deadline: deadline, processor: try integer(&rest, UInt64.self), input: Array(rest))
        case .answer:
            return .answer(id: try integer(&rest, UInt64.self), try answer(&rest))
        case .log:
            return .log(level: try integer(&rest, UInt8.self), text: String(decoding: rest, as: UTF8.self))
        case .askCustomData: return .ask(.customData(user: String(decoding: rest, as: UTF8.self)))
        case .askParse:
            let count = Int(try integer(&rest, UInt32.self))
            guard rest.count >= count else { throw malformed("too few bytes") }
            let (type, predicate) = (rest.prefix(count), rest.dropFirst(count))
            return .ask(.parse(type: String(decoding: type, as: UTF8.self), predicate: String(decoding: predicate, as: UTF8.self)))
        case .told: return .told(try answer(&rest))
        case .count:
            let amount = try integer(&rest, UInt64.self)
            return .count(name: String(decoding: rest, as: UTF8.self), amount: amount)
        case nil: throw malformed("an unknown kind")
        }
    }

    private static func answer(_ bytes: inout ArraySlice<UInt8>) throws(SluiceError) -> HookAnswer {
        guard let status = HookAnswer.Status(rawValue: try integer(&bytes, UInt8.self)) else { throw malformed("an unknown status") }
        return HookAnswer(status: status, bytes: Array(bytes))
    }

    private static func integer<T: FixedWidthInteger & UnsignedInteger>(
        _ bytes: inout ArraySlice<UInt8>, _: T.Type
    ) throws(SluiceError) -> T {
        let size = T.bitWidth / 8
        guard bytes.count >= size else { throw malformed("too few bytes") }
        var value: T = 0
        for (index, byte) in bytes.prefix(size).enumerated() { value |= T(byte) << T(8 * index) }
        bytes.removeFirst(size)
        return value
    }

    /// Returns the error for an invalid message, with a description of its fault.
    package static func malformed(_ what: String) -> SluiceError {
        SluiceError(.pluginBadAnswer, "the plugin's process sent a message with \(what)")
    }
}

/// Splits a stream of bytes into messages.
package struct HostedDecoder {
    private var buffer: [UInt8] = []
    private var start = 0

    package init() {}

    package mutating func feed(_ bytes: some Collection<UInt8>) {
        // Compact rarely: removing from the front copies the rest.
        if start > 0, start == buffer.count || start > 1 << 16 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Returns the next complete message; nil if more bytes are needed.
    /// - Throws: `pluginBadAnswer` for an invalid message or one over the limit. The stream is unusable then.
    package mutating func next() throws(SluiceError) -> HostedMessage? {
        guard buffer.count - start >= 4 else { return nil }
        var length = 0
        for index in 0..<4 { length |= Int(buffer[start + index]) << (8 * index) }
        // Check the length before buffering: a plugin could announce 4 GiB.
        guard length <= PluginLimits.messageBytes + HostedProtocol.overhead else {
            throw HostedProtocol.malformed("\(length) bytes, more than \(PluginLimits.messageBytes)")
        }
        guard buffer.count - start - 4 >= length else { return nil }
        let content = start + 4
        start = content + length
        return try HostedProtocol.decode(buffer[content..<start])
    }
}

extension SluiceError {
    /// The error as `HookAnswer.Status.unusable` carries it: two bytes of code and the message.
    var hostedBytes: [UInt8] { [UInt8(truncatingIfNeeded: code.rawValue), UInt8(code.rawValue >> 8)] + operatorText.utf8 }

    init(hostedBytes bytes: [UInt8]) {
        guard bytes.count >= 2, let code = ErrorCode(rawValue: UInt16(bytes[0]) | UInt16(bytes[1]) << 8) else {
            self.init(.pluginBadAnswer, "the plugin's process sent an error that cannot be read")
            return
        }
        self.init(code, String(decoding: bytes.dropFirst(2), as: UTF8.self))
    }
}

extension PluginInfo {
    /// The content of the answer to `load`.
    var json: JSON {
        [
            "name": .string(name), "version": .string(version),
            "hooks": .array(hooks.map(\.rawValue).sorted().map { .int(Int64($0)) }),
            "config_schema": configSchema.map { .string($0) } ?? .null, "missing": .array(missing.map { .string($0) }),
        ]
    }

    init(_ json: JSON) throws(SluiceError) {
        guard let name = json["name"]?.string, let version = json["version"]?.string, let hooks = json["hooks"]?.array else {
            throw HostedProtocol.malformed("an answer to load that lacks a member")
        }
        let numbers = hooks.compactMap { $0.int.flatMap { UInt8(exactly: $0) } }
        self.init(
            name: name, version: version, hooks: Set(numbers.compactMap { Hook(rawValue: $0) }),
            configSchema: json["config_schema"]?.string, missing: (json["missing"]?.array ?? []).compactMap(\.string))
    }
}
