public import Foundation
import SluiceCore
import SluiceReplica

/// An error of sync, as `SyncManager.errorHandler` hears it.
public struct SyncError: Error, Equatable, CustomNSError, LocalizedError, CustomStringConvertible {
    /// The numbers are part of the API.
    public enum Code: Int, Sendable {
        case clientSessionError = 4
        case clientUserError = 5
        case clientInternalError = 6
        case clientResetError = 7
        case permissionDeniedError = 9
        case invalidFlexibleSyncSubscriptions = 10
        /// Writes were undone: see `compensatingWriteInfo`.
        case writeRejected = 11
        case connectionFailed = 12
        case tlsHandshakeFailed = 13
        case serverWarning = 14
    }

    public let code: Code
    /// What happened, with the value at fault and the fix.
    public let message: String
    /// The writes that were undone; nil for other errors.
    public let compensatingWriteInfo: [CompensatingWriteInfo]?

    init(_ code: Code, _ message: String, writes: [CompensatingWriteInfo]? = nil) {
        self.code = code
        self.message = message
        compensatingWriteInfo = writes
    }

    init(_ error: SluiceError) {
        let code: Code =
            switch error.code {
            case .permissionDenied: .permissionDeniedError
            case .tokenExpired, .badAuthentication, .invalidSession, .userDisabled, .userMismatch: .clientUserError
            case .badClientFile: .clientResetError
            case .connectionFailed, .timeout: .connectionFailed
            case .badQuery: .invalidFlexibleSyncSubscriptions
            case .compensatingWrite, .writeNotAllowed: .writeRejected
            case .replicaCorrupt, .internalError: .clientInternalError
            default: .clientSessionError
            }
        self.init(code, error.description)
    }

    init(refused writes: [RefusedWrite]) {
        self.init(
            .writeRejected,
            "Client attempted a write that is not allowed; it has been reverted: "
                + writes.map { "\($0.object.type) \(RQLText.literal($0.object.key)): \($0.reason)" }.joined(separator: "; "),
            writes: writes.map {
                CompensatingWriteInfo(
                    objectType: $0.object.type, key: $0.object.key, reason: $0.reason)
            })
    }

    public static let errorDomain = "io.realm.sync"
    public var errorCode: Int { code.rawValue }
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: message] }
    public var errorDescription: String? { message }
    public var description: String { message }
}

/// Lets `catch SyncError.Code.writeRejected` match an error by its code.
public func ~= (code: SyncError.Code, error: any Error) -> Bool { (error as? SyncError)?.code == code }

/// One object whose writes were undone.
public struct CompensatingWriteInfo: Hashable, Sendable {
    public let objectType: String
    let key: Value
    public let reason: String

    public var primaryKey: AnyRealmValue { AnyRealmValue(scalar: key) }
}
