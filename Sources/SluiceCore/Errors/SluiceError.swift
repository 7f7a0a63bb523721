/// An error: the event, the value at fault, the fix and the cause. Its code is one of `ErrorCode`'s table.
///
/// `message` may reach a client; `value` and `cause` never do. Encoders for clients take a `ClientError`. It is the error of every port.
/// Areas whose callers need more have one type of their own, which converts at the area's edge (`SluiceErrorConvertible`).
package struct SluiceError: Hashable, Sendable, CustomStringConvertible {
    package var code: ErrorCode
    /// One sentence about the event. If the code `isInternal`, it is for operators, too.
    package var message: String
    /// The value at fault, such as a predicate or a path, if a client must not read it.
    package var value: String?
    /// The reader's remedy. If nil, the table's general fix applies.
    package var fix: String?
    /// The error underneath: the words of a database, broker, plugin or library, for operators alone.
    package var cause: ErrorCause?

    package init(_ code: ErrorCode, _ message: String, value: String? = nil, fix: String? = nil, cause: ErrorCause? = nil) {
        self.code = code
        self.message = message
        self.value = value
        self.fix = fix
        self.cause = cause
    }

    /// The message with the value, for operators.
    package var messageWithValue: String { value.map { "\(sentence) Value: \($0)" } ?? message }

    /// The message, the value and the chain of causes, for logs and for answers to operators.
    package var operatorText: String {
        guard let cause else { return messageWithValue }
        return value == nil ? "\(sentence) Cause: \(cause)" : "\(messageWithValue). Cause: \(cause)"
    }

    /// The message with a full stop: some are parts of sentences.
    private var sentence: String { message.hasSuffix(".") ? message : "\(message)." }

    /// `true` if operators can read more about the error than clients.
    package var isWithheld: Bool { code.isInternal || value != nil || cause != nil }

    package var description: String {
        let (text, remedy) = ("\(code.name) (\(code.rawValue)): \(operatorText)", fix ?? code.fix)
        if remedy.isEmpty { return text }
        return [".", "!", "?"].contains(text.last) ? "\(text) \(remedy)" : "\(text). \(remedy)"
    }
}

/// The part of an error that may leave the client port. Every encoder of errors for clients takes its texts from here.
///
/// Of an internal error only the code leaves the gateway, with the fixed texts of `ErrorCode`'s table.
package struct ClientError: Hashable, Sendable {
    package let code: ErrorCode
    package let message: String
    package let fix: String

    package init(_ error: SluiceError) {
        code = error.code
        message = error.code.isInternal ? error.code.meaning : error.message
        fix = error.code.isInternal ? error.code.fix : error.fix ?? error.code.fix
    }
}

extension ErrorCode {
    /// `true` if messages with this code describe the gateway, its database, change log, plugins or configuration.
    ///
    /// `pluginRefused` is not internal, because a plugin's refusal is an answer to the user.
    package var isInternal: Bool {
        switch self {
        case .internalError, .timeout: true
        case .pluginRefused: false
        default: (500..<800).contains(rawValue) || (900..<950).contains(rawValue)
        }
    }
}
