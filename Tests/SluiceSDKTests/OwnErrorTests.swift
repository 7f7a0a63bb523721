import Foundation
import SluiceSDK
import Testing

/// Errors that an app makes with Realm's codes, as its tests and its own layers do.
@Suite struct OwnErrorTests {
    private static let codes: [Realm.Error.Code] = [
        .fail, .fileAccess, .filePermissionDenied, .fileExists, .fileNotFound, .fileFormatUpgradeRequired, .incompatibleLockFile,
        .addressSpaceExhausted, .schemaMismatch, .alreadyOpen, .invalidInput, .outOfDiskSpace, .incompatibleSession,
        .unsupportedFileFormatVersion, .multipleSyncAgents, .subscriptionFailed, .fileOperationFailed, .invalidDatabase,
        .incompatibleHistories, .noSubscriptionForWrite,
    ]

    @Test(arguments: codes) func `have the code, and are caught by it`(code: Realm.Error.Code) {
        do {
            throw Realm.Error(code)
        } catch let error as Realm.Error {
            #expect(error.code == code && error.errorCode == code.rawValue && error.fileURL == nil)
            #expect(code ~= error && Realm.Error(code) == error)
        } catch { Issue.record("\(error)") }
        // As a layer does that knows errors only: what it caught has no type.
        do {
            throw Realm.Error(code, userInfo: [NSLocalizedDescriptionKey: "No room."])
        } catch {
            let bridged = error as NSError
            #expect(bridged.domain == Realm.Error.errorDomain && bridged.code == code.rawValue)
            #expect(bridged.userInfo[NSLocalizedDescriptionKey] as? String == "No room.")
        }
    }

    @Test func `have the user info that the app gave`() {
        let error = Realm.Error(
            .fileNotFound, userInfo: [NSLocalizedDescriptionKey: "No file.", NSFilePathErrorKey: "/data/a.realm", "attempt": 7])
        #expect(error.localizedDescription == "No file." && error.message == "No file." && error.fileURL?.path == "/data/a.realm")
        #expect(error.userInfo["attempt"] as? Int == 7 && error.userInfo[NSFilePathErrorKey] as? String == "/data/a.realm")
        #expect(error != Realm.Error(.fileNotFound) && error != Realm.Error(.fail, userInfo: [NSLocalizedDescriptionKey: "No file."]))
    }
}
