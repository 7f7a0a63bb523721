import Foundation
import Testing

/// What may go from one thread or actor to another, as the compiler sees it in an app.
@Suite struct ConfinementTests {
    private static let models = """
        final class Dog: Object { @Persisted(primaryKey: true) var _id: ObjectId }
        final class Tag: EmbeddedObject { @Persisted var text: String }
        final class Reading: AsymmetricObject { @Persisted(primaryKey: true) var _id: ObjectId }
        final class Name: Projection<Dog> { @Projected(\\Dog._id) var id }
        """

    private static let confined = [
        "Realm", "Dog", "Tag", "Reading", "DynamicObject", "Name", "Results<Dog>", "List<Int>", "List<Dog>", "MutableSet<Int>",
        "Map<String, Int>", "LinkingObjects<Dog>", "AnyRealmCollection<Int>", "ProjectedCollection<Int>", "AnyRealmValue",
        "SectionedResults<String, Dog>", "ResultsSection<String, Dog>", "Query<Dog>", "Migration", "SyncSubscriptionSet",
        "SyncSubscription", "QuerySubscription<Dog>", "QueryBasedSync.Subscription",
    ]
    private static let shared = [
        "Realm.Configuration", "SyncConfiguration", "ClientResetMode", "App", "AppConfiguration", "User", "EmailPasswordAuth",
        "Credentials", "SyncSession", "SyncSession.Progress", "SyncSession.ProgressNotificationToken", "SyncManager", "AnyBSON",
        "ObjectId", "Decimal128", "NotificationToken", "Realm.AsyncOpenTask", "ThreadSafeReference<Dog>", "ThreadSafe<Dog>",
        "StringOptions", "Realm.Error", "SyncError", "AppError",
    ]

    @Test func `objects, collections and Realms stay where they are, what tells of them does not`() throws {
        let folder = try TemporaryFolder()
        let types = Self.confined + Self.shared
        let uses = types.map { "    share(\($0).self)" }.joined(separator: "\n")
        let head = "import RealmSwift\n\(Self.models)\nfunc share<T: Sendable>(_: T.Type) {}\nfunc uses() {\n"
        let file = folder.url.appendingPathComponent("uses.swift")
        try (head + uses + "\n}\n").write(to: file, atomically: true, encoding: .utf8)
        let said = try Self.compile(file)
        let first = head.split(separator: "\n").count + 1
        var refused: Set<String> = []
        for error in said.matches(of: /uses\.swift:(\d+):\d+: error: ([^\n]*)/) {
            let index = (Int(error.1) ?? 0) - first
            guard types.indices.contains(index), error.2.contains("Sendable") else {
                Issue.record("\(error.0)")
                continue
            }
            refused.insert(types[index])
        }
        #expect(refused == Set(Self.confined), "\(said.prefix(3_000))")
    }

    /// - Returns: what the compiler says to a file of an app's, in Swift 6's mode.
    static func compile(_ file: URL) throws -> String {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        let built = URL(fileURLWithPath: own).deletingLastPathComponent()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/bash")
        // The C modules of what the module is made of: the compiler looks for them when it reads it.
        let files =
            "*.build/module.modulemap ../../../Sources/CSQLite/module.modulemap ../../checkouts/*/Sources/*/{,include/}module.modulemap"
        let maps = "$(printf -- '-Xcc -fmodule-map-file=%s ' \(files))"
        let command = "shopt -s nullglob; swiftc -swift-version 6 -emit-sil -o /dev/null -I Modules \(maps) '\(file.path)' 2>&1"
        process.arguments = ["-c", command]
        process.currentDirectoryURL = built
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return said
    }
}
