/// An error: the event, the value at fault and the fix. Its code is one of `ErrorCode`'s table.
///
/// `message` may reach a client; `detail` never does. Encoders for clients take a `ClientError`.
package struct SluiceError: Error, Hashable, Sendable, CustomStringConvertible {
    package var code: ErrorCode
    /// One sentence about the event, with the value at fault. If the code `isInternal`, it is for operators, too.
    package var message: String
    /// The reader's remedy. If nil, the table's general fix applies.
    package var fix: String?
    /// The text of a database, broker, plugin or library, for operators alone.
    package var detail: String?

    package init(_ code: ErrorCode, _ message: String, fix: String? = nil, detail: String? = nil) {
        self.code = code
        self.message = message
        self.fix = fix
        self.detail = detail
    }

    /// The message and detail, for logs and for answers to operators.
    package var operatorText: String { detail.map { "\(message) \($0)" } ?? message }

    package var description: String { "\(code.name) (\(code.rawValue)): \(operatorText) \(fix ?? code.fix)" }
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
