package import SluiceCore

/// What a client does about a session error.
package enum SessionAction: Int, Hashable, Sendable {
    /// Reconnect by itself.
    case transient = 1
    /// Refresh the token, then reconnect.
    case refreshUser = 2
    case logOutUser = 3
    /// Throw the local file's server state away and start again.
    case clientReset = 4
    /// Stop the session.
    case applicationBug = 5
    /// Nothing: tell the app.
    case warning = 6
    /// As `clientReset`; writes that were not uploaded are not to be recovered.
    case clientResetNoRecovery = 7
}

extension PBSessionError {
    /// - Parameter backoffMilliseconds: what the client waits at least before it comes back; 0 leaves it to the client.
    package init(_ error: SluiceError, action: SessionAction, fatal: Bool, backoffMilliseconds: UInt32 = 0) {
        self.init()
        let told = ClientError(error)
        code = UInt32(told.code.rawValue)
        name = told.code.name
        message = told.message
        fix = told.fix
        self.action = PBAction(rawValue: action.rawValue) ?? .unspecified
        self.fatal = fatal
        self.backoffMilliseconds = backoffMilliseconds
    }

    /// The error in the product's own form; a code that this version does not know reads as `internalError`, its name kept.
    package var error: SluiceError {
        SluiceError(code: code, name: name, message: message, fix: fix)
    }

    /// An action that this version does not know is transient: it tries again.
    package var sessionAction: SessionAction { SessionAction(rawValue: action.rawValue) ?? .transient }
}

extension PBQueryError {
    package init(version: UInt64, _ error: SluiceError) {
        self.init()
        self.version = version
        let told = ClientError(error)
        code = UInt32(told.code.rawValue)
        message = told.message
    }

    package var error: SluiceError { SluiceError(code: code, name: "", message: message, fix: "") }
}

extension SluiceError {
    init(code: UInt32, name: String, message: String, fix: String) {
        let known = UInt16(exactly: code).flatMap { ErrorCode(rawValue: $0) }
        self.init(
            known ?? .internalError, known == nil ? "\(name) (\(code)): \(message)" : message, fix: fix.isEmpty ? nil : fix)
    }
}

/// A write that was undone, or an asymmetric object that was refused (CW-13, ING-9).
package struct RejectedWriteReport: Hashable, Sendable {
    /// The changeset, or the Ingest message, that carried it.
    package var changeset: UInt64
    package var object: ObjectKey
    package var error: SluiceError
    /// Nil for asymmetric objects, and for causes that a newer gateway knows.
    package var cause: RefusalCause?
    /// The fields at fault; empty where it is the whole object.
    package var fields: [String]
    /// What was wanted, by property, up to `longestValues` bytes as JSON.
    package var values: [String: Value]

    /// Bytes of one object's values; a client that wanted more than this has it itself, unless it learnt of its commit before.
    package static let longestValues = 64 << 10

    package init(
        changeset: UInt64, object: ObjectKey, error: SluiceError, cause: RefusalCause? = nil, fields: [String] = [],
        values: [String: Value] = [:]
    ) {
        self.changeset = changeset
        self.object = object
        self.error = error
        self.cause = cause
        self.fields = fields
        self.values = values
    }
}

extension PBFutileWrite {
    package init(changeset: UInt64, _ object: ObjectKey) {
        self.init()
        self.changeset = changeset
        type = object.type
        primaryKey = PBValue(object.key)
    }
}

extension PBRejectedWrite {
    package init(_ report: RejectedWriteReport) {
        self.init()
        changeset = report.changeset
        type = report.object.type
        primaryKey = PBValue(report.object.key)
        let told = ClientError(report.error)
        code = UInt32(told.code.rawValue)
        reason = told.message
        cause = report.cause?.rawValue ?? ""
        fields = report.fields
        let text = report.values.isEmpty ? "" : ExtendedJSON.json(report.values).text
        if text.utf8.count <= RejectedWriteReport.longestValues { values = text }
    }
}

extension RejectedWriteReport {
    /// - Throws: `badSyntax` for a malformed key, `badJSON` for malformed values.
    package init(_ message: PBRejectedWrite) throws(SluiceError) {
        var values: [String: Value] = [:]
        if !message.values.isEmpty {
            for member in try JSON.parse(message.values).members ?? [] { values[member.key] = ExtendedJSON.value(member.value) }
        }
        self.init(
            changeset: message.changeset, object: ObjectKey(type: message.type, key: try Value(message.primaryKey)),
            error: SluiceError(code: message.code, name: "", message: message.reason, fix: ""),
            cause: RefusalCause(rawValue: message.cause), fields: message.fields, values: values)
    }
}
