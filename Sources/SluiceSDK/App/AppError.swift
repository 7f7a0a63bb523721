public import Foundation
import SluiceCore
import SluiceValues

/// An error of a login or of another request to the server.
public struct AppError: Error, Equatable, CustomNSError, LocalizedError, CustomStringConvertible {
    /// Error codes with RealmSwift's raw values, which are part of the API.
    public enum Code: Int, Sendable {
        case unknown = -1
        case httpRequestFailed = 1
        case invalidSession
        case badRequest
        case userNotFound
        case userAppDomainMismatch
        case domainNotAllowed
        case readSizeLimitExceeded
        case invalidParameter
        case missingParameter
        case functionExecutionError
        case internalServerError
        case authProviderNotFound
        case valueNotFound
        case valueAlreadyExists
        case valueDuplicateName
        case functionNotFound
        case functionSyntaxError
        case functionInvalid
        case apiKeyAlreadyExists
        case executionTimeLimitExceeded
        case notCallable
        case userAlreadyConfirmed
        case userDisabled
        case authError
        case accountNameInUse
        case invalidPassword
        case maintenanceInProgress
        case mongoDBError

        /// Codes by the server's `error_code`.
        private static let byName: [String: Code] = [
            "InvalidSession": .invalidSession, "BadRequest": .badRequest, "UserNotFound": .userNotFound,
            "UserAppDomainMismatch": .userAppDomainMismatch, "DomainNotAllowed": .domainNotAllowed,
            "ReadSizeLimitExceeded": .readSizeLimitExceeded, "InvalidParameter": .invalidParameter, "MissingParameter": .missingParameter,
            "FunctionExecutionError": .functionExecutionError, "InternalServerError": .internalServerError,
            "AuthProviderNotFound": .authProviderNotFound, "ValueNotFound": .valueNotFound, "ValueAlreadyExists": .valueAlreadyExists,
            "ValueDuplicateName": .valueDuplicateName, "FunctionNotFound": .functionNotFound,
            "FunctionSyntaxError": .functionSyntaxError, "FunctionInvalid": .functionInvalid, "APIKeyAlreadyExists": .apiKeyAlreadyExists,
            "ExecutionTimeLimitExceeded": .executionTimeLimitExceeded, "NotCallable": .notCallable,
            "UserAlreadyConfirmed": .userAlreadyConfirmed, "UserDisabled": .userDisabled, "AuthError": .authError,
            "AccountNameInUse": .accountNameInUse, "InvalidPassword": .invalidPassword, "InvalidEmailPassword": .invalidPassword,
            "MaintenanceInProgress": .maintenanceInProgress, "MongoDBError": .mongoDBError,
        ]

        init?(name: String) {
            guard let code = Code.byName[name] else { return nil }
            self = code
        }
    }

    public let code: Code
    /// The server's text, or the SDK's if no answer arrived.
    public let message: String
    /// The HTTP status; 0 without an answer.
    public let httpStatusCode: Int
    /// The server's `error_code`; nil without an answer, or if the answer has none.
    private let name: String?

    init(_ code: Code, _ message: String, status: Int = 0) {
        self.code = code
        self.message = message
        httpStatusCode = status
        name = nil
    }

    /// Returns the `notCallable` error of a RealmSwift call that this server does not offer.
    /// - Parameters:
    ///   - call: The subject of the message's first sentence.
    ///   - alternative: The second sentence of the message.
    static func notOffered(_ call: String, _ alternative: String) -> AppError {
        AppError(.notCallable, "\(call) is not offered by the server. \(alternative)")
    }

    /// Creates the error of an answer with a status outside 200 to 299.
    ///
    /// If the `error_code` is unknown, the status decides: `internalServerError` from 500, `badRequest` for 400, `unknown` for any other.
    init(status: Int, body: [UInt8]) {
        let json = try? JSON.parse(body)
        message = json?["error"]?.string ?? "The server answered with status \(status)."
        httpStatusCode = status
        name = json?["error_code"]?.string
        code =
            name.flatMap { Code(name: $0) }
            ?? (status >= 500 ? .internalServerError : status == 400 ? .badRequest : .unknown)
    }

    public static let unknown = Code.unknown
    public static let httpRequestFailed = Code.httpRequestFailed
    public static let invalidSession = Code.invalidSession
    public static let badRequest = Code.badRequest
    public static let userNotFound = Code.userNotFound
    public static let userAppDomainMismatch = Code.userAppDomainMismatch
    public static let domainNotAllowed = Code.domainNotAllowed
    public static let readSizeLimitExceeded = Code.readSizeLimitExceeded
    public static let invalidParameter = Code.invalidParameter
    public static let missingParameter = Code.missingParameter
    public static let functionExecutionError = Code.functionExecutionError
    public static let internalServerError = Code.internalServerError
    public static let authProviderNotFound = Code.authProviderNotFound
    public static let valueNotFound = Code.valueNotFound
    public static let valueAlreadyExists = Code.valueAlreadyExists
    public static let valueDuplicateName = Code.valueDuplicateName
    public static let functionNotFound = Code.functionNotFound
    public static let functionSyntaxError = Code.functionSyntaxError
    public static let functionInvalid = Code.functionInvalid
    public static let apiKeyAlreadyExists = Code.apiKeyAlreadyExists
    public static let executionTimeLimitExceeded = Code.executionTimeLimitExceeded
    public static let notCallable = Code.notCallable
    public static let userAlreadyConfirmed = Code.userAlreadyConfirmed
    public static let userDisabled = Code.userDisabled
    public static let authError = Code.authError
    public static let accountNameInUse = Code.accountNameInUse
    public static let invalidPassword = Code.invalidPassword
    public static let maintenanceInProgress = Code.maintenanceInProgress
    public static let mongoDBError = Code.mongoDBError

    public static let errorDomain = "io.realm.app"
    public var errorCode: Int { code.rawValue }
    /// The message and, for an answer, its status and the server's error name, under RealmSwift's keys.
    public var errorUserInfo: [String: Any] {
        var info: [String: Any] = [NSLocalizedDescriptionKey: message]
        if httpStatusCode > 0 { info["HTTP Status Code"] = httpStatusCode }
        if let name { info["Error Name"] = name }
        return info
    }
    public var errorDescription: String? { message }
    public var description: String { message }
}

/// Matches an error by its code, for `catch AppError.invalidPassword`.
public func ~= (code: AppError.Code, error: any Error) -> Bool { (error as? AppError)?.code == code }
