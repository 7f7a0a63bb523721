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
        code = UInt32(error.code.rawValue)
        name = error.code.name
        message = error.message
        fix = error.fix ?? error.code.fix
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
        code = UInt32(error.code.rawValue)
        message = error.message
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
    /// The server's row by property name when the client may see it; nil when it may not, or there is none.
    package var row: [String: Value]?

    package init(changeset: UInt64, object: ObjectKey, error: SluiceError, row: [String: Value]? = nil) {
        self.changeset = changeset
        self.object = object
        self.error = error
        self.row = row
    }
}

extension PBRejectedWrite {
    /// - Throws: `unknownType` or `unknownProperty` when the row does not fit the schema.
    package init(_ report: RejectedWriteReport, schema: Schema) throws(SluiceError) {
        self.init()
        changeset = report.changeset
        type = report.object.type
        primaryKey = PBValue(report.object.key)
        code = UInt32(report.error.code.rawValue)
        reason = report.error.message
        if let values = report.row { row = try PBRow(values, type: try schema.type(named: type)) }
    }
}

extension RejectedWriteReport {
    /// - Throws: `badSyntax` for malformed values; `unknownType`, `wrongValueType` when a row does not fit the schema.
    package init(_ message: PBRejectedWrite, schema: Schema) throws(SluiceError) {
        var values: [String: Value]?
        if message.hasRow {
            let type = try schema.type(named: message.type)
            let row = try Row(message.row, type: type)
            values = [:]
            for (index, property) in type.properties.enumerated() {
                if let value = row[index] { values?[property.name] = value }
            }
        }
        self.init(
            changeset: message.changeset, object: ObjectKey(type: message.type, key: try Value(message.primaryKey)),
            error: SluiceError(code: message.code, name: "", message: message.reason, fix: ""), row: values)
    }
}
