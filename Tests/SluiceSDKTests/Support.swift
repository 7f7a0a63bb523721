import Foundation
import SluiceSDK
import Synchronization
import Testing

/// A folder that goes away with its owner.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// A Realm that is not synced.
    var local: Realm.Configuration {
        Realm.Configuration(
            fileURL: url.appendingPathComponent("local.realm"), objectTypes: [Task.self, Team.self, Every.self])
    }

    /// A Realm of some classes that is not synced.
    func configuration(_ types: [ObjectBase.Type], file: String = "local") -> Realm.Configuration {
        Realm.Configuration(fileURL: url.appendingPathComponent("\(file).realm"), objectTypes: types)
    }

    /// A configuration of somebody who is logged in to a server that is not there.
    /// - Parameter isLoggedIn: whether somebody is, or was until the last run.
    func synced(
        _ types: [ObjectBase.Type] = [Task.self, Team.self, Reading.self], isLoggedIn: Bool = true
    ) throws -> Realm.Configuration {
        var configuration = try user(isLoggedIn: isLoggedIn).flexibleSyncConfiguration()
        configuration.objectTypes = types
        return configuration
    }

    /// As if the user had logged in in an earlier run.
    func user(isLoggedIn: Bool = true) throws -> User {
        let folder = url.appendingPathComponent("tasks")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let tokens = isLoggedIn ? #","access_token":"a.b.c","refresh_token":"r""# : ""
        let stored = #"{"users":[{"id":"u1","provider":"anon-user"\#(tokens)}],"current":"u1"}"#
        try stored.write(to: folder.appendingPathComponent("users.json"), atomically: true, encoding: .utf8)
        // Nothing listens on the discard port.
        let configuration = AppConfiguration(baseURL: "http://127.0.0.1:9", storageDirectory: url)
        let fresh = App(id: "tasks", configuration: configuration)
        guard let user = fresh.currentUser else { throw CancellationError() }
        return user
    }
}

/// What a program that has ended wrote at its end.
func message(_ result: ExitTest.Result?) -> String { String(decoding: result?.standardErrorContent ?? [], as: UTF8.self) }

/// Where two threads wait for each other.
final class Meeting: Sendable {
    private let arrivals = Atomic<Int>(0)

    /// - Parameter time: 1 for the first time that they meet, and so on.
    func meet(_ time: Int) {
        arrivals.add(1, ordering: .acquiringAndReleasing)
        while arrivals.load(ordering: .acquiring) < 2 * time { sched_yield() }
    }
}

class Task: Object {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var taskName: String
    @Persisted var assignee: String?
    @Persisted var completed: Bool
    @Persisted var progressMinutes: Int
    @Persisted var dueDate: Date
}

class Team: Object {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var teamName: String
    @Persisted var tasks: List<Task>
    @Persisted var members: List<String>
}

class Reading: AsymmetricObject {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var celsius: Double
}

enum Colour: String, PersistableEnum { case red, green }

/// A property of every type.
class Every: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var bool: Bool
    @Persisted var int: Int
    @Persisted var int8: Int8
    @Persisted var int16: Int16
    @Persisted var int32: Int32
    @Persisted var int64: Int64
    @Persisted var float: Float
    @Persisted var double: Double
    @Persisted(indexed: true) var string = "initial"
    @Persisted var data: Data
    @Persisted var date: Date
    @Persisted var objectId: ObjectId
    @Persisted var uuid: UUID
    @Persisted var decimal: Decimal128
    @Persisted var colour: Colour
    @Persisted var optionalBool: Bool?
    @Persisted var optionalInt: Int?
    @Persisted var optionalFloat: Float?
    @Persisted var optionalDouble: Double?
    @Persisted var optionalString: String?
    @Persisted var optionalData: Data?
    @Persisted var optionalDate: Date?
    @Persisted var optionalObjectId: ObjectId?
    @Persisted var optionalUUID: UUID?
    @Persisted var optionalDecimal: Decimal128?
    @Persisted var optionalColour: Colour?
    @Persisted var ints: List<Int>
    @Persisted var strings: List<String>
    @Persisted var optionalStrings: List<String?>
    @Persisted var dates: List<Date>
    @Persisted var link: Every?
    var notStored = 3
}
