public import Foundation
package import SluiceCore
import SluiceReplica

/// A sync error, as passed to `SyncManager.errorHandler`.
public struct SyncError: Error, Equatable, CustomNSError, LocalizedError, CustomStringConvertible {
    /// The error codes. Their numbers are part of the API.
    public enum Code: Int, Sendable {
        case clientSessionError = 4
        case clientUserError = 5
        case clientInternalError = 6
        /// The server does not know the file; see `clientResetInfo()`.
        case clientResetError = 7
        case underlyingAuthError = 8
        case permissionDeniedError = 9
        case invalidFlexibleSyncSubscriptions = 10
        /// The server sent compensating writes; see `compensatingWriteInfo`.
        case writeRejected = 11
        case connectionFailed = 12
        case tlsHandshakeFailed = 13
        case serverWarning = 14
    }

    /// The action for an error, for `SyncSession.immediatelyHandleError`.
    public struct ActionToken: Hashable, Sendable {
        let path: String
        let backup: String
    }

    public let code: Code
    /// The event, the value at fault, the cause and the fix.
    public let message: String
    /// The compensating writes; nil for other errors.
    public let compensatingWriteInfo: [CompensatingWriteInfo]?
    let action: ActionToken?

    init(_ code: Code, _ message: String, writes: [CompensatingWriteInfo]? = nil, action: ActionToken? = nil) {
        self.code = code
        self.message = message
        self.action = action
        compensatingWriteInfo = writes
    }

    init(_ error: SluiceError) {
        let code: Code =
            switch error.code {
            case .permissionDenied: .permissionDeniedError
            case .tokenExpired, .badAuthentication, .invalidSession, .userDisabled, .userNotFound, .invalidPassword: .clientUserError
            case .badClientFile, .userMismatch: .clientResetError
            case .connectionFailed, .timeout: .connectionFailed
            case .tlsHandshakeFailed, .serverKeyMismatch: .tlsHandshakeFailed
            case .compensatingWrite, .writeNotAllowed: .writeRejected
            case .replicaCorrupt, .internalError: .clientInternalError
            default: error.code.refusesSubscription ? .invalidFlexibleSyncSubscriptions : .clientSessionError
            }
        self.init(code, error.description)
    }

    init(refused writes: [CompensatingWrite]) {
        self.init(
            .writeRejected,
            "Client attempted a write that is not allowed; it has been reverted: "
                + writes.map { "\($0.object.type) \(RQLText.literal($0.object.key)): \($0.reason)" }.joined(separator: "; "),
            writes: writes.map { CompensatingWriteInfo($0) })
    }

    static func loggedOut(_ user: User) -> SyncError {
        SyncError(.clientUserError, "The user \(user.id) is logged out; log in to sync.")
    }

    /// Returns the path of the backup and the action of a client reset that is left to the app; nil for other errors.
    ///
    /// `SyncSession.immediatelyHandleError` moves the file there at once. Without that call, the next opening of the Realm moves it.
    public func clientResetInfo() -> (String, ActionToken)? {
        guard code == .clientResetError, let action else { return nil }
        return (action.backup, action)
    }

    /// Returns nil: local files are moved, never deleted. See `clientResetInfo()`.
    public func deleteRealmUserInfo() -> ActionToken? { nil }

    /// Nil, because the server does not expose its log. The message names the cause.
    public var serverLogURL: URL? { nil }

    public static let clientSessionError = Code.clientSessionError
    public static let clientUserError = Code.clientUserError
    public static let clientInternalError = Code.clientInternalError
    public static let clientResetError = Code.clientResetError
    public static let underlyingAuthError = Code.underlyingAuthError
    public static let permissionDeniedError = Code.permissionDeniedError
    public static let invalidFlexibleSyncSubscriptions = Code.invalidFlexibleSyncSubscriptions
    public static let writeRejected = Code.writeRejected
    public static let connectionFailed = Code.connectionFailed
    public static let tlsHandshakeFailed = Code.tlsHandshakeFailed
    public static let serverWarning = Code.serverWarning

    public static let errorDomain = "io.realm.sync"
    public var errorCode: Int { code.rawValue }
    public var errorUserInfo: [String: Any] { userInfo }
    public var errorDescription: String? { message }
    public var description: String { message }

    /// The message, the compensating writes and the action, by RealmSwift's keys.
    public var userInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: message]
        if let compensatingWriteInfo { info["Compensating Write Info"] = compensatingWriteInfo }
        if let action {
            info["recovered_realm_location_path"] = action.backup
            info["error_action_token"] = action
        }
        return info
    }
}

/// Matches an error by its code: `catch SyncError.writeRejected`.
public func ~= (code: SyncError.Code, error: any Error) -> Bool { (error as? SyncError)?.code == code }

/// Returns the app's form of an error.
package func _syncError(_ error: SluiceError) -> SyncError { SyncError(error) }
