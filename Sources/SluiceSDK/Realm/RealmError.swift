public import Foundation
import SluiceCore

extension Realm {
    /// What Realm's own methods throw. `catch Realm.Error.noSubscriptionForWrite` works, as does `error.code`.
    public struct Error: Swift.Error, Equatable, CustomNSError, LocalizedError, CustomStringConvertible {
        /// The numbers are part of the API.
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
        /// What happened, with the value at fault and the fix.
        public let message: String
        /// The file that could not be opened; nil for other errors.
        public internal(set) var fileURL: URL?
        /// What an app has made the error with.
        private var given: GivenInfo?

        /// The user info of an error that an app makes.
        // Sendable because: it never changes, and the app's values in it are handed on as they are, as those of an NSError.
        private final class GivenInfo: @unchecked Sendable {
            let values: [String: Any]
            init(_ values: [String: Any]) { self.values = values }
        }

        /// An error of the app's own with one of Realm's codes.
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

        /// Errors of one code with one text and one file are equal.
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
        /// The message, and the path of the file if there is one.
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

        /// Of a call that ended without a result and without an error of its own.
        public static let callFailed = Error(.fail, "Call failed")

        /// Runs the body; its errors tell which file was being opened.
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

/// Lets `catch Realm.Error.invalidInput` match an error by its code.
public func ~= (code: Realm.Error.Code, error: any Swift.Error) -> Bool { (error as? Realm.Error)?.code == code }

/// Runs the body, its errors turned into those that Realm's methods throw.
func asRealmError<R>(_ body: () throws -> R) throws -> R {
    do {
        return try body()
    } catch let error as SluiceError {
        throw Realm.Error(error)
    }
}

/// Whether two errors are the same: of one domain and with one code. Their texts do not count.
public func == (lhs: any Error, rhs: any Error) -> Bool {
    let (left, right) = (lhs as NSError, rhs as NSError)
    return left.domain == right.domain && left.code == right.code
}
