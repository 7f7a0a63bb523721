import Foundation
import SluiceSDK
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Where a Realm lies whose configuration names no file. Each test is a program of its own, for the sake of its environment.
@Suite struct DefaultPlaceTests {
    private static func place() -> String? { Realm.Configuration().fileURL?.path }

    @Test func `the default file lies in the folder for data that the environment names`() async {
        await #expect(processExitsWith: .success) {
            unsetenv("SLUICE_DATA_HOME")
            let folder = try TemporaryFolder()
            setenv("XDG_DATA_HOME", folder.url.path, 1)
            #expect(DefaultPlaceTests.place() == "\(folder.url.path)/sluice/default.realm")
            var configuration = Realm.Configuration.defaultConfiguration
            configuration.objectTypes = [Horse.self]
            Realm.Configuration.defaultConfiguration = configuration
            // Not opened before, it makes its folder.
            try Horse.createInDefaultRealm(withValue: ["_id": 1])
            #expect(FileManager.default.fileExists(atPath: "\(folder.url.path)/sluice/default.realm"))
            #expect(try Realm(queue: nil).objects(Horse.self).count == 1)
        }
    }

    @Test func `without such a folder it lies in the user's own`() async {
        await #expect(processExitsWith: .success) {
            unsetenv("SLUICE_DATA_HOME")
            for data in ["", "relative/folder"] {
                setenv("XDG_DATA_HOME", data, 1)
                #expect(DefaultPlaceTests.place() == "\(NSHomeDirectory())/.local/share/sluice/default.realm")
            }
            unsetenv("XDG_DATA_HOME")
            #expect(DefaultPlaceTests.place() == "\(NSHomeDirectory())/.local/share/sluice/default.realm")
        }
    }

    @Test func `a folder of this library's own goes before, an empty name does not`() async {
        await #expect(processExitsWith: .success) {
            setenv("XDG_DATA_HOME", "/data", 1)
            setenv("SLUICE_DATA_HOME", "/own", 1)
            #expect(DefaultPlaceTests.place() == "/own/default.realm")
            setenv("SLUICE_DATA_HOME", "", 1)
            #expect(DefaultPlaceTests.place() == "/data/sluice/default.realm")
        }
    }

    @Test func `a default configuration that was set counts for every call that names none`() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            Realm.Configuration.defaultConfiguration = folder.configuration([Horse.self], file: "chosen")
            let realm = try Realm(queue: nil)
            #expect(realm.configuration.fileURL?.lastPathComponent == "chosen.realm")
            #expect(try Realm(fileURL: folder.url.appendingPathComponent("other.realm")).schema["Horse"] != nil)
        }
    }
}
