public import Foundation
import SluiceCore

/// What logging in and other requests to the server throw.
public struct AppError: Error, Equatable, CustomNSError, LocalizedError, CustomStringConvertible {
    /// The numbers are part of the API.
    public enum Code: Int, Sendable {
        case unknown = -1
        case httpRequestFailed = 1
        case invalidSession = 2
        case badRequest = 3
        case userNotFound = 4
        case internalServerError = 11
        case authProviderNotFound = 12
        case userDisabled = 23
        case authError = 24
        case accountNameInUse = 25
        case invalidPassword = 26
    }

    public let code: Code
    /// The server's text.
    public let message: String
    /// 0 when there was no answer.
    public let httpStatusCode: Int

    init(_ code: Code, _ message: String, status: Int = 0) {
        self.code = code
        self.message = message
        httpStatusCode = status
    }

    /// An answer of the server that is no success.
    init(status: Int, body: [UInt8]) {
        let json = try? JSON.parse(body)
        message = json?["error"]?.string ?? "The server answered with status \(status)."
        httpStatusCode = status
        code =
            switch json?["error_code"]?.string ?? "" {
            case "InvalidSession": .invalidSession
            case "UserNotFound": .userNotFound
            case "AuthProviderNotFound": .authProviderNotFound
            case "UserDisabled": .userDisabled
            case "AuthError": .authError
            case "AccountNameInUse": .accountNameInUse
            case "InvalidPassword", "InvalidEmailPassword": .invalidPassword
            case "BadRequest": .badRequest
            default: status >= 500 ? .internalServerError : status == 400 ? .badRequest : .unknown
            }
    }

    public static let errorDomain = "io.realm.app"
    public var errorCode: Int { code.rawValue }
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: message] }
    public var errorDescription: String? { message }
    public var description: String { message }
}

/// Lets `catch AppError.Code.invalidPassword` match an error by its code.
public func ~= (code: AppError.Code, error: any Error) -> Bool { (error as? AppError)?.code == code }
