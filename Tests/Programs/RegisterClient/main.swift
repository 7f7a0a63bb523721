// A device of the causal test: it reads all registers and writes four of them in each transaction, and keeps a history of what it
// read and wrote.
//
// register-client FOLDER URL APP NUMBER RATE    FOLDER: the device's files, its history, and `control`
//
// `control` says what it does, and is looked at before every transaction: `run` (RATE transactions a second), `offline` (the same
// without its connection), `upload` (prints `uploaded` when everything is), `download` (prints the registers' values and ends).

import Foundation
import RealmSwift

class Register: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var shard: String
    @Persisted var value: Int
}

let arguments = CommandLine.arguments
let folder = URL(fileURLWithPath: arguments[1])
guard let number = Int(arguments[4]), let rate = Double(arguments[5]) else { fatalError("register-client: NUMBER and RATE are numbers") }
let history = try History(folder.appendingPathComponent("history"), client: number)

let app = App(id: arguments[3], configuration: AppConfiguration(baseURL: arguments[2], storageDirectory: folder))
app.syncManager.errorHandler = { error, _ in FileHandle.standardError.write(Data("register-client: \(error)\n".utf8)) }
let user = if let known = app.currentUser { known } else { try await logIn() }
var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
    subscriptions.append(QuerySubscription<Register> { $0.shard.in((0..<10).map { "shard \($0)" }) })
})
configuration.objectTypes = [Register.self]
let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
guard let session = realm.syncSession else { fatalError("register-client: the Realm has no session") }
let registers = realm.objects(Register.self).sorted(byKeyPath: "_id")
say("ready")

var isOffline = false
while true {
    let control = (try? String(contentsOf: folder.appendingPathComponent("control"), encoding: .utf8)) ?? "run"
    if isOffline != (control == "offline") {
        isOffline.toggle()
        if isOffline { session.suspend() } else { session.resume() }
    }
    switch control {
    case "upload":
        session.reconnect()
        try await session.wait(for: .upload)
        say("uploaded")
        // The test changes the file.
        while try String(contentsOf: folder.appendingPathComponent("control"), encoding: .utf8) == "upload" {
            try await Task.sleep(for: .milliseconds(20))
        }
    case "download":
        try await session.wait(for: .download)
        realm.refresh()
        say("state " + registers.map { "\($0.value)" }.joined(separator: " "))
        exit(0)
    default:
        try realm.write { history.begin(reading: registers.map(\.value)) { key, value in registers[key].value = value } }
        history.committed()
        // The pace of a device that writes on, whatever happens meanwhile.
        try await Task.sleep(for: .seconds(Double.random(in: 0.5...1.5) / rate))
    }
}

/// A gateway that was just started, with all devices at once, may have to be asked again.
func logIn() async throws -> User {
    for _ in 0..<10 {
        if let user = try? await app.login(credentials: .anonymous) { return user }
        try await Task.sleep(for: .seconds(1))
    }
    return try await app.login(credentials: .anonymous)
}

/// Prints a line at once.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

/// The transactions of a device, also of its runs before this one. What was begun and not said to be committed may have been.
final class History {
    private let file: UnsafeMutablePointer<FILE>
    private let client: Int
    private var count: Int
    private var last = 0

    init(_ url: URL, client: Int) throws {
        self.client = client
        let lines = ((try? String(contentsOf: url, encoding: .utf8)) ?? "").split(separator: "\n")
        count = lines.filter { $0.hasPrefix("begin ") }.count
        for line in lines where line.hasPrefix("begin ") {
            let written = line.split(separator: "|").last?.split(separator: " ").compactMap { Int($0) } ?? []
            last = written.reduce(last, max)
        }
        guard let file = fopen(url.path, "a") else { throw POSIXError(.EIO) }
        self.file = file
        // A line that a kill cut off ends here.
        if !lines.isEmpty { fputs("\n", file) }
    }

    /// Chooses four registers and writes to each a value that is larger than all that were seen, and that no other transaction writes.
    func begin(reading values: [Int], _ write: (Int, Int) -> Void) {
        let value = (max(last, values.max() ?? 0) / 16 + 1) * 16 + client
        let keys = Array(values.indices).shuffled().prefix(4)
        fputs(
            "begin \(count)|\(values.map(String.init).joined(separator: " "))|\(keys.map(String.init).joined(separator: " "))|\(value)\n",
            file)
        fflush(file)
        for key in keys { write(key, value) }
        last = value
    }

    func committed() {
        fputs("committed \(count)\n", file)
        fflush(file)
        count += 1
    }
}
