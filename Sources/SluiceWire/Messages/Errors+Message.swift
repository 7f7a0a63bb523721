package import SluiceCore
import SluiceValues

/// The client's reaction to a session error.
package enum SessionAction: Int, Hashable, Sendable {
    /// Reconnect automatically.
    case transient = 1
    /// Refresh the token, then reconnect.
    case refreshUser = 2
    case logOutUser = 3
    /// Drop the server's state in the client replica and start again.
    case clientReset = 4
    /// Stop the session.
    case applicationBug = 5
    /// Only report the error to the app.
    case warning = 6
    /// As `clientReset`, without recovery of the writes that were not uploaded.
    case clientResetNoRecovery = 7
}

extension PBSessionError {
    /// - Parameter backoffMilliseconds: the minimal delay before the client reconnects. 0 leaves it to the client.
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

    /// The error as a `SluiceError`. A code unknown to this version becomes `internalError`, with its name in the message.
    package var error: SluiceError {
        SluiceError(code: code, name: name, message: message, fix: fix)
    }

    /// The action. One that this version does not know becomes `transient`, so the client retries.
    package var sessionAction: SessionAction { SessionAction(rawValue: action.rawValue) ?? .transient }
}

extension PBQueryError {
    /// - Parameter index: The index of the rejected query in the set; nil if the error is of the whole set.
    package init(version: UInt64, _ error: SluiceError, index: Int? = nil) {
        self.init()
        self.version = version
        query = index.map { UInt32(clamping: $0 + 1) } ?? 0
        let told = ClientError(error)
        code = UInt32(told.code.rawValue)
        message = told.message
    }

    package var error: SluiceError { SluiceError(code: code, name: "", message: message, fix: "") }

    /// The index of the rejected query in the set; nil if the error is of the whole set.
    package var index: Int? { query == 0 ? nil : Int(query) - 1 }
}

extension SluiceError {
    init(code: UInt32, name: String, message: String, fix: String) {
        let known = UInt16(exactly: code).flatMap { ErrorCode(rawValue: $0) }
        self.init(
            known ?? .internalError, known == nil ? "\(name) (\(code)): \(message)" : message, fix: fix.isEmpty ? nil : fix)
    }
}

/// A compensating write, or a rejected asymmetric object, as the gateway reports it to the client.
package struct RejectedWriteReport: Hashable, Sendable {
    /// The number of the changeset, or of the `Ingest` message, that carried it.
    package var changeset: UInt64
    package var object: ObjectKey
    package var error: SluiceError
    /// `nil` for asymmetric objects, and for causes that only a newer gateway knows.
    package var cause: RejectionCause?
    /// The fields at fault. Empty if the whole object is.
    package var fields: [String]
    /// The intended values by property, up to `longestValues` bytes as JSON.
    package var values: [String: Value]

    /// The bound of one object's values as JSON, in bytes. Larger values are omitted; the client still has them until the write's commit.
    package static let longestValues = 64 << 10

    package init(
        changeset: UInt64, object: ObjectKey, error: SluiceError, cause: RejectionCause? = nil, fields: [String] = [],
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

extension PBReportedWrite {
    /// - Returns: `nil` for a key over `RejectedWriteReport.longestValues` bytes.
    package init?(changeset: UInt64, _ object: ObjectKey) {
        guard object.key.recordBytes <= RejectedWriteReport.longestValues else { return nil }
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
            cause: RejectionCause(rawValue: message.cause), fields: message.fields, values: values)
    }
}
