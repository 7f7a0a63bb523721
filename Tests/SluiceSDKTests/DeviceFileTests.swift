import Foundation
import Testing

@testable import SluiceSDK

@Suite struct `What an app stores on the device` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static func open(_ user: User) throws -> Realm {
        var configuration = user.flexibleSyncConfiguration()
        configuration.objectTypes = [Task.self, Team.self]
        return try Realm(configuration: configuration)
    }

    @Test func `is for its user alone: files with the mode 0600 in folders with 0700`() async throws {
        let server = try CannedServer { _ in
            .init(status: 200, body: #"{"access_token":"h.e30.a","refresh_token":"r","user_id":"ann","device_id":"d"}"#)
        }
        // The app's own folder is made by the SDK.
        let home = folder.url.appending(path: "home")
        let app = App(id: "shop", configuration: AppConfiguration(baseURL: server.url, storageDirectory: home))
        let user = try await app.login(credentials: .anonymous)
        let realm = try Self.open(user)
        try realm.writeCopy(toFile: home.appending(path: "copy.realm"))
        let names = try #require(FileManager.default.subpaths(atPath: home.path))
        var folders = 0
        for name in names + [""] {
            let attributes = try FileManager.default.attributesOfItem(atPath: home.appending(path: name).path)
            let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
            folders += isFolder ? 1 : 0
            #expect(attributes[.posixPermissions] as? Int == (isFolder ? 0o700 : 0o600), "\(name)")
        }
        #expect(folders >= 2 && names.count - folders >= 3, "\(names)")
    }
}
