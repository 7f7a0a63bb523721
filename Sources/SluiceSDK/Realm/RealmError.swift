public import Foundation
import SluiceCore

extension Realm {
    /// An error of Realm's own methods. Match it with `catch Realm.Error.noSubscriptionForWrite` or by `error.code`.
    public struct Error: Swift.Error, Equatable, CustomNSError, LocalizedError, CustomStringConvertible {
        /// The error codes. Their numbers are part of the API.
        public enum Code: Int, Sendable {
            case fail = 1
            case fileAccess = 2
            case filePermissionDenied = 3
            case fileExists = 4
            case fileNotFound = 5
            case fileFormatUpgradeRequired = 6
            case incompatibleLockFile = 8
            case addressSpaceExhausted = 9
            case schemaMismatch = 10
            case alreadyOpen = 12
            case invalidInput = 13
            case outOfDiskSpace = 14
            case incompatibleSession = 15
            case unsupportedFileFormatVersion = 16
            case multipleSyncAgents = 17
            case subscriptionFailed = 18
            case fileOperationFailed = 19
            case invalidDatabase = 20
            case incompatibleHistories = 21
            case noSubscriptionForWrite = 22
        }

        public let code: Code
        /// The event, the value at fault, the cause and the fix.
        public let message: String
        /// The file that could not be opened; nil for other errors.
        public internal(set) var fileURL: URL?
        /// The user info of an error that the app created.
        private var given: GivenInfo?

        /// The user info of an error that the app created.
        // Sendable because: it never changes, and the app's values in it are passed through, as those of an NSError are.
        private final class GivenInfo: @unchecked Sendable {
            let values: [String: Any]
            init(_ values: [String: Any]) { self.values = values }
        }

        /// Creates an error with one of Realm's codes, for use by the app.
        /// - Parameter userInfo: `NSLocalizedDescriptionKey` becomes the message, `NSFilePathErrorKey` the file.
        public init(_ code: Code, userInfo: [String: Any] = [:]) {
            self.code = code
            message = userInfo[NSLocalizedDescriptionKey] as? String ?? "Realm error \(code)"
            fileURL = (userInfo[NSFilePathErrorKey] as? String).map { URL(fileURLWithPath: $0) }
            given = userInfo.isEmpty ? nil : GivenInfo(userInfo)
        }

        init(_ code: Code, _ message: String) {
            self.code = code
            self.message = message
        }

        /// `true` if both have the same code, message and file.
        public static func == (lhs: Error, rhs: Error) -> Bool {
            lhs.code == rhs.code && lhs.message == rhs.message && lhs.fileURL == rhs.fileURL
        }

        init(_ error: SluiceError) {
            message = error.description
            code =
                switch error.code {
                case .noSubscriptionForWrite: .noSubscriptionForWrite
                case .replicaVersion: .unsupportedFileFormatVersion
                case .replicaCorrupt: .invalidDatabase
                case .deviceFull: .outOfDiskSpace
                case .invalidSchemaChange, .invalidName: .schemaMismatch
                case .querySyntax, .queryUnknownProperty, .queryTypeMismatch, .queryArgument, .queryShape: .invalidInput
                default: error.code.refusesSubscription ? .subscriptionFailed : .fail
                }
        }

        public static let errorDomain = "io.realm"
        public var errorCode: Int { code.rawValue }
        public var errorUserInfo: [String: Any] { userInfo }
        /// The message, the path of the file if there is one, and the app's own user info.
        public var userInfo: [String: Any] {
            var info = given?.values ?? [:]
            info[NSLocalizedDescriptionKey] = message
            info[NSFilePathErrorKey] = fileURL?.path
            return info
        }
        public var errorDescription: String? { message }
        public var description: String { message }

        public static let fail = Code.fail
        public static let fileAccess = Code.fileAccess
        public static let filePermissionDenied = Code.filePermissionDenied
        public static let fileExists = Code.fileExists
        public static let fileNotFound = Code.fileNotFound
        public static let fileFormatUpgradeRequired = Code.fileFormatUpgradeRequired
        public static let incompatibleLockFile = Code.incompatibleLockFile
        public static let addressSpaceExhausted = Code.addressSpaceExhausted
        public static let schemaMismatch = Code.schemaMismatch
        public static let alreadyOpen = Code.alreadyOpen
        public static let invalidInput = Code.invalidInput
        public static let outOfDiskSpace = Code.outOfDiskSpace
        public static let incompatibleSession = Code.incompatibleSession
        public static let unsupportedFileFormatVersion = Code.unsupportedFileFormatVersion
        public static let multipleSyncAgents = Code.multipleSyncAgents
        public static let subscriptionFailed = Code.subscriptionFailed
        public static let fileOperationFailed = Code.fileOperationFailed
        public static let invalidDatabase = Code.invalidDatabase
        public static let incompatibleHistories = Code.incompatibleHistories
        public static let noSubscriptionForWrite = Code.noSubscriptionForWrite

        /// The error of a call that ended without a result and without an error of its own.
        public static let callFailed = Error(.fail, "Call failed")

        /// Runs the body and adds the configuration's file to the errors that it throws.
        static func naming<R>(_ configuration: Configuration, _ body: () throws -> R) throws -> R {
            do {
                return try body()
            } catch var error as Error {
                error.fileURL = configuration.path.map { URL(fileURLWithPath: $0) }
                throw error
            }
        }

        static let encryption = Error(
            .invalidInput,
            "The Realm file cannot be encrypted: this platform's SQLite has no encryption. Open it without encryptionKey, and keep it on an encrypted volume."
        )
    }
}

/// Matches an error by its code: `catch Realm.Error.invalidInput`.
public func ~= (code: Realm.Error.Code, error: any Swift.Error) -> Bool { (error as? Realm.Error)?.code == code }

/// Runs the body and converts its `SluiceError`s to `Realm.Error`.
func asRealmError<R>(_ body: () throws -> R) throws -> R {
    do {
        return try body()
    } catch let error as SluiceError {
        throw Realm.Error(error)
    }
}

/// `true` if both errors have the same domain and code. Their messages are not compared.
public func == (lhs: any Error, rhs: any Error) -> Bool {
    let (left, right) = (lhs as NSError, rhs as NSError)
    return left.domain == right.domain && left.code == right.code
}
