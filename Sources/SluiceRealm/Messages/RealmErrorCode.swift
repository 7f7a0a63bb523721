package import SluiceCore

/// The error codes that may be sent.
///
/// The protocol has more. 104, 202, 203, 205, 207, 214, 215, 218 to 221 and 224 are missing on purpose: they end the client's process.
package enum RealmErrorCode: UInt64, CaseIterable, Sendable {
    // The connection
    case connectionClosed = 100
    case otherConnectionError = 101
    case unknownMessage = 102
    case badSyntax = 103
    case wrongProtocolVersion = 105
    case badSessionIdent = 106
    case sessionIdentInUse = 107
    case badMessageOrder = 109
    case badCompression = 110
    case badChangesetHeader = 111
    case badChangesetSize = 112
    // The session
    case sessionClosed = 200
    case otherSessionError = 201
    case permissionDenied = 206
    case badClientFileIdent = 208
    case badServerVersion = 209
    case badClientVersion = 210
    case divergingHistories = 211
    case badChangeset = 212
    case badOriginFileIdent = 216
    case badClientFile = 217
    case clientFileExpired = 222
    case userMismatch = 223
    case invalidSchemaChange = 225
    case badQuery = 226
    case serverPermissionsChanged = 228
    case writeNotAllowed = 230
    case compensatingWrite = 231

    /// `true` for a code that is sent with session 0 only.
    package var isOfConnection: Bool { rawValue < 200 }

    /// The code that closes a connection because of a message.
    package init(closing error: SluiceError) {
        self =
            switch error.code {
            case .unknownMessage: .unknownMessage
            case .badSyntax, .badJSON: .badSyntax
            case .badMessageOrder: .badMessageOrder
            case .badCompression: .badCompression
            case .badChangeset: .badChangesetHeader
            case .wrongProtocolVersion: .wrongProtocolVersion
            default: .otherConnectionError
            }
    }

    /// The code that ends a session because of an error on the server.
    package init(ending error: SluiceError) {
        self =
            switch error.code {
            case .badClientFile, .resync: .badClientFileIdent
            case .userMismatch: .userMismatch
            case .permissionDenied: .permissionDenied
            // A changeset with a value that the pipeline cannot read. The versions of the upload are right.
            case .badChangeset, .badSyntax: .badChangeset
            case .invalidSchemaChange: .invalidSchemaChange
            case .writeNotAllowed: .writeNotAllowed
            default: .otherSessionError
            }
    }
}

/// The client's reaction to an error.
package enum RealmErrorAction: String, CaseIterable, Sendable {
    case protocolViolation = "ProtocolViolation"
    case applicationBug = "ApplicationBug"
    /// The session continues, with code 231 alone.
    case warning = "Warning"
    /// The client retries with back-off and reports nothing.
    case transient = "Transient"
    case deleteRealm = "DeleteRealm"
    /// The client replaces its file and recovers its pending changesets.
    case clientReset = "ClientReset"
    case clientResetNoRecovery = "ClientResetNoRecovery"
    case refreshUser = "RefreshUser"
    case refreshLocation = "RefreshLocation"
    case logOutUser = "LogOutUser"

    package var isReset: Bool { self == .clientReset || self == .clientResetNoRecovery }

    /// The reaction to an error that ends a session.
    package init(ending error: SluiceError) {
        self =
            switch error.code {
            case .badClientFile, .resync, .badChangeset, .badSyntax: .clientReset
            case .userMismatch, .userDisabled: .logOutUser
            // A retry cannot help: the session ends until the app changes.
            case .permissionDenied, .invalidSchemaChange, .writeNotAllowed, .queryTooLarge: .applicationBug
            case .tokenExpired: .refreshUser
            default: .transient
            }
    }
}
